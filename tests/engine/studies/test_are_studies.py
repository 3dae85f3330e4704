"""ARE's and RAISE's studies: figures from rows by hand, units with scripted models."""

from __future__ import annotations

import json

import pytest

from engine.analyses.facts import KIND as FACTS
from engine.analyses.kind import Loaders
from engine.core.metrics import harmonic_mean
from engine.core.progress import Watch
from engine.core.values import inputs_hash
from engine.methods.are.values import AreRecord
from engine.models.embedder import ScriptedEmbedder
from engine.models.scripted import ScriptedWriter
from engine.studies.catalogue import study_of
from engine.studies.catalogue.are import GRID, results
from engine.studies.catalogue.are_ablations import results as ablations
from engine.studies.catalogue.step_by_step import results as steps
from engine.studies.config import Config
from engine.studies.datasets import load
from engine.studies.example import Example
from engine.studies.tools import StudyTools
from engine.studies.values import Failure, Row, Unit
from tests.engine.are.scripted import WordVerifier

CONFIG = Config(study="are", data="d")


def row(example, method, **values):
    unit = Unit(example=example, method=method, seed=1)
    if not values:
        return Row(unit=unit, state="failed", failure=Failure(type="ModelError", message="gone"))
    return Row(unit=unit, state="done", values=values, case=f"case-{example}")


def measured(example, method, recall, precision, pres, before=0.2):
    return row(
        example,
        method,
        **{"attr_r": recall, "attr_p": precision, "pres": pres, "outcomes": {"supported": 3, "unparsed": 1}},
        **{f"before_{name}": before for name in ("attr_r", "attr_p", "pres")},
        **{f"aggregated_{name}": 0.5 for name in ("attr_r", "attr_p", "pres")},
    )


def test_f1_is_the_harmonic_mean_of_the_two_means_of_the_row():
    rows = [measured("a", "are", 1.0, 0.4, 1.0), measured("b", "are", 0.0, 0.8, 0.5)]
    table = results(CONFIG, rows).tables[0]
    _, recall, precision, pres, f1_pp, f1_rp = table.rows[0]
    assert (recall.value, precision.value, pres.value) == pytest.approx((0.5, 0.6, 0.75))
    assert f1_pp.value == pytest.approx(harmonic_mean(0.6, 0.75))
    assert f1_rp.value == pytest.approx(harmonic_mean(0.5, 0.75))
    assert recall.low is None and table.n == 2


def test_an_interval_of_f1_holds_it_and_a_failed_answer_counts_as_nothing():
    rows = [measured(str(i), "are", i / 12, 0.5, 0.9) for i in range(12)] + [row("12", "are")]
    f1 = results(CONFIG, rows).tables[0].rows[0][5]
    assert f1.low <= f1.value <= f1.high and f1.n == 13
    assert f1.value == pytest.approx(harmonic_mean(sum(i / 12 for i in range(12)) / 13, 0.9 * 12 / 13))


def test_methods_that_asked_no_model_have_no_row():
    unasked = Row(
        unit=Unit(example="a", method="rarr", seed=1), state="done", values={"attr_r": None}, missing={"attr_r": "none"}
    )
    tables = results(CONFIG, [unasked, measured("a", "are", 0.5, 0.5, 1.0)]).tables
    assert [row[0] for row in tables[0].rows] == ["ARE"]


def test_drqa_has_no_f1_and_outcomes_keep_the_unparsed():
    tables = {t.name: t for t in results(CONFIG, [measured("a", m, 0.5, 0.5, 1.0) for m in ("drqa", "are")]).tables}
    drqa, are = tables["table_1"].rows
    assert (drqa[0], drqa[4].value, are[4].value) == ("DRQA", None, pytest.approx(2 / 3))
    assert tables["table_3"].rows[1][1].value == 0.2 and len(tables["table_3"].columns) == 3
    assert [(r[0], r[2]) for r in tables["outcomes"].rows] == [("supported", 0.75), ("unparsed", 0.25)]


def test_the_contour_is_the_harmonic_mean_and_its_line_the_best_before():
    rows = [measured("a", "rarr", 0.6, 0.1, 0.9, before=0.3), measured("a", "are", 0.7, 0.8, 0.9, before=0.4)]
    left = results(CONFIG, rows).figures[0]
    levels, line, rarr, are = left.series
    assert levels.z[10][20] == pytest.approx(harmonic_mean(1.0, 0.5)) and len(levels.z) == len(GRID)
    assert line.x == (0.4, 0.4)
    assert (are.name, are.x, are.y) == ("ARE", (0.7,), (0.9,)) and rarr.x == (0.6,)


def test_ablations_stand_in_the_papers_order_and_without_edit_has_no_f1():
    rows = [measured("a", m, 0.5, 0.5, 1.0) for m in ("are", "without-edit", "without-re-retrieval")]
    table = ablations(CONFIG, rows).tables[0]
    assert [r[0] for r in table.rows] == ["w/o edit", "w/o re-retrieval", "ARE"]
    assert table.rows[0][5].value is None and table.rows[2][5].value is not None


def problem(example, method, correct, domain="physics", **more):
    return row(example, method, correct=correct, domain=domain, calls=2, written=9, **more)


def test_accuracy_counts_failed_problems_as_wrong_and_goes_by_domain():
    rows = [problem("a", "raise", 1.0), problem("b", "raise", 0.0, "biology"), row("c", "raise")]
    rows += [problem(e, "cot", 0.0, d) for e, d in (("a", "physics"), ("b", "biology"), ("c", "biology"))]
    tables = {t.name: t for t in steps(Config(study="step-by-step", data="d"), rows).tables}
    accuracy = {r[0]: r[1].value for r in tables["methods"].rows}
    assert accuracy == {"RAISE": pytest.approx(1 / 3), "CoT": 0.0}
    assert [(r[0], r[2].value) for r in tables["by_domain"].rows][:2] == [("biology", 0.0), ("physics", 1.0)]
    assert tables["methods"].rows[0][8] == 1
    assert "against_raise" in tables and "relevance" not in tables


