"""The reviewers' four-level relevance of a run's passages (RAISE, appendix C.3): marks in the case's history.

What a model said of the same passage is kept beside each, never replaced by it.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.cases.review import Draft, Review
from engine.judge import Level
from engine.reason.relevance import LEVELS, Rating, Ratings
from engine.reason.values import Solution

REVIEWERS = "reviewers"


def rating_target(solution: Solution, step: int, passage: str) -> str:
    """The place that a mark names: a passage as it was retrieved for a step of this run."""
    return f"analysis:steps:{solution.method}:{solution.model}/step {step}/passage {passage}"


def rating(solution: Solution, rated: Rating, raters: Sequence[Ratings], author: str) -> Draft:
    """A reviewer's level as a mark, with what the models said of the same passage at the same step."""
    said = (f"{r.by}: {r.level(rated.step, rated.passage) or 'no level'}" for r in raters)
    return Draft(
        kind="override",
        author=author,
        value=rated.level or "",
        target=rating_target(solution, rated.step, rated.passage),
        reason="rated step by step",
        machine="; ".join(said),
    )


def reviewers_ratings(solution: Solution, review: Review) -> Ratings:
    """The levels that stand in the history, of every passage that the run retrieved."""
    found = []
    for step in solution.steps:
        for hit in (*step.kept, *step.dropped):
            mark = review.overrides.get(rating_target(solution, step.number, hit.passage.id))
            level = _level(mark.value) if mark else None
            if level is not None:
                found.append(Rating(step=step.number, passage=hit.passage.id, level=level))
    return Ratings(method=solution.method, model=solution.model, by=REVIEWERS, ratings=tuple(found))


def _level(value: str) -> Level | None:
    """A mark's value as a level; None for one that was written by hand and is none."""
    return next((level for level in LEVELS if level == value), None)
