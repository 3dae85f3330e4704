"""Analyses of a saved case by name, through the workbench: what is added, and what a stopped run leaves."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.analyses.attribution import Spans
from engine.analyses.claims import PeerOptions
from engine.analyses.faithfulness import TELLING, Rankings, measured, report_by, rows_ahead
from engine.analyses.kind import ByModel
from engine.analyses.registry import kind_named, runnable
from engine.analyses.token_map import MapRows
from engine.core.errors import AttributionError, Cancelled, InputError
from engine.core.files import home
from engine.core.progress import last
from engine.core.settings import Settings
from engine.core.values import AuditRecord
from engine.methods.faithfulness import Deletion, removable
from engine.methods.spans import content_mask
from engine.methods.subject import subject
from engine.workbench import Workbench
from tests.stopping import stop_at
from tests.tiny import save_tiny, tiny_answer, tiny_model, tiny_prompt

PASSAGES = ("The kiln of Ostrel is painted green. It is old.", "Maren holds forty litres.", "Ostrel lies north.")


@pytest.fixture
def bench():
    save_tiny(home() / "models" / "scorer")
    return Workbench()


def audited(bench):
    record = AuditRecord(question="What colour is the kiln?", passages=PASSAGES, answer="Green. [cite_1] It is old.")
    return bench.audit(record).id


def test_each_level_of_sources_is_an_analysis_of_its_own(bench):
    case_id = audited(bench)
    for method in ("occlusion", "occlusion of chunk sets", "occlusion of sentences"):
        case = bench.analyse(bench.cases.load(case_id), method, kind_named(method).options(model="scorer"))
    counts = {analysis.kind: len(analysis.stored()["sources"]) for analysis in case.analyses}
    assert counts == {"occlusion": 3, "occlusion of chunk sets": 3, "occlusion of sentences": 4}


def test_every_setting_that_a_result_depends_on_is_in_its_stamp(bench):
    bench, case_id = (
        bench.using(Settings().apply(["verification.passages=4", "selection.floor=largest"])),
        audited(bench),
    )
    bench.analyse(case_id, "baselines of ARE", PeerOptions(methods=("drqa",)))
    peers, again = bench.analyse(case_id, "occlusion-regenerate", ByModel(model="scorer")).analyses
    assert (peers.stamp.settings["verification"]["passages"], peers.stamp.settings["mode"]) == (4, "hybrid")
    assert (again.stamp.settings["floor"], again.stamp.settings["seed"]) == ("largest", 1337)


def test_a_stopped_run_is_kept_once_and_never_over_a_whole_one(bench):
    case_id = audited(bench)
    asked = Rankings(model="scorer")
    with pytest.raises(Cancelled):
        bench.analyse(case_id, "faithfulness", asked, stop_at(5, "random rankings"))
    (partial,) = bench.cases.load(case_id).analyses
    assert partial.stored()["random"]["n"] == 5
    (whole,) = bench.analyse(case_id, "faithfulness", asked).analyses
    assert whole.stored()["random"]["n"] == 10
    with pytest.raises(Cancelled):
        bench.analyse(case_id, "faithfulness", asked, stop_at(5, "random rankings"))
    (still,) = bench.cases.load(case_id).analyses
    assert still.stored()["random"]["n"] == 10


FEW = Settings().apply(["faithfulness.steps=3", "faithfulness.rankings=9"])
GRADIENT, ATTENTION = "gradient norm", "value-weighted attention"


def reported(bench, case_id, *methods):
    """The case's report after a run for these rankings, and the forward passes that the run was said to take."""
    asked = Rankings(model="scorer", methods=methods)
    ahead = rows_ahead(bench.cases.load(case_id), asked, bench.settings)
    return report_by(bench.analyse(case_id, "faithfulness", asked), "scorer", bench.settings), ahead


