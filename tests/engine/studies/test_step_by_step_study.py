"""Step by step as a study: what a unit measures of a run, and the case that it leaves."""

from __future__ import annotations

import pytest

from engine.analyses.steps import KIND
from engine.cases.case_file import read_case_file
from engine.studies.config import parse_config
from engine.studies.evaluate import evaluate
from tests.engine.studies.stand_ins import StandIns

CONFIG = """
study = "step-by-step"
data = "science-primer"
n = 1
methods = ["cot", "raise"]
judge = "judge"

[settings.reasoning]
k = 3
"""


@pytest.mark.parametrize("plan", ["What moves? | momentum", ""])
def test_a_unit_keeps_its_run_as_the_analysis_of_its_case(sample_home, tmp_path, plan):
    """The model plans one step, or writes no plan at all: RAISE then has no answer, and the unit is unparsed."""

    def said(text):
        return plan if "You plan how" in text else "The answer is (A)."

    found = evaluate(CONFIG, tmp_path / "run", tools=StandIns(parse_config(CONFIG), said, lambda text: "full"))
    assert {row.unit.method for row in found.rows} == {"cot", "raise"} and not found.failures
    for row in found.rows:
        case = read_case_file((tmp_path / "run" / "cases" / f"{row.case}.json").read_bytes()).case
        (solution,) = KIND.of(case)
        searched = row.unit.method == "raise"
        assert solution.method == row.unit.method and case.stamp == case.analyses[0].stamp
        assert row.values["calls"] == solution.cost.calls and (row.values["passages"] is not None) == searched
        assert [analysis.kind for analysis in case.analyses] == ["steps", *["relevance to steps"][:searched]]
        answered = bool(plan) or not searched
        assert case.answer.text == (solution.final.reply if answered else "") and row.unparsed == (not answered)
