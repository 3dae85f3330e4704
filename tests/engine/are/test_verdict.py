from __future__ import annotations

import math

import pytest

from engine.methods.are.values import Ruling
from engine.methods.are.verdict import ask_verdict, judge, judged_twice, mean, parse_verdict
from engine.models.protocols import Judged
from engine.models.scripted import ScriptedScorer, ScriptedWriter
from engine.models.verdicts import Thresholds
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


def scored(verdict, supportive, editing, window=(0, 0), windows=1):
    scores = {"supportive": supportive, "editing_required": editing, "irrelevant": 1 - supportive - editing}
    return Judged(verdict, scores, window, windows)


class ByText:
    """Gives what a table has for the text that is read."""

    name, thresholds = "table", Thresholds(supportive=0.3, editing_required=0.4)

    def __init__(self, known):
        self.known, self.read = known, []

    def judge(self, pairs, watch=None):
        self.read += [text for _, text in pairs]
        return [self.known[text] for _, text in pairs]


def test_a_fact_is_judged_by_the_mean_of_its_evidence_and_of_the_sentence_on_it_alone():
    text = "The gate opened in May. It was cold."
    whole, alone = scored("editing_required", 0.25, 0.45, (0, 36), 2), scored("supportive", 0.75, 0.05)
    verifier = ByText({text: whole, text[:23]: alone})
    (found,) = judged_twice([("The gate opened in May", text, (0, 23))], verifier)
    assert found == scored("supportive", 0.5, 0.25, (0, 23), 2)  # 0.5 / 0.3 is more than 0.25 / 0.4
    assert mean(alone, whole, (5, 9), verifier.thresholds).scores == found.scores
    assert mean(whole, whole, (5, 9), verifier.thresholds) == whole


def test_two_readings_that_disagree_do_not_make_a_fact_irrelevant():
    for_it, against = scored("supportive", 0.9, 0.05), scored("editing_required", 0.05, 0.92)
    assert mean(for_it, against, (0, 9), Thresholds()).verdict == "editing_required"
    silent, least = scored("irrelevant", 0.4, 0.1), Thresholds(editing_required=0.6)
    assert mean(silent, against, (0, 9), least).verdict == "irrelevant"


def test_evidence_that_is_one_sentence_or_has_a_table_is_read_once():
    table = "It rained.\n\n| Town | Trains |\n|---|---|\n| Cork | 20 |\n| Riga | 30 |\n"
    verifier = ByText({" Ice melts. ": scored("supportive", 0.9, 0.0), table: scored("supportive", 0.6, 0.1)})
    judged = judged_twice([("Ice melts", " Ice melts. ", (1, 11)), ("Cork has 20", table, (0, 10))], verifier)
    assert judged == list(verifier.known.values())
    assert verifier.read == list(verifier.known)
    assert judged_twice([], verifier) == []
