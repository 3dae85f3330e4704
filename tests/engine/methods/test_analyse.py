"""Analyses of a saved case by name, through the workbench: what is added, and what a stopped run leaves."""

from __future__ import annotations

import pytest

from engine.analyses.attribution import Spans
from engine.analyses.faithfulness import Rankings
from engine.analyses.registry import kind_named, runnable
from engine.analyses.token_map import MapRows
from engine.core.errors import AttributionError, Cancelled, InputError
from engine.core.files import home
from engine.core.values import AuditRecord
from engine.workbench import Workbench
from tests.stopping import stop_at
from tests.tiny import save_tiny

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
        case = bench.analyse(case_id, method, kind_named(method).options(model="scorer"))
    counts = {analysis.kind: len(analysis.stored()["sources"]) for analysis in case.analyses}
    assert counts == {"occlusion": 3, "occlusion of chunk sets": 3, "occlusion of sentences": 4}


def test_a_stopped_run_is_kept_once_and_never_over_a_whole_one(bench):
    case_id = audited(bench)
    asked = Rankings(model="scorer")
    with pytest.raises(Cancelled):
        bench.analyse(case_id, "faithfulness", asked, stop_at(5, "random rankings"))
    (partial,) = bench.cases.load(case_id).analyses
    assert partial.stored()["random"]["n"] == 5
    (whole,) = bench.analyse(case_id, "faithfulness", asked).analyses
    assert whole.stored()["random"]["n"] == 20
    with pytest.raises(Cancelled):
        bench.analyse(case_id, "faithfulness", asked, stop_at(5, "random rankings"))
    (still,) = bench.cases.load(case_id).analyses
    assert still.stored()["random"]["n"] == 20


def test_rows_are_added_to_the_map_that_the_case_holds(bench):
    case_id = audited(bench)
    bench.analyse(case_id, "token map", MapRows(model="scorer"))
    (grown,) = bench.analyse(case_id, "token map", MapRows(model="scorer", sentences=(1,))).analyses
    assert (len(grown.stored()["rows"]), grown.stored()["forwards"], grown.stored()["backwards"]) == (2, 2, 2)


def test_what_cannot_be_done_is_said(bench):
    case_id = audited(bench)
    with pytest.raises(AttributionError, match="no Attr-RAG run"):
        bench.analyse(case_id, "attr-rag", Spans(model="scorer"))
    with pytest.raises(InputError, match="no analysis 'tea leaves'"):
        bench.analyse(case_id, "tea leaves", Spans(model="scorer"))
    assert "occlusion of sentences" in runnable()
