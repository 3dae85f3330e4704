"""From rows to figures: means with question-level intervals, and paired comparisons with the correction named.

The unit is the question: its seeds are averaged first and drawn together. A failed unit counts as `failed` says (a
share or an accuracy: 0), so that it stays in the denominator; a value that is not defined for a question is left out
of this measure, also where its unit failed, and n says so.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from engine.core.statistics import cohens_dz, holm, interval_or_none, mean_or_none, sign_test
from engine.core.values import Value
from engine.studies.values import Axis, Cell, Column, Figure, FigureKind, Measure, Row, Series, StudyTable

CORRECTION = "p: two-sided exact sign test over questions, corrected by Holm within this table."
PAIRED = "Intervals: 95%, paired bootstrap over questions with all their seeds (10,000 resamples)."
MEANS = "Intervals: 95%, bootstrap over questions (10,000 resamples); none under 10 questions."


def of_method(rows: Sequence[Row], method: str) -> list[Row]:
    """The rows of one method."""
    return [row for row in rows if row.unit.method == method]


def by_method(rows: Sequence[Row], methods: Iterable[str] | None = None) -> dict[str, list[Row]]:
    """The rows of each of these methods that has any; None: of all methods, in running order."""
    asked = dict.fromkeys(row.unit.method for row in rows) if methods is None else methods
    return {method: own for method in asked if (own := of_method(rows, method))}


ValueName = str | tuple[str, ...]
"""The name of a row's value, or the path to one inside another, as `Row.value` takes it."""


def by_question(rows: Sequence[Row], name: ValueName, failed: float | None = 0.0) -> dict[str, float]:
    """Mean over the seeds of value `name` by question; a question in which it is never defined is left out."""
    path = (name,) if isinstance(name, str) else name
    found: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        value = row.value(*path) if row.state == "done" else failed
        if value is not None:
            found[row.unit.example].append(float(value))
    # Exact sums: equal values in another order of seeds have an equal mean.
    return {question: math.fsum(values) / len(values) for question, values in found.items()}


def measured(values: Mapping[str, float] | Sequence[float]) -> Measure:
    """The mean with its interval, of one value per question."""
    listed = list(values.values()) if isinstance(values, Mapping) else list(values)
    interval = interval_or_none(listed)
    low, high = (interval.low, interval.high) if interval else (None, None)
    return Measure(value=mean_or_none(listed), low=low, high=high, n=len(listed))


def measure(rows: Sequence[Row], name: ValueName, failed: float | None = 0.0) -> Measure:
    """The mean of value `name` over the questions of these rows."""
    return measured(by_question(rows, name, failed))


def defined(rows: Sequence[Row], name: str) -> bool:
    """Whether any of these rows has value `name`."""
    return any(row.values.get(name) is not None for row in rows)


def with_value(rows: Sequence[Row], name: str, among: Sequence[Row]) -> list[Row]:
    """The rows without the failed ones of questions whose finished rows `among` these all lack value `name`."""
    finished = [row for row in among if row.state == "done"]
    having = {row.unit.example for row in finished if row.values.get(name) is not None}
    lacking = {row.unit.example for row in finished} - having
    return [row for row in rows if row.state == "done" or row.unit.example not in lacking]


def measure_defined(rows: Sequence[Row], name: str, among: Sequence[Row], failed: float | None = 0.0) -> Measure:
    """`measure` over the questions that have the value by the rows `among` these; not defined where none has it."""
    return measure(with_value(rows, name, among), name, failed) if defined(among, name) else Measure(value=None)


def each_question(rows: Sequence[Row], values: Iterable[float | None]) -> dict[str, float]:
    """Mean over the seeds of a value for each row; a row without one is left out, and so is a failed one."""
    return by_question([replace(row, values={"value": v}) for row, v in zip(rows, values, strict=True)], "value", None)


def measure_each(rows: Sequence[Row], values: Iterable[float | None]) -> Measure:
    """The mean over the questions of a value for each row, as `each_question` has them."""
    return measured(each_question(rows, values))


class PairedComparison(Value, frozen=True):
    """Mean difference of two methods over common questions, `p` as corrected (None without one), Cohen's d_z."""

    method: str
    difference: Measure
    higher: int
    lower: int
    ties: int
    p: float | None
    effect: float | None


