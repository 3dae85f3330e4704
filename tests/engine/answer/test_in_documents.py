"""Whether the passages found answer a question: the curve, its order, and the warning."""

import math

import pytest
from msgspec.structs import replace

from engine.answer.in_documents import (
    MIDDLE,
    SLOPE,
    answered_probability,
    doubted,
    nothing_said,
    probability,
    probably_answered,
    unknown,
)
from engine.answer.sentence_scores import Candidate, score_sentences
from engine.core.settings import Retrieval
from engine.core.values import Answer, Case, Passage, Stamp
from engine.models.embedder import load_embedder

BRIDGE = "Hanna Lind built the stone bridge over the Alm in 1874."
CRYSTALS = "Crystals form when the hot solution cools slowly."


def passage(text: str) -> Passage:
    return Passage(id=text[:5], document=text[:5], title="", ordinal=0, start=0, end=len(text), text=text)


def candidate(closeness: float, *, heading: bool = False) -> Candidate:
    return Candidate(number=1, start=0, end=1, score=0.0, closeness=closeness, heading=heading)


def test_the_closest_sentence_decides_and_headings_do_not():
    assert probability([candidate(MIDDLE)]) == pytest.approx(0.5)
    assert probability([candidate(MIDDLE + 0.1), candidate(0.1)]) == pytest.approx(1 / (1 + math.exp(-SLOPE * 0.1)))
    assert probability([candidate(0.1), candidate(2.0, heading=True)]) == probability([candidate(0.1)])
    assert probability([candidate(9.0, heading=True)]) == 0.0


def test_a_question_that_a_passage_answers_is_likelier_than_one_that_none_does():
    embedder = load_embedder()
    question, both = "Who built the stone bridge?", (passage(BRIDGE), passage(CRYSTALS))
    there = answered_probability(question, both, embedder)
    assert there == probability(score_sentences(question, both, embedder))
    assert answered_probability(question, both[1:], embedder) < 0.2 < 0.8 < there
    assert answered_probability(question, both[::-1], embedder) == pytest.approx(there, abs=1e-4)


@pytest.mark.parametrize(("answerable", "warned"), [(None, False), (0.05, True), (0.2, False), (0.9, False)])
def test_only_a_doubt_under_the_setting_is_said(answerable, warned):
    case = Case(
        id="c", question="Who?", passages=(), answer=Answer(text="x"), stamp=Stamp(model="m"), answerable=answerable
    )
    assert bool(doubted(case, Retrieval())) == warned
    assert doubted(case, Retrieval(doubt_under=0.0)) == ""
    assert ("of “bridges” do not" in doubted(replace(case, corpus="bridges"), Retrieval())) == warned


@pytest.mark.parametrize(
    ("answerable", "told"),
    [
        (None, ""),
        (0.49, "The documents may not answer the question (probability that they do: 0.49)."),
        (0.5, "The documents probably answer the question (probability that they do: 0.50)."),
    ],
)
def test_the_probability_is_told_in_a_sentence_except_of_a_refusal(answerable, told):
    case = Case(
        id="c", question="Who?", passages=(), answer=Answer(text="x"), stamp=Stamp(model="m"), answerable=answerable
    )
    assert probably_answered(case) == told
    assert probably_answered(replace(case, answer=Answer(text="x", refused=True))) == ""


def test_an_audit_tells_the_probability_of_its_sources_and_is_not_warned_of():
    audited = Case(
        id="c",
        question="Who?",
        passages=(),
        answer=Answer(text="x"),
        stamp=Stamp(model="m"),
        answerable=0.02,
        origin="imported",
    )
    assert doubted(audited, Retrieval()) == ""
    assert probably_answered(audited) == "The sources may not answer the question (probability that they do: 0.02)."


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), ""),
        ((("orgin", "origin"),), "No document has “orgin”; the nearest word is “origin”."),
        ((("a", ""), ("b", ""), ("c", "")), "No document has “a”, “b” or “c”."),
    ],
)
def test_a_doubt_names_the_words_that_no_document_has_and_a_mistyped_one_is_always_named(words, told):
    answer, stamp = Answer(text="x"), Stamp(model="m")
    case = Case(id="c", question="Who?", passages=(), answer=answer, stamp=stamp, answerable=0.05, unknown_words=words)
    assert unknown(case) == told
    assert doubted(case, Retrieval()).endswith(f" The answer uses the closest passages. {told}".rstrip())
    assert unknown(replace(case, answerable=0.6)) == (told if "nearest" in told else "")
    assert unknown(replace(case, answerable=None)) == ""
    held = Passage(id="p", document="d", title="", ordinal=0, start=0, end=9, text="orgin_A b C: 4")
    assert unknown(replace(case, passages=(held,))) == ""


@pytest.mark.parametrize(
    ("said", "warned"),
    [
        ("Who built the bridge? [cite_1]", "repeats the question"),
        ("who built the bridge", "repeats the question"),
        (" \n", "wrote nothing"),
        ("Lind built the bridge.", ""),
    ],
)
def test_an_empty_answer_and_one_that_is_the_question_are_told(said, warned):
    case = Case(id="c", question="Who built the bridge?", passages=(), answer=Answer(text=said), stamp=Stamp(model="m"))
    assert warned in nothing_said(case) and bool(warned) == bool(nothing_said(case))
    for unasked in (replace(case, origin="imported"), replace(case, answer=Answer(text=said, finished=False))):
        assert "wrote nothing" not in nothing_said(unasked)


@pytest.mark.parametrize("refused", [False, True])
def test_a_doubt_announces_an_answer_only_where_there_is_one(refused):
    answer = Answer(text="x", refused=refused)
    case = Case(id="c", question="Who?", passages=(), answer=answer, stamp=Stamp(model="m"), answerable=0.05)
    assert ("The answer uses" in doubted(case, Retrieval())) == (not refused)
    assert "what the writer would say" not in doubted(case, Retrieval())


def test_a_refusal_by_the_check_says_how_to_see_the_answer():
    asked = Stamp(model="m", settings={"answerable": 0.05})
    answer = Answer(text="x", refused=True)
    case = Case(id="c", question="Who?", passages=(), answer=answer, stamp=asked, answerable=0.05)
    assert "Set “Refuse below this probability” to 0" in doubted(case, Retrieval())


def test_a_question_given_back_with_a_name_before_it_is_told():
    told = "only repeats the question"
    for answer, wanted in (
        ("What rusts? [cite_1]", True),
        ("T. Roe: What rusts? [cite_1]", True),
        ("Iron rusts. [cite_1]", False),
        ("Iron does. It was asked in the second lesson: what rusts?", False),
    ):
        case = Case(id="c", question="What rusts?", passages=(), answer=Answer(text=answer), stamp=Stamp(model="m"))
        assert (told in nothing_said(case)) == wanted
