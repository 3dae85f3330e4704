from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.core.settings import Verification
from engine.methods.are.task import Tools
from engine.methods.are.together import in_its_place
from engine.models.scripted import ScriptedWriter
from tests.engine.verify.scripted import WordVerifier
from tests.engine.verify.test_are import run

SAID = "The sum arrived on Monday 8 April from Quill Freight."
RIGHT = "On Monday 8 April the sum arrived from Ardel Trade."
OTHER = "In February the sum arrived from Quill Freight."
CASE = Verification(evidence_from="case")


def outcomes(record):
    return [(fact.fact.text, fact.outcome) for fact in record.facts]


def test_facts_that_hold_one_by_one_and_not_together_are_mended_from_the_sentence_that_holds_the_rest():
    record = run(SAID, (OTHER, RIGHT, "Rain fell all day."), CASE)
    assert outcomes(record) == [
        ("The sum arrived on Monday 8 April", "supported"),
        ("The sum arrived from Quill Freight", "edited"),
    ]
    assert record.revised == "The sum arrived on Monday 8 April from Ardel Trade."
    checks = record.facts[1].iterations[0].checks
    assert {check.ruling.verdict for check in checks} <= {"editing_required", "irrelevant"}
    assert any("Ardel Trade here" in check.ruling.note for check in checks)


@pytest.mark.parametrize(
    "texts",
    [
        (OTHER, "On Monday 8 April the sum arrived."),  # nobody else stands there
        (OTHER, "On Monday 9 April the sum arrived from Ardel Trade."),  # another day: another event
        (OTHER, "On Monday 8 April the sum arrived at Ardel Trade."),  # another place in the sentence
        (OTHER, RIGHT.replace("Ardel Trade", "Quill Freight")),  # together as they are one by one
    ],
)
def test_facts_are_left_alone_where_no_sentence_holds_the_rest_with_another_name(texts):
    record = run(SAID, texts, CASE)
    assert outcomes(record)[1] == ("The sum arrived from Quill Freight", "supported")
    assert all(edit.fact != 1 for edit in record.edits)


def test_it_is_switched_off_with_the_guard_of_names_and_numbers():
    record = run(SAID, (OTHER, RIGHT), replace(CASE, names_and_numbers=False))
    assert outcomes(record)[1] == ("The sum arrived from Quill Freight", "supported")


def test_a_clause_that_names_too_little_beside_is_not_held_against_a_sentence():
    fact, sentence = "It came from Ann Berg", "On Monday the sum of EUR 5 came from Bo Lund"
    assert in_its_place(fact, "The sum came on Monday from Ann Berg", sentence) == ""
    assert in_its_place(fact, "EUR 5 came on 8 April from Ann Berg", f"{sentence} on 8 April") == "Bo Lund"


def test_a_language_models_verdict_is_never_turned():
    tools = Tools(WordVerifier(), judge=ScriptedWriter(lambda _: "So it says.\nagrees"))
    record = run(SAID, (OTHER, RIGHT), CASE, tools)
    assert [outcome for _, outcome in outcomes(record)] == ["supported", "supported"]
    assert not record.edits
