from __future__ import annotations

from msgspec.structs import replace

from engine.cases.importers import imported_case
from engine.cases.review import MarkDraft, Review, append, review_of
from engine.core.values import AuditRecord
from engine.methods.are.backtrack import accepted_ids, proposed, revised
from engine.report.build import facts_report
from tests.engine.are.test_are import ANSWER, run


def case_of(record):
    return imported_case(
        AuditRecord(question=record.question or "When did it open?", passages=(), answer=record.answer)
    )


def test_what_is_accepted_is_what_is_exported():
    record = run()
    edited = ANSWER.replace("1932", "1934")
    for decisions, text in (({}, ANSWER), ({"1": "rejected"}, ANSWER), ({"1": "accepted"}, edited)):
        assert revised(record.checked, record.edits, accepted_ids(decisions)) == text
    case, edit = case_of(record), record.edits[0]
    draft = MarkDraft(
        kind="override", author="Ada", value="accepted", target="edit:1", reason="so it is", machine=proposed(edit)
    )
    review = review_of([append(case, (), draft, "2026-01-01T00:00:00+00:00")])
    assert "(edit 1, accepted)" in facts_report(case, record, review)
    assert "(edit 1, not decided)" in facts_report(case, record, Review())


def test_the_report_shows_every_fact_its_evidence_and_who_says_so_without_markup():
    record = run("The *bridge* <b>opened</b> in 1934.")
    report = facts_report(case_of(record), record, Review())
    assert all(
        fact.fact.text.replace("*", "\\*").replace("<", "\\<").replace(">", "\\>") in report for fact in record.facts
    )
    assert "<b>" not in report.replace("\\<b\\>", "")
    assert "by word table, not measured" in report
    assert "| Attr_r" in report.replace("\\_", "_")


def test_notes_of_several_facts_come_in_the_order_of_the_facts():
    record, names = run(), [f"note {number}" for number in range(12)]
    fact = next(fact for fact in record.facts if fact.ruling)

    def noted(name):
        checks = tuple(replace(check, ruling=replace(check.ruling, note=name)) for check in fact.last.checks)
        return replace(fact, iterations=(replace(fact.last, checks=checks),))

    twice = tuple(noted(name) for name in names for _ in range(2))
    report = facts_report(case_of(record), replace(record, facts=twice), Review())
    places = [report.index(f"{name}.\n") for name in names]
    assert places == sorted(places)
