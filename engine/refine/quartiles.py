"""Gain of the second pass by S3 of the first (grounded refinement, section 3.8, table 4).

Questions are sorted by their mean S3 over seeds and cut into four parts of equal size; the gain of each part is
D - A with a question-level bootstrap. Only ungated runs count: a gated D is A wherever S3 is high, so its gain there
is 0 by construction.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.errors import InputError
from engine.refine.values import Refinement
from engine.statistics import FEWEST, paired_bootstrap, rank_correlation
from engine.types import Value

NAMES = ("lowest S3", "second", "third", "highest S3")
READINGS = (
    "The paper calls this pattern inverted: its concentration trigger fires on high values, and the gain is where"
    " values are low.",
    "D's own gate fires on low S3, so it fires where the gain is. Both readings are of the same figures.",
)


class Point(Value, frozen=True):
    """One run of one question: S3 of A, and a score of A and of the ungated D on the same scale."""

    question: str
    s3: float
    first: float
    second: float


class Quartile(Value, frozen=True):
    """Questions from `s3_low` to `s3_high`; `gain` is the mean of second - first, its interval None under ten."""

    name: str
    questions: int
    s3_low: float
    s3_high: float
    gain: float
    low: float | None
    high: float | None


class QuartileStudy(Value, frozen=True):
    """Gains by quartile from the lowest S3 up, Spearman's rho of S3 and gain (None where undefined), both readings."""

    quartiles: tuple[Quartile, ...]
    rho: float | None
    readings: tuple[str, ...]


def point_of(question: str, value: Refinement, first: float | None, second: float | None) -> Point | None:
    """A point from a run and the scores of its A and D, None where one is missing; `InputError` for a gated run."""
    if value.gate != "always":
        raise InputError(
            "A gated D is A wherever S3 is not under the threshold. Run the conditions with the gate always."
        )
    if value.signals.s3 is None or first is None or second is None:
        return None
    return Point(question=question, s3=value.signals.s3, first=first, second=second)


def gain_by_quartile(points: Sequence[Point], seed: int = 1337) -> QuartileStudy:
    """Cut by mean S3 a question; ties stay in the order given. `InputError` for fewer than four questions."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(point.question, []).append(point)
    if len(groups) < len(NAMES):
        raise InputError(f"Quartiles need at least {len(NAMES)} questions, here are {len(groups)}. Run more of them.")
    ordered = sorted(groups.values(), key=_mean_s3)
    places = np.array_split(np.arange(len(ordered)), len(NAMES))
    parts = [[ordered[i] for i in part] for part in places]
    gains = [float(np.mean([p.second - p.first for p in group])) for group in ordered]
    return QuartileStudy(
        quartiles=tuple(_quartile(name, part, seed) for name, part in zip(NAMES, parts, strict=True)),
        rho=rank_correlation([_mean_s3(group) for group in ordered], gains),
        readings=READINGS,
    )


def _mean_s3(group: Sequence[Point]) -> float:
    return float(np.mean([point.s3 for point in group]))


def _quartile(name: str, part: Sequence[Sequence[Point]], seed: int) -> Quartile:
    """One part with the bootstrap of its gain; a question's seeds are drawn together."""
    points = [point for group in part for point in group]
    found = paired_bootstrap(
        [p.second for p in points], [p.first for p in points], [p.question for p in points], seed=seed
    )
    enough = len(part) >= FEWEST
    return Quartile(
        name=name,
        questions=len(part),
        s3_low=min(_mean_s3(group) for group in part),
        s3_high=max(_mean_s3(group) for group in part),
        gain=found.mean,
        low=found.low if enough else None,
        high=found.high if enough else None,
    )
