from __future__ import annotations

import math

import pytest

from engine.methods.are.values import Ruling
from engine.methods.are.verdict import ask_verdict, judge, parse_verdict
from engine.models.scripted import ScriptedScorer, ScriptedWriter
from tests.engine.are.scripted import WordVerifier


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
        ("It says 2.\n\n**disagrees**\n\nLet me know if you need more.", "editing_required"),
        ("Answer: agrees", "supportive"),
        ("agrees\nbut then again it\ndisagrees", "unparsed"),
        ("I don't think that it agrees", "unparsed"),
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


def test_a_model_that_scores_rules_by_likelihood_and_is_never_unparsed():
    nats = {"agrees": math.log(0.1), "disagrees": math.log(0.2), "irrelevant": math.log(0.1)}
    model = ScriptedScorer(lambda passages, words, t: nats[words[t]])
    ruling, exchange = ask_verdict("f", "e", "c", model)
    assert (ruling.verdict, ruling.unsure, ruling.reasoning) == ("editing_required", True, "")
    assert ruling.scores == {"supportive": 0.25, "editing_required": 0.5, "irrelevant": 0.25}
    assert ruling.note == "editing required by scripted-scorer, not measured; unsure"
    assert (exchange.parsed, exchange.reply) == (True, "")
    assert exchange.probabilities == pytest.approx({"agrees": 0.25, "disagrees": 0.5, "irrelevant": 0.25})
    assert exchange.prompt.endswith("Answer with one of these: agrees, disagrees, irrelevant.")


def test_an_entailment_models_ruling_says_who_and_that_it_was_not_measured():
    ruling = judge([("Ice melts.", "Ice melts.")], WordVerifier())[0]
    assert (ruling.verdict, ruling.unsure) == ("supportive", False)
    assert ruling.note == "supportive by word table, not measured"
    assert sum(ruling.scores.values()) == pytest.approx(1)


def test_a_ruling_on_other_grounds_tells_them_and_what_the_verifier_says():
    ruling = Ruling(verdict="irrelevant", by="embedded", note="irrelevant by embedded").because("two; reasons")
    assert (ruling.verdict, ruling.grounds) == ("supportive", "two; reasons")
    assert ruling.note == "supportive, because two; reasons; else irrelevant by embedded"
    assert Ruling(verdict="supportive", by="embedded", note="supportive by embedded").grounds == ""