def test_relevance_is_of_all_ratings_unread_ones_included():
    levels = {"none": 1, "full": 2, "unparsed": 1}
    found = steps(Config(study="step-by-step", data="d", judge="j"), [problem("a", "raise", 1.0, levels=levels)])
    (line,) = next(t for t in found.tables if t.name == "relevance").rows
    assert line == ("RAISE", 0.25, 0.0, 0.0, 0.5, 0.25, 4)


def scripted(study, **options):
    loaders = Loaders(verifier=lambda name: WordVerifier(), embedder=lambda name: ScriptedEmbedder())
    return StudyTools(Config(study=study, data="d", **options), loaders)


def unit(method):
    return Unit(example="1", method=method, seed=1)


def test_are_and_a_baseline_run_on_an_examples_own_answer(tmp_path):
    (example,) = load(_file(tmp_path))
    tools, study = scripted("are"), study_of("are")
    are = study.run(tools, unit("are"), example, Watch())
    assert are.case.question == "What rusts?" and are.values["facts"] == 2
    assert AreRecord.from_dict(are.case.analyses[0].result).finished
    drqa = study.run(tools, unit("drqa"), example, Watch())
    assert drqa.values["pres"] == 1.0 and drqa.values["aggregated_attr_r"] is None and drqa.missing
    assert drqa.values["before_attr_r"] == drqa.values["attr_r"] > 0
    assert study.cost(tools, unit("are"), example).forwards > 0


def test_an_ablation_switches_one_part_off(tmp_path):
    (example,) = load(_file(tmp_path))
    tools, study = scripted("are-ablations"), study_of("are-ablations")
    whole, molecular = (study.run(tools, unit(m), example, Watch()) for m in ("are", "without-molecular"))
    assert [found.values["clauses"] for found in (whole, molecular)] == [2, molecular.values["facts"]]
    assert study.run(tools, unit("without-edit"), example, Watch()).values["edits"] == 0


ASKED = {
    "decomposer": {"You cut", "You split"},
    "judge": {"You compare"},
    "editor": {"You correct"},
    "expander": {"You write"},
}


@pytest.mark.parametrize("role", ASKED)
def test_the_configs_model_fills_the_role_named_and_no_other_and_the_verifier_measures(tmp_path, role):
    (example,) = load(_file(tmp_path, "The bridge opened in 1932. Whales sing loudly.", "The bridge opened in 1934."))
    tools = scripted("are", options={"by_model": [role]})
    tools.writer = ScriptedWriter(lambda prompt: "It says so.", name="swapped")
    (record,) = FACTS.of(study_of("are").run(tools, unit("are"), example, Watch()).case)
    assert {" ".join(prompt.split()[:2]) for prompt in tools.writer.prompts} == ASKED[role]
    made_by = {"decomposer": record.decomposer, "judge": record.verifier, "editor": record.editor}
    assert [name for name, by in made_by.items() if by == "swapped"] == [role] * (role in made_by)
    assert record.report.after.by == "word table"


def test_an_answer_from_memory_is_checked_against_the_passages_that_its_case_holds(tmp_path):
    (example,) = load(_file(tmp_path, ""))
    tools = scripted("are")
    tools.writer = ScriptedWriter(["Iron rusts."])
    case = study_of("are").run(tools, unit("are"), example, Watch()).case
    (record,) = FACTS.of(case)
    (evidence,) = record.report.clauses[0].evidence
    assert case.passages[evidence.number - 1].text == evidence.text == "Iron rusts in air. Gold shines."
    assert "Iron" not in case.prompt.text and case.stamp.inputs == inputs_hash(case.question, case.passages)


def test_the_decomposer_is_held_against_gold(tmp_path):
    tools, study = scripted("decomposer"), study_of("decomposer")
    example = next(load("bank-investigation-clauses"))
    found = study.run(tools, unit("rules"), example, Watch())
    assert found.case.answer.text == example.answer and found.case.analyses[0].kind == "decomposition"
    assert found.values["clauses_n_c"] == 1.0 and found.values["clauses_d_correct"] == 1.0
    same = Example.from_dict({**example.to_dict(), "clauses": [{"text": "Nothing of the kind."}]})
    assert study.run(tools, unit("rules"), same, Watch()).values == {
        "clauses_n_c": 0.0,
        "clauses_d_correct": 0.0,
        "facts_n_c": None,
        "facts_d_correct": None,
    }


def test_a_decomposer_by_model_is_shown_as_many_worked_examples_as_the_setting_says():
    example, lengths = next(load("bank-investigation-clauses")), []
    for shown in (0, 3):
        tools = scripted("decomposer", settings={"verification": {"demonstrations": shown}})
        tools.writer = ScriptedWriter(lambda prompt: example.answer, name="swapped")
        found = study_of("decomposer").run(tools, unit("model"), example, Watch())
        assert found.case.analyses[0].stamp.model == "swapped"
        lengths.append(len(tools.writer.prompts[0]))
    assert lengths[0] < lengths[1]


def _file(folder, answer="Iron rusts. Gold shines.", passage="Iron rusts in air. Gold shines."):
    path = folder / "answers.jsonl"
    path.write_text(json.dumps({"question": "What rusts?", "answer": answer, "passages": [passage]}))
    return path
