"""A refinement's answers as cases, so that two of them, or one and another case, are compared like any two.

A side is named CASE, or CASE:CONDITION for what a condition of the case's last refinement wrote.
"""

from __future__ import annotations

from msgspec.structs import replace

from engine.analyses.kind import REFINEMENT
from engine.analyses.refinement import reports_of
from engine.cases.review import Mark, review_of, with_labels
from engine.cases.store import CaseStore
from engine.core.errors import CaseError
from engine.core.metrics import ENTAILED
from engine.core.values import Analysis, Case, inputs_hash
from engine.methods.refinement.assess import RefinementReport, report_facts, report_scores
from engine.methods.refinement.values import Variant

KEPT = "facts of A"
SCORES = "scores"


def side(store: CaseStore, name: str) -> tuple[Case, tuple[Mark, ...]]:
    """The case that a side names, with its history; raise `CaseNotFound`, `CaseError` for an unknown condition."""
    case_id, _, condition = name.partition(":")
    case, history = store.load_whole(case_id)
    return (variant_case(with_labels(case, review_of(history)), condition), ()) if condition else (case, history)


def conditions(case: Case) -> tuple[str, ...]:
    """The conditions of the case's last refinement that have an answer."""
    found = _last(case)
    return tuple(n for n, v in found.refinement.variants.items() if v.answer is not None) if found else ()


def variant_case(case: Case, name: str) -> Case:
    """A condition's text as the answer of a case, with the analyses of this answer."""
    report = _last(case)
    variant = report.refinement.variants.get(name) if report else None
    if report is None or variant is None or variant.answer is None:
        known = ", ".join(conditions(case)) or "none; run them on the Refinement page"
        raise CaseError(f"The case {case.id!r} has no answer of condition {name!r}. Available: {known}.")
    stamp = report.refinement.stamp
    answered = inputs_hash(case.question, case.passages, variant.answer.text)
    about = tuple(a for a in case.analyses if a.stamp.inputs == answered and a.kind != REFINEMENT)
    return replace(
        case,
        id=f"{case.id}:{name}",
        parent=case.id,
        answer=variant.answer,
        prompt=variant.turns[-1].prompt if variant.turns else case.prompt,
        stamp=replace(
            stamp,
            inputs=inputs_hash(case.question, case.passages),
            settings={**stamp.settings, "condition": _condition(name, variant)},
        ),
        analyses=(*about, *_figures(case, report, name, answered)),
    )


def _last(case: Case) -> RefinementReport | None:
    return next(reversed(reports_of(case).values()), None)


def _condition(name: str, variant: Variant) -> dict[str, object]:
    trigger = variant.trigger
    return {"name": name, "outcome": variant.outcome, "second pass": "no rule" if trigger is None else trigger.sentence}


def _figures(case: Case, report: RefinementReport, name: str, answered: str) -> tuple[Analysis, ...]:
    """Which facts of A the answer still says, as verdicts, and its scores."""
    stamp = replace(report.refinement.stamp, inputs=answered)
    said = [
        {"fact": kept.fact, "verdict": f"{'stated' if kept.kept > ENTAILED else 'not stated'}; in A: {kept.verdict}"}
        for kept in report_facts(report).get(name, ())
    ]
    scores = report_scores(report, case.passages)[name].to_dict()
    scores.pop("missing")
    found = [Analysis(id=SCORES, kind=SCORES, stamp=stamp, result=scores)]
    if said:
        found.append(Analysis(id=KEPT, kind=KEPT, stamp=stamp, result={"facts": said}))
    return tuple(found)
