"""Distractor flag and concentration trigger on small matrices."""

from __future__ import annotations

import numpy as np
import pytest

from engine.core.errors import AttributionError
from engine.core.settings import Gradient
from engine.methods.flags import chance_rate, concentration, distractor_flags, times_in_top

NUMBERS = tuple(range(1, 13))


def a_matrix(tokens=10, passages=12, high=(3,), seed=0):
    rng = np.random.default_rng(seed)
    matrix = rng.uniform(0.01, 0.1, (tokens, passages))
    for number in high:
        matrix[:, number - 1] = -5.0
    return matrix


def test_times_in_top_counts_absolute_values():
    relevance = np.array([[1.0, -3.0, 2.0, 0.0], [0.1, 0.2, 0.3, -9.0]])
    assert times_in_top(relevance, 2).tolist() == [0, 1, 2, 1]


def test_a_passage_without_relevance_is_not_high_in_a_ranking():
    assert times_in_top(np.array([[0.0, 0.0, 0.0, 2.0], [0.0, 0.0, 0.0, 0.0]]), 3).tolist() == [0, 0, 0, 1]


def test_a_passage_is_flagged_if_high_and_labelled_not_relevant():
    labels = {3: False, 4: False, 1: True}
    flags = distractor_flags(a_matrix(), NUMBERS, labels)
    assert flags.passages[2].times == 10
    assert flags.passages[2].flagged
    assert 3 in flags.flagged
    assert not flags.passages[0].flagged
    assert distractor_flags(a_matrix(), NUMBERS, {3: True}).flagged == ()
    assert distractor_flags(a_matrix(), NUMBERS, {}).flagged == ()


def test_exactly_thirty_percent_is_high():
    matrix = np.tile(np.linspace(1.0, 0.1, 12), (10, 1))
    matrix[:3, 11] = 9.0
    flags = distractor_flags(matrix, NUMBERS, {12: False})
    assert (flags.passages[11].times, flags.passages[11].high) == (3, True)
    matrix[2, 11] = 0.0
    assert not distractor_flags(matrix, NUMBERS, {12: False}).passages[11].high


def test_only_the_first_k_tokens_count():
    matrix = np.vstack([np.tile(np.linspace(1.0, 0.1, 12), (10, 1)), a_matrix(30)])
    assert distractor_flags(matrix, NUMBERS, {3: False}).passages[2].times == 10
    assert distractor_flags(matrix, NUMBERS, {12: False}).passages[11].times == 0
    assert distractor_flags(matrix, NUMBERS, {}).tokens == 10


def test_chance_rates_of_the_rule():
    rates = [chance_rate(10, n, Gradient()) for n in (15, 10, 5)]
    assert rates == pytest.approx([0.322, 0.617, 0.988], abs=1e-3)
    assert chance_rate(10, 2, Gradient()) == 1.0


def test_random_rankings_agree_with_the_chance_rate():
    flags = distractor_flags(a_matrix(passages=15), range(1, 16), dict.fromkeys(range(1, 16), False))
    assert flags.random_rate == pytest.approx(flags.chance, abs=0.03)
    assert flags.random_flag_rate > 0.99
    assert distractor_flags(a_matrix(), NUMBERS, {}).random_flag_rate == 0.0


def test_planted_rankings_without_signal_are_flagged_at_chance():
    rng = np.random.default_rng(1)
    high = [distractor_flags(rng.normal(size=(10, 15)), range(1, 16), {7: False}).flagged == (7,) for _ in range(300)]
    assert np.mean(high) == pytest.approx(0.322, abs=0.08)


def test_few_passages_are_said_to_say_little():
    flags = distractor_flags(np.ones((10, 4)), (1, 2, 3, 4), {})
    assert flags.sentence == "With 4 passages this rule flags almost everything and says little."
    assert distractor_flags(a_matrix(), NUMBERS, {}).sentence == ""


def test_concentration_by_hand():
    relevance = [[0.7, -0.1, 0.1, 0.1, 0.0, 0.0]] * 3 + [[0.1, 0.2, 0.2, 0.2, 0.1, 0.2]] * 7
    result = concentration(relevance, (1, 2, 3, 4, 5, 6), (10,) * 6)
    assert (result.fires, result.numbers, result.times[0]) == (True, (1,), 3)
    assert result.ratio == 2.0
    assert "negative result" in result.sentence


def test_concentration_is_relative_to_length():
    relevance = [[0.5, 0.25, 0.25, 0.0, 0.0, 0.0]] * 10
    assert concentration(relevance, range(1, 7), (10,) * 6).numbers == (1,)
    assert concentration(relevance, range(1, 7), (100, 10, 10, 10, 10, 10)).numbers == (2, 3)


def test_five_passages_or_fewer_use_the_lower_ratio():
    relevance = [[0.35, 0.2, 0.2, 0.15, 0.1]] * 10
    result = concentration(relevance, range(1, 6), (10,) * 5)
    assert (result.ratio, result.numbers) == (1.5, (1,))
    assert "after seeing its data" in result.sentence


def test_nothing_to_rank_is_refused():
    with pytest.raises(AttributionError):
        distractor_flags([], NUMBERS, {})
    with pytest.raises(AttributionError):
        concentration([[]], (), ())


@pytest.mark.parametrize(
    ("relevance", "lengths", "rate"),
    [
        ([[0.8, 0.2]], (1, 1), 1.0),  # whichever passage gets 0.8, it is over 1.5 times one half
        ([[0.6, 0.4]], (1, 1), 0.0),
        ([[0.8, 0.2]], (1, 3), 0.5),  # only the short passage can be over its share, and only by 0.8
    ],
)
def test_the_chance_rate_of_concentration_by_hand(relevance, lengths, rate):
    assert concentration(relevance, (1, 2), lengths).random_rate == pytest.approx(rate, abs=0.1)


def test_what_is_concentrated_on_one_passage_fires_more_often_than_in_random_order():
    relevance = np.full((10, 8), 0.1)
    relevance[:, 2] = 0.3
    found = concentration(relevance.tolist(), range(1, 9), (10,) * 8, Gradient(share=0.6))
    assert found.numbers == (3,) and found.random_rate < 0.1
