"""A writer that is asked first whether the passages answer: below the threshold it refuses, else it answers."""

from __future__ import annotations

import pytest

from engine.answer.in_documents import answered_probability, together
from engine.answer.prompt import REFUSAL
from engine.answer.write import prompting, refusing
from engine.core.settings import REFUSE, Decoding, Prompting
from engine.models.embedder import load_embedder
from engine.models.scripted import ScriptedScorer
from tests.tiny import passages

QUESTION, YES = "Who built the bridge?", 0.25
LIKELY = together(YES, answered_probability(QUESTION, passages(2), load_embedder()))
LOGS = {"yes": -1.3862943611198906, "no": -0.2876820724517809}  # ln 0.25 and ln 0.75


def asked(threshold: float):
    model = ScriptedScorer(lambda given, words, t: LOGS.get(words[t], -3.0), ["Hanna Lind built it [cite_1]."])
    write = refusing(prompting(model, Prompting(), Decoding()), model, load_embedder(), Prompting(), threshold)
    return write(QUESTION, passages(2))


def test_a_small_writer_refuses_by_default():
    assert Prompting().refuse_under_for("embedded") == REFUSE
    assert Prompting().refuse_under_for("reader") == Prompting().refuse_under_for("another") == 0
    assert Prompting(refuse_under=0.0).refuse_under_for("embedded") == 0


def test_below_the_threshold_nothing_is_written():
    written = asked(LIKELY + 0.01)
    assert written.answer.text == REFUSAL and written.answer.refused and written.answer.tokens
    assert written.prompt.numbers == (1, 2)
    assert written.stamp.settings["answerable"] == pytest.approx(LIKELY)


def test_from_the_threshold_on_it_answers_and_the_stamp_says_how_sure_it_was():
    written = asked(LIKELY - 0.01)
    assert written.answer.text == "Hanna Lind built it [cite_1]." and not written.answer.refused
    assert written.stamp.settings["answerable"] == pytest.approx(LIKELY)