def test_a_ranking_is_added_to_a_report_by_rows_of_its_own_alone(bench):
    bench, case_id, other = bench.using(FEW), audited(bench), audited(bench)
    first, _ = reported(bench, case_id, GRADIENT)
    grown, ahead = reported(bench, case_id, ATTENTION)
    # Three steps each way whose ends are the same; a pass for the method itself, and one over what the rows share.
    assert (grown.forwards - first.forwards, ahead) == (2 + 2 * 2 + 2, 2 * 3)
    assert first.forwards > 40
    assert grown.random == first.random and grown.curve_of(GRADIENT) == first.curve_of(GRADIENT)
    alone, _ = reported(bench, other, ATTENTION)
    assert grown.curve_of(ATTENTION).morf == pytest.approx(alone.curve_of(ATTENTION).morf, abs=1e-5)
    assert grown.random.high == pytest.approx(alone.random.high, abs=1e-5)


def test_a_report_that_is_run_again_is_computed_and_keeps_other_rankings(bench):
    bench, case_id = bench.using(FEW), audited(bench)
    first, _ = reported(bench, case_id, GRADIENT, ATTENTION)
    again, ahead = reported(bench, case_id, GRADIENT)
    assert again.forwards > 0.5 * first.forwards and ahead > again.forwards - 3
    assert [curve.ranking for curve in again.curves] == [GRADIENT, ATTENTION]


def test_a_report_with_other_settings_is_not_added_to(bench):
    case_id = audited(bench)
    reported(bench.using(FEW), case_id, GRADIENT)
    other = bench.using(FEW.apply(["faithfulness.steps=2"]))
    found, _ = reported(other, case_id, ATTENTION)
    assert [curve.ranking for curve in found.curves] == [ATTENTION]
    shown = other.using(other.settings.apply(["faithfulness.check_maps=false"]))
    assert len(reported(shown, case_id, GRADIENT)[0].curves) == 2  # no number depends on this setting


@pytest.mark.parametrize(("abpc", "also"), [(0.5, ()), (-0.5, (ATTENTION,))])
def test_another_ranking_is_measured_only_where_the_first_is_not_above_random(bench, abpc, also):
    bench, case_id = bench.using(FEW), audited(bench)
    known, _ = reported(bench, case_id, GRADIENT)
    held = replace(known, curves=(replace(known.curves[0], abpc=abpc),))
    model = bench.tools.scorer("scorer")
    prompt, answer, _ = subject(bench.cases.load(case_id), model, FEW)
    grown = last(measured(model, prompt, answer, FEW, methods=(GRADIENT,), otherwise=(GRADIENT, ATTENTION), known=held))
    assert tuple(curve.ranking for curve in grown.curves) == (GRADIENT, *also)
    assert grown.check_of(GRADIENT).above_random is (abpc > 0)


def test_a_reversed_ranking_has_the_abpc_of_the_other_sign():
    """So each random ranking counts twice, and nine are enough to be above all by chance in 1 of 20 cases."""
    model, answer = tiny_model("llama"), tiny_answer(tiny_model("llama"))
    coded, ids = model.encode(tiny_prompt(3)), [token.id for token in answer.tokens]
    order = removable(coded)
    found = Deletion(model, coded, ids, content_mask(answer)).curves({"order": order, "reversed": order[::-1]}, 7)
    assert found["order"].abpc == -found["reversed"].abpc != 0
    assert 1 / (2 * TELLING + 2) == 1 / 20


def test_rows_are_added_to_the_map_that_the_case_holds(bench):
    case_id = audited(bench)
    bench.analyse(case_id, "token map", MapRows(model="scorer"))
    (grown,) = bench.analyse(case_id, "token map", MapRows(model="scorer", sentences=(1,))).analyses
    assert (len(grown.stored()["rows"]), grown.stored()["forwards"], grown.stored()["backwards"]) == (2, 2, 2)


def test_what_cannot_be_done_is_said(bench):
    case_id = audited(bench)
    with pytest.raises(AttributionError, match="no Attr-RAG run"):
        bench.analyse(case_id, "attr-rag", Spans(model="scorer"))
    with pytest.raises(InputError, match="No analysis has the name 'tea leaves'"):
        bench.analyse(case_id, "tea leaves", Spans(model="scorer"))
    assert "occlusion of sentences" in runnable()
