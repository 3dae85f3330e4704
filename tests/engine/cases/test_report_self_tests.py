"""The report prints the kept self-test of each model that the case used, or says how to make one."""

from __future__ import annotations

from msgspec.structs import replace

from engine.core.values import Answer, Case, Stamp
from engine.models.self_test import SelfTestCheck, remember
from engine.report.build import html_report


class Model:
    name, revision, dtype = "scribe", "abc123", "float32"


CASE = Case(
    id="c",
    question="Why?",
    passages=(),
    answer=Answer(text="Because."),
    stamp=Stamp(model="scribe", revision="abc123", dtype="float32"),
)


def test_a_model_without_a_kept_test_says_how_to_make_one():
    assert "python -m engine self-test scribe" in html_report(CASE)


def test_the_kept_test_of_that_very_revision_is_printed():
    remember(Model(), (SelfTestCheck(name="gradients finite", passed=False, detail="not at token 3", figure=0.25),))
    report = html_report(CASE)
    assert "gradients finite" in report
    assert "failed" in report
    assert "not at token 3" in report
    other = replace(CASE, stamp=replace(CASE.stamp, revision="another"))
    assert "gradients finite" not in html_report(other)


def test_a_quoting_reader_has_nothing_to_test():
    case = replace(CASE, stamp=Stamp(model="reader", revision="all-MiniLM-L6-v2"))
    assert "Self-tests of the models" not in html_report(case)
