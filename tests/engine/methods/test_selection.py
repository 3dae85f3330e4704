"""Adaptive selection: votes, both expansions, floor, cap, all on numbers that can be checked on paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from engine.answer.context import without_overlap
from engine.core.settings import Selection
from engine.core.values import Passage
from engine.methods.attr_rag import (
    as_published,
    by_best_set,
    chain,
    fill_gaps,
    missing_ordinals,
    neighbour,
    select,
    votes,
)

METRICS = ("cosine", "jaccard", "rouge_1", "rouge_2", "rouge_l", "rouge_lsum")
NO_FLOOR: dict[str, float] = {}


def same_in_all(values):
    return dict.fromkeys(METRICS, tuple(values))


def test_each_metric_votes_for_its_largest_and_ties_vote_for_each():
    alphas = {"cosine": (0.2, 0.5, 0.1), "jaccard": (0.4, 0.4, 0.0), "rouge_1": (0.0, 0.0, 0.3)}
    assert votes(alphas, NO_FLOOR) == (1, 2, 1)


def test_most_votes_win_then_mean_alpha_then_rank():
    alphas = {"cosine": (0.9, 0.1), "jaccard": (0.1, 0.2)}
    assert select(alphas, NO_FLOOR).primary == 0
    assert select({"cosine": (0.5, 0.1), "jaccard": (0.1, 0.5)}, NO_FLOOR).primary == 0


def test_chain_walks_from_the_top_while_steps_are_small():
    assert chain([0.50, 0.46, 0.41, 0.30, 0.29], 0.05) == {0, 1, 2}
    assert chain([0.90, 0.85], 0.05) == {0, 1}


def test_neighbour_takes_small_steps_anywhere():
    assert neighbour([0.90, 0.46, 0.41, 0.30, 0.29], 0.05) == {1, 3}


def test_a_set_joins_when_three_metrics_choose_it():
    close, far = (0.50, 0.47, 0.10, 0.0), (0.50, 0.20, 0.10, 0.0)
    three = {m: close if i < 3 else far for i, m in enumerate(METRICS)}
    two = {m: close if i < 2 else far for i, m in enumerate(METRICS)}
    assert select(three, NO_FLOOR).chosen == (0, 1)
    assert select(two, NO_FLOOR).chosen == (0,)
    assert select(three, NO_FLOOR).chosen_by[1] == METRICS[:3]
    assert select(two, NO_FLOOR, Selection(min_metrics=2)).chosen == (0, 1)


def test_nothing_under_the_floor_is_chosen_or_votes():
    alphas = same_in_all((0.30, 0.28, 0.26, 0.01))
    result = select(alphas, dict.fromkeys(METRICS, 0.27), Selection(max_share=1.0))
    assert result.chosen == (0, 1)
    assert sum(result.votes) == 6


def test_no_set_changed_the_answer_keeps_the_re_ranked_top_and_says_so():
    result = select(same_in_all((0.0, 0.0, 0.0, 0.0)), dict.fromkeys(METRICS, 0.1))
    assert (result.primary, result.chosen) == (None, (0, 1))
    assert "No set changed the answer" in result.notes[0]


def test_sets_that_change_no_more_than_an_unrelated_passage_are_not_said_to_change_nothing():
    result = select(same_in_all((0.0, 0.1, 0.1, 0.0)), dict.fromkeys(METRICS, 0.1))
    assert (result.primary, result.chosen) == (None, (0, 1))
    assert result.notes == ("No set is above its floor in any metric; the first 2 of 4 in re-rank order are kept.",)


def test_every_set_says_why_it_was_kept_or_dropped_and_what_the_paper_would_have_kept():
    """By hand. Chain 0.50, 0.48, 0.46 under a cap of two; 0.20 is under the floor, 0 changed nothing."""
    result = select(same_in_all((0.50, 0.48, 0.46, 0.20, 0.0)), dict.fromkeys(METRICS, 0.3))
    assert (result.limit, result.chosen) == (2, (0, 1))
    assert result.reasons == (
        "Kept: it has the most votes (6 of 6 metrics).",
        "Kept: 6 of 6 metrics choose it, 3 are needed.",
        "Dropped by the limit of 2 sets: 6 of 6 metrics choose it, 3 are needed.",
        "Dropped: under its floor in every metric.",
        "Dropped: the answer is the same without it.",
    )
    assert result.without_floor == (0, 1)
    # Literally: 0.50 and 0.48 exceed the next lower by 0.02; 0.46 exceeds 0.20 by 0.26; nothing caps.
    assert result.by_paper == (0, 1)
    few = select({m: (0.5, 0.47, 0.1) if i < 2 else (0.5, 0.2, 0.1) for i, m in enumerate(METRICS)}, NO_FLOOR)
    assert few.reasons[1] == "Dropped: 2 of 6 metrics choose it, 3 are needed."
    closed = select(same_in_all((0.2, 0.4, 0.38)), dict.fromkeys(METRICS, 0.5))
    assert closed.reasons[0] == "Kept: no metric chose a set, and it is among the first 1 in re-rank order."
    assert (closed.without_floor, closed.by_paper) == ((1,), (1,))
    assert closed.reasons_without_floor == (
        "Dropped: 0 of 6 metrics choose it, 3 are needed.",
        "Kept: it has the most votes (6 of 6 metrics).",
        "Dropped by the limit of 1 sets: 6 of 6 metrics choose it, 3 are needed.",
    )
    assert closed.why(1) == (
        "Dropped: under its floor in every metric.",
        "Kept: it has the most votes (6 of 6 metrics).",
        "kept",
    )
    assert [result.why(j)[1:] for j in (0, 4)] == [("the same", "kept"), ("the same", "dropped")]


def test_two_sets_with_as_many_votes_say_what_decided():
    """By hand, read literally: each is the top of three metrics, and neither is near a lower neighbour in any."""
    alphas = {m: (0.5, 0.3, 0.1) if i < 3 else (0.3, 0.6, 0.1) for i, m in enumerate(METRICS)}
    found = select(alphas, NO_FLOOR, Selection(expansion="neighbour", max_share=1.0))
    assert (found.votes, found.primary, found.chosen) == ((3, 3, 0), 1, (1,))
    assert found.reasons[:2] == (
        "Dropped: it loses a tie in votes by its mean or rank; 0 of 6 metrics choose it, 3 are needed.",
        "Kept: it has the most votes (3 of 6 metrics) and wins a tie by its mean or rank.",
    )


def test_by_the_paper_three_metrics_are_needed_whatever_the_setting():
    two_metrics = {m: (0.5, 0.22, 0.2) if i < 2 else (0.5, 0.35, 0.2) for i, m in enumerate(METRICS)}
    easy = Selection(min_metrics=2, expansion="neighbour", max_share=1.0)
    assert select(two_metrics, NO_FLOOR, easy).chosen == (0, 1)
    assert select(two_metrics, NO_FLOOR, easy).by_paper == (0,)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0, 1))
def test_without_floor_and_cap_are_the_rules_of_their_settings(values, floor):
    floors = dict.fromkeys(METRICS, floor)
    found = select(same_in_all(values), floors)
    assert found.without_floor == select(same_in_all(values), NO_FLOOR).chosen
    assert found.by_paper == select(same_in_all(values), floors, as_published(Selection())).chosen
    assert len(found.reasons) == len(values)
    assert all(r.startswith("Kept") == (j in found.chosen) for j, r in enumerate(found.reasons))


def test_the_cap_binds_and_keeps_the_primary():
    alphas = same_in_all((0.30, 0.31, 0.32, 0.33))
    result = select(alphas, NO_FLOOR)
    assert (result.limit, result.capped, result.primary) == (2, True, 3)
    assert result.chosen == (2, 3)
    assert "cap of 2 of 4" in result.notes[0]


def test_an_even_spread_needs_the_cap():
    """Thirty alphas spread evenly over 0.3: the chain takes all of them in most draws (about nine in ten)."""
    rng = np.random.default_rng(0)
    draws = [chain(rng.uniform(0.2, 0.5, 30).tolist(), 0.05) for _ in range(300)]
    assert np.mean([len(draw) == 30 for draw in draws]) > 0.8
    result = select(same_in_all(rng.uniform(0.2, 0.5, 30)), NO_FLOOR)
    assert len(result.chosen) == result.limit == 15


def test_one_set_is_always_kept():
    assert select(same_in_all((0.4,)), NO_FLOOR).chosen == (0,)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8, unique=True), st.randoms())
def test_the_choice_does_not_depend_on_the_order_of_distinct_alphas(values, random):
    order = list(range(len(values)))
    random.shuffle(order)
    settings = Selection(max_share=1.0)
    first = select(same_in_all(values), NO_FLOOR, settings)
    second = select(same_in_all([values[i] for i in order]), NO_FLOOR, settings)
    if first.primary is not None:
        assert {order[j] for j in second.chosen} == set(first.chosen)


def passage(ordinal, document="d", start=None, text=None):
    start = ordinal * 10 if start is None else start
    text = text or f"chunk {ordinal:03d}."
    return Passage(
        id=f"{document}{ordinal}",
        document=document,
        title="",
        ordinal=ordinal,
        start=start,
        end=start + len(text),
        text=text,
    )


def test_gaps_of_two_are_filled_and_wider_ones_are_not():
    assert missing_ordinals([55, 57, 59], 2) == (56, 58)
    assert missing_ordinals([55, 58], 2) == ()
    assert missing_ordinals([55, 58], 3) == (56, 57)


def test_filling_takes_passages_from_the_document_itself():
    library = {("d", n): passage(n) for n in range(54, 61)}
    kept = [passage(57), passage(55), passage(59), passage(3, "e"), passage(5, "e")]
    added = fill_gaps(kept, lambda document, ordinal: library.get((document, ordinal)), 2)
    assert [(p.document, p.ordinal) for p in added] == [("d", 56), ("d", 58)]
    final = by_best_set(kept, added)
    assert [(p.document, p.ordinal) for p in final] == [*(("d", n) for n in range(55, 60)), ("e", 3), ("e", 5)]


def test_documents_come_in_the_order_of_their_best_set():
    final = by_best_set([passage(7, "b"), passage(2, "a"), passage(1, "b")], [])
    assert [(p.document, p.ordinal) for p in final] == [("b", 1), ("b", 7), ("a", 2)]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 15)), min_size=1, max_size=6))
def test_no_character_stands_twice(spans):
    document = "".join(chr(0x4E00 + i) for i in range(60))
    ordered = sorted(spans)
    chunks = [
        passage(i, start=start, text=document[start : start + length]) for i, (start, length) in enumerate(ordered)
    ]
    trimmed = without_overlap(chunks)
    text = "".join(p.text for p in trimmed)
    assert len(set(text)) == len(text)
    assert set(text) == set("".join(p.text for p in chunks))
    assert all(document[p.start : p.end] == p.text for p in trimmed)


def test_passages_without_overlap_keep_their_ids():
    assert without_overlap([passage(0), passage(1)]) == [passage(0), passage(1)]
    assert without_overlap([passage(0), passage(1, start=5)])[1].id == "d1+5"


@pytest.mark.parametrize("share", [0.01, 0.34, 1.0])
def test_the_limit_is_a_share_of_the_sets_and_at_least_one(share):
    assert select(same_in_all((0.1, 0.2, 0.3)), NO_FLOOR, Selection(max_share=share)).limit == max(1, int(share * 3))
