from __future__ import annotations

import pytest

from engine.models.scripted import ScriptedWriter
from engine.verify.verdict import ask_verdict, judge, parse_verdict
from tests.engine.verify.scripted import WordVerifier


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("It says so.\nagrees", "supportive"),
        ("It says 2.\n5. Therefore: This disagrees with what you said.", "editing_required"),
        ("Not there.\nIrrelevant.", "irrelevant"),
        ("", "unparsed"),
        ("agrees or disagrees", "unparsed"),
        ("This neither agrees nor says more", "unparsed"),
        ("I cannot tell.", "unparsed"),
    ],
)
def test_the_last_line_decides_or_nothing_does(reply, verdict):
    assert parse_verdict(reply)[0] == verdict


def test_a_reply_that_cannot_be_parsed_keeps_its_words():
    ruling, exchange = ask_verdict("f", "e", "c", ScriptedWriter(["Perhaps."]))
    assert (ruling.verdict, ruling.reasoning, exchange.parsed, exchange.reply) == (
        "unparsed",
        "Perhaps.",
        False,
        "Perhaps.",
    )


def test_an_entailment_models_ruling_says_who_and_that_it_was_not_measured():
    ruling = judge([("Ice melts.", "Ice melts.")], WordVerifier())[0]
    assert (ruling.verdict, ruling.unsure) == ("supportive", False)
    assert ruling.note == "supportive by word table, not measured"
    assert sum(ruling.scores.values()) == pytest.approx(1)
