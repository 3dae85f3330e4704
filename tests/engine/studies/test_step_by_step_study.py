"""Step by step as a study: what a unit measures of a run, and the case that it leaves."""

from __future__ import annotations

import pytest

from engine.analyses.steps import KIND
from engine.cases.case_file import read_case_file
from engine.studies.catalogue.step_by_step import results
from engine.studies.config import parse_config
from engine.studies.evaluate import evaluate
from engine.studies.values import Failure, Row, Unit
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


def row(example, method, correct):
    unit = Unit(example=example, method=method, seed=1)
    if correct is None:
        return Row(unit=unit, state="failed", failure=Failure(type="ModelError", message="gone"))
    return Row(unit=unit, state="done", values={"correct": correct, "domain": example[:-1], "passages": None})


def test_a_failed_problem_is_wrong_in_its_own_domain():
    """RAISE fails both problems of physics and is right on the one of biology; CoT is wrong on one of physics."""
    rows = [row("physics1", "cot", 1.0), row("physics2", "cot", 0.0), row("biology1", "cot", 1.0)]
    rows += [row("physics1", "raise", None), row("physics2", "raise", None), row("biology1", "raise", 1.0)]
    found = results(parse_config(CONFIG), rows)
    tables = {table.name: table for table in found.tables}
    shown = [(line[0], *(cell.value for cell in line[2:])) for line in tables["by_domain"].rows]
    assert shown == [("biology", 1.0, 1.0), ("physics", 0.0, 0.5)]
    bars = {series.name: dict(zip(series.x, series.y, strict=True)) for series in found.figures[1].series}
    assert bars == {"CoT": {"biology": 1.0, "physics": 0.5}, "RAISE": {"biology": 1.0, "physics": 0.0}}
    alone = results(parse_config(CONFIG), [*rows[:3], *(row(r.unit.example, "raise", None) for r in rows[3:])])
    assert {line[0]: line[1].value for line in alone.tables[0].rows} == {"RAISE": 0.0, "CoT": pytest.approx(2 / 3)}
