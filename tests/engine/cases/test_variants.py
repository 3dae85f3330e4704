"""Two answers of one case: what a condition wrote, compared as any two cases are; the command."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from engine.analyses.kind import Loaders
from engine.analyses.refinement import KIND
from engine.cases.store import CaseStore
from engine.commands import review
from engine.core.errors import CaseError, CaseNotFound
from engine.core.files import home
from engine.core.values import Analysis, Case, inputs_hash
from engine.methods.signals import pair_key
from engine.report.compare import compare_cases, conditions, side, variant_case
from engine.workbench import Workbench
from tests.engine.cases.records import SETTINGS, SHOWN, Scorer, full_record


@pytest.fixture(scope="module")
def case(tmp_path_factory, at_home) -> Case:
    with at_home(tmp_path_factory.mktemp("home")):
        return full_record()


def test_what_a_condition_wrote_is_a_case_of_its_own(case):
    assert conditions(case)[:3] == ("A", "B", "C1")
    found = variant_case(case, "E")
    assert (found.id, found.parent, found.question) == ("0123456789ab:E", "0123456789ab", case.question)
    assert found.answer.text == SHOWN["E"]
    assert found.stamp.settings["condition"]["name"] == "E"
    with pytest.raises(CaseError, match="Available: A, B"):
        variant_case(case, "v9")
    with pytest.raises(CaseError, match="Refinement page"):
        variant_case(replace(case, analyses=()), "A")


def test_only_analyses_of_that_very_answer_come_along(case):
    text = SHOWN["E"]
    stamp = replace(case.analyses[0].stamp, inputs=inputs_hash(case.question, case.passages, text))
    own = Analysis(id="mine", kind="mine", stamp=stamp, result={})
    found = variant_case(replace(case, analyses=(*case.analyses, own)), "E")
    assert {analysis.kind for analysis in found.analyses} == {"mine", "scores", "facts of A"}


def test_two_conditions_differ_in_words_scores_verdicts_and_the_condition_alone(case):
    found = compare_cases(variant_case(case, "A"), variant_case(case, "B"))
    assert {d.name.partition(".")[2].partition(".")[0] for d in found.settings} == {"condition"}
    assert ("settings.condition.name", "A", "B") in [(d.name, d.left, d.right) for d in found.settings]
    assert "".join(w.text for w in found.words if w.change != "removed") == SHOWN["B"]
    assert [row.match for row in found.passages] == ["same passage"] * len(case.passages)
    verdicts = {d.name: (d.left, d.right) for d in found.verdicts}
    assert verdicts["Hanna Lind built the bridge."] == ("borne out", "not stated; in A: borne out")
    scores = {d.name: (d.left, d.right) for d in found.scores}
    assert scores["citations"] == ("2", "0")
    assert "s3" in scores


def test_a_fact_that_the_verifier_does_not_find_in_a_is_not_called_missing_from_another_answer(case):
    report = KIND.last(case)
    doubted = dict.fromkeys(report.entailments, 0.4)
    facts = (("Lind built bridges", "supportive"),)
    doubted |= {pair_key(facts[0][0], v.answer.text): 0.4 for v in report.refinement.variants.values() if v.answer}
    changed = replace(report, facts=facts, entailments=doubted)
    last = replace(next(a for a in case.analyses if a.kind == KIND.name), result=changed)
    found = compare_cases(case, variant_case(replace(case, analyses=(last,)), "B")).verdicts
    assert ("Lind built bridges", "unclear whether stated; in A: borne out") in [(d.name, d.right) for d in found]


def test_both_answers_are_scored_with_one_model_and_shown_as_shares(case):
    bench = Workbench(SETTINGS, Loaders(writer=lambda name: Scorer()))
    sides = [bench.scored(variant_case(case, name), "any") for name in ("A", "E")]
    found = compare_cases(*sides)
    assert found.methods == ("occlusion",)
    for left, right in (row.attribution["occlusion"] for row in found.passages):
        assert abs(left) <= 1
        assert abs(right) <= 1
    assert max(abs(row.attribution["occlusion"][0]) for row in found.passages) == pytest.approx(1)
    assert bench.scored(sides[0], "any") is sides[0]


def test_the_command_takes_a_condition_behind_the_case(case):
    store = CaseStore(home() / "cases.sqlite")
    store.save(case)
    told = CliRunner().invoke(review.compare, ["0123456789ab:A", "0123456789ab:E"], catch_exceptions=False)
    found = json.loads(told.output)
    assert (found["left"], found["right"]) == ("0123456789ab:A", "0123456789ab:E")
    assert found["scores"]
    assert side(store, "0123456789ab")[0] == case
    with pytest.raises(CaseNotFound):
        side(store, "nothing:A")
