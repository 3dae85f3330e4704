"""Step by step as a study: what a unit measures of a run, and the case that it leaves."""

from __future__ import annotations

import pytest

from engine.analyses.steps import KIND
from engine.cases.case_file import read_case_file
from engine.core.errors import PromptTooLong
from engine.models.scripted import ScriptedWriter
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


def measured(example, method, **values):
    done = {"state": "done", "calls": 1, "steps": 0, **values}
    return Row(unit=Unit(example=example, method=method, seed=1), state="done", values=done)


def test_a_failed_problem_counts_in_the_measures_that_it_has():
    """CoT answers a multiple-choice problem and an open one, RAISE fails on both."""
    rows = [measured("chosen", "cot", correct=1.0), measured("open", "cot", rouge_l=0.5)]
    rows += [row("chosen", "raise", None), row("open", "raise", None), measured("more", "raise", correct=1.0)]
    found = results(parse_config(CONFIG), rows)
    lines = {
        line[0]: dict(zip([c.name for c in found.tables[0].columns], line, strict=True))
        for line in found.tables[0].rows
    }
    accuracy, rouge = lines["RAISE"]["accuracy"], lines["RAISE"]["ROUGE-L, open"]
    assert [(m.value, m.n) for m in (accuracy, rouge)] == [(0.5, 2), (0.0, 1)]
    (against,) = found.tables[1].rows
    assert (against[1].value, against[1].n) == (1.0, 1)


def test_a_run_whose_option_was_asked_for_is_counted():
    rows = [measured("one", "cot", correct=1.0, calls=2), measured("two", "cot", correct=1.0)]
    rows += [
        measured("one", "raise", correct=1.0, calls=7, steps=2),
        measured("two", "raise", correct=1.0, calls=6, steps=2),
    ]
    (table, *_) = results(parse_config(CONFIG), rows).tables
    place = [column.name for column in table.columns].index("option asked")
    assert [line[place] for line in table.rows] == [1, 1]


class Short(ScriptedWriter):
    """A judge whose window no prompt fits."""

    def generate(self, prompt, decoding, on_text=None, watch=None):
        raise PromptTooLong("The prompt is too long.")


def test_a_judge_that_fails_leaves_the_answer_as_it_is(sample_home, tmp_path):
    config = parse_config(CONFIG.replace('["cot", "raise"]', '["raise"]'))
    tools = StandIns(config, lambda text: "What? | it" if "You plan how" in text else "The answer is (A).", str)
    tools.judge = Short([], "judge")
    (only,) = evaluate(CONFIG.replace('["cot", "raise"]', '["raise"]'), tmp_path / "run", tools=tools).rows
    assert only.state == "done" and only.values["correct"] is not None
    assert "levels" not in only.values and only.missing["levels"] == "The prompt is too long."
