"""A writer that is asked first whether the passages answer: below the threshold it refuses, else it answers."""

from __future__ import annotations

import pytest

from engine.answer.prompt import REFUSAL
from engine.answer.write import prompting, refusing
from engine.core.settings import Decoding, Prompting
from engine.models.scripted import ScriptedScorer
from tests.tiny import passages

YES = 0.25
LOGS = {"yes": -1.3862943611198906, "no": -0.2876820724517809}  # ln 0.25 and ln 0.75


def asked(threshold: float):
    model = ScriptedScorer(lambda given, words, t: LOGS.get(words[t], -3.0), ["Hanna Lind built it [cite_1]."])
    write = refusing(prompting(model, Prompting(), Decoding()), model, Prompting(), threshold)
    return write("Who built the bridge?", passages(2))


def test_below_the_threshold_nothing_is_written():
    written = asked(0.3)
    assert written.answer.text == REFUSAL and written.answer.refused and written.answer.tokens
    assert written.prompt.numbers == (1, 2)
    assert written.stamp.settings["answerable"] == pytest.approx(YES)


def test_from_the_threshold_on_it_answers_and_the_stamp_says_how_sure_it_was():
    written = asked(0.2)
    assert written.answer.text == "Hanna Lind built it [cite_1]." and not written.answer.refused
    assert written.stamp.settings["answerable"] == pytest.approx(YES)
