from __future__ import annotations

from engine.methods.are.export import accepted_text, as_markdown
from tests.engine.are.test_are import ANSWER, run


def test_what_is_accepted_is_what_is_exported():
    record = run()
    edited = ANSWER.replace("1932", "1934")
    assert accepted_text(record, {}) == ANSWER
    assert accepted_text(record, {"1": "rejected"}) == ANSWER
    assert accepted_text(record, {"1": "accepted"}) == edited
    report = as_markdown(record, {"1": "accepted"})
    assert edited in report
    assert '1: "1932" becomes "1934" (accepted)' in report
    assert "not decided, not put in" in as_markdown(record, {})


def test_the_report_shows_every_fact_its_evidence_and_who_says_so_without_markup():
    record = run("The *bridge* <b>opened</b> in 1934.")
    report = as_markdown(record, {})
    assert all(
        fact.fact.text.replace("*", "\\*").replace("<", "\\<").replace(">", "\\>") in report for fact in record.facts
    )
    assert "<b>" not in report.replace("\\<b\\>", "")
    assert "by word table, not measured" in report
    assert "| Attr_r |" in report.replace("\\_", "_")
