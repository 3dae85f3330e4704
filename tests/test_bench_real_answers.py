"""The bench of real answers: neighbours, spans, ties, kinds of misses, by hand."""

import numpy as np
import pytest

from bench.real_answers import BOTH_WAYS, Sourced, among_neighbours, hit, kind_of, misses, rows_of, spans_of

TEXTS = {
    "Tin melts at 232 degrees.": "Tin",
    "Tin was melted in the furnace of 1850.": "Tin",
    "Lead melts at 327 degrees, tin at 232 degrees.": "Lead",
    "In 1850 the furnace was lit.": "Furnaces",
    "Ships sail on the sea.": "Ships",
    "The sea is salt.": "Sea",
}


def row(**given):
    """An answer of two tokens, which passage 1 (from 0) makes likely and passage 0 unlikely."""
    own = {
        "question": "What melts?",
        "passages": ("Tin", "Lead melts"),
        "answer": "Lead melts",
        "gold": (1,),
        "starts": [0, 4],
        "full": [-1.0, -2.0],
        "without": [[-0.5, -1.0], [-4.0, -2.5]],
        "alone": [[-3.0, -3.0], [-5.0, -3.0], [-1.0, -2.0]],
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
    assert values["leave-one-out"] == pytest.approx([-1.5, 3.5])
    assert values["alone"] == pytest.approx([-2, 3])
    assert values[BOTH_WAYS] == pytest.approx([0, 6.5])
    assert values["verbatim, then word overlap"] == pytest.approx([0, 1002])
    assert hit(np.array([1.0, 1.0]), (1,)) == 0.5


def test_a_long_answer_is_asked_in_spans_of_its_own_tokens():
    words = list("abcdefghijkl")
    starts = [2 * n for n in range(12)]
    tokens = [-float(n) for n in range(12)]
    spans = spans_of(row(answer=" ".join(words), starts=starts, full=tokens, without=[tokens] * 2, alone=[tokens] * 3))
    assert [span["answer"] for span in spans] == ["a b c d e", "f g h i j"], "a rest of two words is left out"
    assert spans[1]["full"] == tokens[5:10] and spans[1]["starts"] == [0, 2, 4, 6, 8]
    assert np.shape(spans[1]["alone"]) == (3, 5)
    assert [span["answer"] for span in spans_of(row())] == ["Lead melts"]


def test_kinds_of_spans_and_who_misses_them():
    assert kind_of(row()) == "word for word in the source alone"
    assert kind_of(row(passages=("Lead melts", "Lead melts"))) == "the same words in another passage"
    assert kind_of(row(passages=("Tin", "It flows"))) == "word for word nowhere"
    assert kind_of(row(passages=("Tin", "It flows"), question="Which lead melts?")) == "the words of the question"
    said = misses([row(passages=("Lead melts", "Lead melts"))]).splitlines()
    assert said[2] == "| the same words in another passage | 1 | 0 | 0 | 1 |"
