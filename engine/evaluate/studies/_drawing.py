"""What several studies draw: measures as a line, and the sentence on what was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from engine.evaluate.summary import MEANS, counts
from engine.evaluate.values import Measure, Row, Series


def line(name: str, measures: Mapping[Any, Measure], side: Literal["left", "right"] = "left") -> Series:
    """Measures by x as one series with intervals."""
    return Series(
        name=name,
        x=tuple(measures),
        y=tuple(m.value for m in measures.values()),
        low=tuple(m.low for m in measures.values()),
        high=tuple(m.high for m in measures.values()),
        n=tuple(m.n for m in measures.values()),
        side=side,
    )


def questions_in(rows: Sequence[Row]) -> int:
    """How many different examples the rows are of, failed ones included."""
    return counts(rows)[0]


def notes(rows: Sequence[Row], *more: str) -> tuple[str, ...]:
    """How the intervals are made, and what was lost, said also where nothing was."""
    _, failed, unparsed = counts(rows)
    lost = f"{failed} of {len(rows)} units failed, {unparsed} replies could not be read; both stay in the denominators."
    return (MEANS, lost, *more)
