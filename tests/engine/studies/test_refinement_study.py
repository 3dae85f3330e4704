"""The whole study under a script: what each condition writes is known, so every table can be worked out."""

import msgspec
import pytest

from engine.cases.case_file import read_case_file
from engine.core.errors import BudgetSpent, ServerError
from engine.studies.config import parse_config
from engine.studies.evaluate import evaluate
from engine.studies.plan import plan
from tests.engine.studies.stand_ins import StandIns

CONFIG = """
study = "refinement"
data = "{data}"
seeds = [1337, 2024]
model = "embedded"
judge = "{judge}"

[options]
conditions = ["A", "B", "D", "E"]
pairs = ["D-A", "E-A"]
"""
GOOD, BAD = "Copper conducts heat [cite_1].", "Copper is blue cheese [cite_1]."


def record(number, passages, answer="Copper"):
    return {
        "id": f"q{number}",
        "question": f"What does copper do, number {number}?",
        "passages": passages,
        "short_answers": [answer],
    }


@pytest.fixture
def data(tmp_path):
    """Five questions with a relevant and an irrelevant passage each."""
    passages = [{"text": "Copper conducts heat.", "relevant": True}, {"text": "Tin is soft.", "relevant": False}]
    path = tmp_path / "data.jsonl"
    path.write_bytes(b"\n".join(msgspec.json.encode(record(n, passages)) for n in range(5)))
    return path


def reply(text):
    """D's fixed critique gets the good answer, everything else the bad one."""
    return GOOD if "memory" in text.casefold() and BAD in text else BAD


def table(found, name):
    (one,) = [table for table in found.results.tables if table.name == name]
    return {row[0]: dict(zip([c.name for c in one.columns[1:]], row[1:], strict=True)) for row in one.rows}


def run(data, folder, judge=None, **more):
    text = CONFIG.format(data=data, judge="judge" if judge else "")
    return evaluate(text, folder, tools=StandIns(parse_config(text), reply, judge, **more))


def test_scores_comparisons_and_flag_rates_are_those_of_what_was_written(data, tmp_path):
    found = run(data, tmp_path / "run")
    assert len(found.rows) == 10 and not found.failures
    scores = table(found, "scores")
    assert scores["A"]["NLI citation precision"].value == 0 and scores["D"]["NLI citation precision"].value == 1
    assert scores["D"]["RFCP"].value == 1 and scores["D"]["RFCP"].n == 5  # questions, not runs
    assert scores["D"]["STR-EM"].value == 1
    (one,) = [t for t in found.results.tables if t.name == "comparisons"]
    precision = {row[0]: row for row in one.rows if row[1] == "NLI citation precision"}
    assert precision["D - A"][2].value == 1 and precision["D - A"][3:6] == (5, 0, 0)
    assert precision["E - A"][2].value == 0 and precision["E - A"][3:6] == (0, 0, 5)
    rates = table(found, "flag_rates")
    assert (rates["E"]["fires"], rates["E"]["of"]) == (10, 10)
    assert any("judge" in note.casefold() for note in found.results.notes)


def test_a_gated_condition_that_did_not_fire_is_a(data, tmp_path):
    found = run(data, tmp_path / "run")
    gated = table(found, "gated")["D"]
    s3 = {row.values["s3"] for row in found.rows}
    assert s3 == {1 / 3}  # copper is there, blue cheese is not: under the fixed threshold, so that D fires everywhere
    assert gated["fired"] == 10 and gated["NLI citation precision"].value == 1


def test_the_judge_is_counted_where_its_orders_agree(data, tmp_path):
    def judge(text):
        """Whoever conducts heat is better grounded; question 3 gets nonsense. E wrote A's text: nobody is asked."""
        if "number 3?" in text:
            return "I would rather not say."
        x, y = text.split("Answer X")[-1].split("Answer Y")[:2] if "Answer Y" in text else (text, text)
        return "Verdict: tie" if ("heat" in x) == ("heat" in y) else f"Verdict: {'X' if 'heat' in x else 'Y'}"

    found = run(data, tmp_path / "run", judge)
    judged = table(found, "judge")
    assert judged["D against A"]["unparsed"] == 2 and judged["E against A"]["unparsed"] == 0
    assert judged["E against A"]["ties"] == 10
    assert sum(row.unparsed for row in found.rows) == 2


def test_a_unit_that_fails_is_counted_and_the_others_stand(data, tmp_path):
    found = run(data, tmp_path / "run", refuses=lambda text: "number 2?" in text)
    assert [row.state for row in found.rows].count("done") == 10  # a condition fails, not its unit
    outcomes = table(found, "outcomes")
    assert outcomes["A"]["failed"] == 2 and outcomes["A"]["answered"] == 8
    assert table(found, "scores")["A"]["STR-EM"].n == 5  # no answer is no substring: it stays in the denominator
    assert table(found, "scores")["D"]["STR-EM"].value == pytest.approx(4 / 5)


@pytest.mark.parametrize("error", [BudgetSpent, ServerError])
def test_a_spent_budget_or_a_server_that_is_gone_fails_no_condition_and_the_run_resumes(data, tmp_path, error):
    asked = []

    def leaving(text):
        asked.append(text)
        if len(asked) > 12:
            raise error("It is over.")
        return reply(text)

    text = CONFIG.format(data=data, judge="")
    with pytest.raises(error, match="2 of 10 units are saved"):
        evaluate(text, tmp_path / "run", tools=StandIns(parse_config(text), leaving))
    found = evaluate(text, tmp_path / "run", resume=True, tools=StandIns(parse_config(text), reply))
    assert {v["outcome"] for row in found.rows for v in row.values["conditions"].values()} == {"answered"}
    assert table(found, "scores")["A"]["STR-EM"].n == 5 and len(found.rows) == 10


def test_every_row_opens_as_a_case_with_its_run(data, tmp_path):
    found = run(data, tmp_path / "run")
    for row in found.rows:
        case = read_case_file((tmp_path / "run" / "cases" / f"{row.case}.json").read_bytes()).case
        assert case.id == row.case and case.title == row.unit.example and case.answer.text == BAD
        assert [analysis.kind for analysis in case.analyses] == ["refinement"]


def test_what_a_set_lacks_is_switched_off_and_said(tmp_path):
    path = tmp_path / "bare.jsonl"
    path.write_bytes(msgspec.json.encode({"id": "1", "question": "What?", "passages": ["Copper conducts heat."]}))
    planned = plan(parse_config(CONFIG.format(data=path, judge="")))
    assert any(line.startswith("RFCP") for line in planned.off)
    assert any(line.startswith("STR-EM") for line in planned.off)
    found = run(path, tmp_path / "run")
    assert "RFCP" not in table(found, "scores")["A"] and "S3" in table(found, "scores")["A"]
