"""The bench of real answers: neighbours, spans, ties, kinds of misses, by hand."""

from itertools import permutations

import numpy as np
import pytest

from bench.real_answers import (
    BOTH_WAYS,
    Sourced,
    among_neighbours,
    hit,
    kind_of,
    misses,
    rows_of,
    shapley,
    spans_of,
    two_scorers,
)

TEXTS = {
    "Tin melts at 232 degrees.": "Tin",
    "Tin was melted in the furnace of 1850.": "Tin",
    "Lead melts at 327 degrees, tin at 232 degrees.": "Lead",
    "In 1850 the furnace was lit.": "Furnaces",
    "Ships sail on the sea.": "Ships",
    "The sea is salt.": "Sea",
}


def row(**given):
    """An answer of two tokens, which passage 1 (from 0) makes likely and passage 0 unlikely.

    Its probabilities by both passages, by passage 1, by passage 0, by none.
    """
    own = {
        "question": "What melts?",
        "passages": ("Tin", "Lead melts"),
        "answer": "Lead melts",
        "gold": (1,),
        "starts": [0, 4],
        "left_out": np.log([[0.5, 0.5], [0.7, 0.6], [0.1, 0.25], [0.2, 0.25]]).tolist(),
    }
    return {**own, **given}


def test_the_source_stands_among_the_nearest_to_answer_and_question():
    (known,) = among_neighbours("T", [Sourced("When was the furnace lit?", "1850", (list(TEXTS)[3],))], TEXTS, 1)
    assert len(set(known.passages)) == 4 and [known.passages[i] for i in known.gold] == ["In 1850 the furnace was lit."]
    assert "Tin was melted in the furnace of 1850." in known.passages, "it has the answer's words"


def test_another_text_of_the_same_page_with_the_answer_is_left_out():
    (known,) = among_neighbours("T", [Sourced("When?", "tin", ("Tin melts at 232 degrees.",))], TEXTS, 1)
    assert list(TEXTS)[1] not in known.passages and list(TEXTS)[2] in known.passages


def test_values_by_hand():
    values = rows_of(row())
    assert values["leave-one-out"] == pytest.approx(np.log([0.5 * 0.5 / (0.7 * 0.6), 0.5 * 0.5 / (0.1 * 0.25)]))
    assert values["alone"] == pytest.approx(np.log([0.1 / 0.2, 0.7 * 0.6 / (0.2 * 0.25)]))
    assert values[BOTH_WAYS] == pytest.approx([0, 0.4 + 0.25 + 0.5 + 0.35])
    assert values["verbatim, then word overlap"] == pytest.approx([0, 1002])
    assert hit(np.array([1.0, 1.0]), (1,)) == 0.5


def test_shapley_values_by_hand_and_by_all_orders():
    assert shapley(row(), np.exp).sum(1) == pytest.approx([-0.2, 0.75]), "half of what is added first, and last"
    rows = np.random.default_rng(0).normal(size=(16, 3))
    found = np.zeros((4, 3))
    for order in permutations(range(4)):
        left_out = 15
        for j in order:
            found[j] += (rows[left_out ^ 1 << j] - rows[left_out]) / 24
            left_out ^= 1 << j
    assert shapley(row(left_out=rows.tolist(), passages=("",) * 4)) == pytest.approx(found)
    assert found.sum(0) == pytest.approx(rows[0] - rows[15])


def test_a_long_answer_is_asked_in_spans_of_its_own_tokens():
    words = list("abcdefghijkl")
    starts = [2 * n for n in range(12)]
    tokens = [-float(n) for n in range(12)]
    spans = spans_of(row(answer=" ".join(words), starts=starts, left_out=[tokens] * 4))
    assert [span["answer"] for span in spans] == ["a b c d e", "f g h i j"], "a rest of two words is left out"
    assert spans[1]["left_out"] == [tokens[5:10]] * 4 and spans[1]["starts"] == [0, 2, 4, 6, 8]
    assert [span["answer"] for span in spans_of(row())] == ["Lead melts"]


def test_kinds_of_spans_and_who_misses_them():
    assert kind_of(row()) == "word for word in the source alone"
    assert kind_of(row(passages=("Lead melts", "Lead melts"))) == "the same words in another passage"
    assert kind_of(row(passages=("Tin", "It flows"))) == "word for word nowhere"
    assert kind_of(row(passages=("Tin", "It flows"), question="Which lead melts?")) == "the words of the question"
    said = misses([row(passages=("Lead melts", "Lead melts"))]).splitlines()
    assert said[2] == "| the same words in another passage | 1 | 0 | 0 | 1 |"


def test_two_scorers_are_compared_on_the_answers_of_both():
    wrong = row(left_out=np.log([[0.5, 0.5], [0.1, 0.25], [0.7, 0.6], [0.2, 0.25]]).tolist())
    larger = [row(id=f"NQ {n}") for n in range(4)]
    smaller = [row(id="NQ 0"), {**wrong, "id": "NQ 1"}, row(id="NQ 9")]
    lines = two_scorers(("larger", "smaller"), (larger, smaller)).splitlines()
    first, second = [line for line in lines if line.startswith(f"| {BOTH_WAYS} |")]
    assert lines[0] == "Answers: 2 of NQ, 0 of CLAP NQ, 0 of HotpotQA.", "NQ 0 and NQ 1 alone"
    assert first.startswith(f"| {BOTH_WAYS} | larger | 1.00 |  |  | 1.00 (") and "| +0.500 (" in first
    assert second.startswith(f"| {BOTH_WAYS} | smaller | 0.50 |  |  | 0.50 (") and second.endswith("|  |")
