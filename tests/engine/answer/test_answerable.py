"""Whether passages answer: the probability of "yes", or what the reply says."""

from __future__ import annotations

import math

import pytest

from engine.answer.write import answerable
from engine.models.scripted import ScriptedScorer, ScriptedWriter
from tests.tiny import passages


def test_the_probability_of_yes_by_hand():
    """Each passage adds one nat to "yes": with two of them e^2 to 1."""
    model = ScriptedScorer(lambda given, words, t: float(len(given)) if words[t] == "yes" else 0.0)
    found = answerable(model, "Who built it?", passages(2))
    assert (found.option, found.by) == ("yes", "likelihood")
    assert found.probabilities["yes"] == pytest.approx(math.exp(2) / (math.exp(2) + 1))
    assert found.prompt.numbers == (1, 2)
    assert found.prompt.text.endswith("Question: Who built it?\n\nAnswer with one of these: yes, no.")


@pytest.mark.parametrize(("reply", "option"), [("They name her.\nyes", "yes"), ("No.", "no"), ("Perhaps.", None)])
def test_a_reply_is_read(reply, option):
    found = answerable(ScriptedWriter([reply]), "Who built it?", passages(1))
    assert (found.option, found.by, found.reply) == (option, "reply", reply)