def compare(rows: Sequence[Row], name: str, methods: Iterable[str], base: str) -> list[PairedComparison]:
    """Each method minus `base` in value `name`, with p-values corrected together (Holm)."""
    rows = with_value(rows, name, rows)
    first = by_question(of_method(rows, base), name)
    others = (method for method in methods if method != base)
    return corrected([pair(method, by_question(of_method(rows, method), name), first) for method in others])


def pair(name: str, first: Mapping[str, float], second: Mapping[str, float]) -> PairedComparison:
    """The first minus the second over the questions that both have; p is not corrected yet."""
    shared = [question for question in first if question in second]
    signs = vars(sign_test([first[q] for q in shared], [second[q] for q in shared]))
    signs["p"] = signs["p"] if shared else None
    differences = [first[q] - second[q] for q in shared]
    return PairedComparison(method=name, difference=measured(differences), effect=cohens_dz(differences), **signs)


def corrected(found: Sequence[PairedComparison]) -> list[PairedComparison]:
    """The comparisons with their p-values corrected together (Holm)."""
    tested = iter(holm([one.p for one in found if one.p is not None]))
    return [one if one.p is None else replace(one, p=next(tested)) for one in found]


def against(
    base: str, rows: Sequence[Row], value: str, labels: Mapping[str, str], name: str, title: str, unit: str
) -> list[StudyTable]:
    """A table of each method minus `base` in a value, with its test and its correction; none without both.

    `labels` are the methods that have rows, each with its name in the table.
    """
    if base not in labels or len(labels) < 2:
        return []
    found = compare(rows, value, labels, base)
    heads = f"method | minus {labels[base]} ({unit}) | higher (questions) | lower (questions) | ties (questions)"
    columns = Column.row(f"{heads} | p, Holm | effect (d_z)")
    body = ((labels[c.method], c.difference, c.higher, c.lower, c.ties, c.p, c.effect) for c in found)
    n = max(c.difference.n for c in found)
    return [StudyTable(name=name, title=title, columns=columns, rows=tuple(body), n=n, notes=(PAIRED, CORRECTION))]


def counts(rows: Sequence[Row]) -> tuple[int, int, int]:
    """(questions, failed units, unparsed replies) of these rows."""
    return (
        len({row.unit.example for row in rows}),
        sum(r.state == "failed" for r in rows),
        sum(r.unparsed for r in rows),
    )


# What several studies draw: tables and figures from their parts, measures as a line, and the note on what was lost.


def table(
    name: str,
    title: str,
    columns: str | Sequence[Column],
    body: Iterable[tuple[Cell, ...]],
    rows: Sequence[Row],
    *said: str,
    shows: str = "",
    n: int | None = None,
    unit: str = "questions",
    intervals: tuple[str, ...] = (MEANS,),
) -> StudyTable:
    """A table drawn from `rows`, with what was lost among its notes; `columns` as `Column.row` reads them."""
    questions, failed, unparsed = counts(rows)
    lost = f"{failed} of {len(rows)} units failed, {unparsed} replies were unreadable"
    counted = "both stay in the denominators, except where n is smaller."
    return StudyTable(
        name=name,
        title=title,
        columns=Column.row(columns) if isinstance(columns, str) else tuple(columns),
        rows=tuple(body),
        n=questions if n is None else n,
        unit=unit,
        shows=shows,
        notes=(*intervals, f"{lost}; {counted}", *said),
    )


def figure(
    kind: FigureKind,
    name: str,
    title: str,
    x: str,
    y: str,
    series: Iterable[Series],
    shows: str,
    *,
    right: str = "",
    notes: tuple[str, ...] = (),
) -> Figure:
    """A figure; its axes are written "name (unit)", also the one at the `right`."""
    return Figure(
        kind=kind,
        name=name,
        title=title,
        x=Axis.of(x),
        y=Axis.of(y),
        right=Axis.of(right) if right else None,
        series=tuple(series),
        shows=shows,
        notes=notes,
    )


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


def points_of(name: str, found: Iterable[tuple[Row, float | str, float | None]]) -> Series:
    """(row, x, y) as one series of points, each of which opens its row's case."""
    known = list(found)
    x, y = tuple(x for _, x, _ in known), tuple(y for *_, y in known)
    return Series(name=name, x=x, y=y, cases=tuple(row.case for row, *_ in known))


def questions_in(rows: Sequence[Row]) -> int:
    """How many different examples the rows are of, failed ones included."""
    return counts(rows)[0]
