"""Run an analysis of a saved case: load, run, show what grows, keep it. The one driver for every kind."""

from __future__ import annotations

from typing import Any

from engine.analyses.kind import Kind, RunContext
from engine.cases.review import review_of, with_labels
from engine.cases.store import CaseStore
from engine.core.errors import CaseError, GroundworkError
from engine.core.values import Analysis, Case, Value


def analyse(cases: CaseStore, case_id: str, kind: Kind[Any], options: Value, context: RunContext) -> Case:
    """Run a kind on a saved case, the reviewers' labels in place; return the case with what was found.

    What was finished of a run that is stopped or fails is kept where the case holds nothing of it yet. Raises what
    the kind raises.
    """
    if kind.run is None:
        raise CaseError(f"{kind.title}: this came with the case and is not run.")
    case, marks = cases.load_whole(case_id)
    held = {analysis.id for analysis in case.analyses}
    last: Analysis | None = None

    def keep(analysis: Analysis) -> Case:
        saved = cases.update(case_id, lambda stored: kind.entered(stored, analysis))
        context.watch.case(saved)
        return saved

    saved = case
    try:
        for last in kind.run(with_labels(case, review_of(marks)), options, context):
            if kind.keeps_each:
                saved = keep(last)
    except GroundworkError:
        if last is not None:
            marked = kind.stopped(last)
            if marked is not last if kind.keeps_each else last.id not in held:
                keep(marked)
        raise
    return saved if kind.keeps_each or last is None else keep(last)
