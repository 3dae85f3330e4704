"""Compare two runs of one study: every value that both measured, by method, over their common questions."""

from __future__ import annotations

from collections.abc import Sequence

from engine.core.errors import InputError
from engine.studies.evaluate import Evaluation
from engine.studies.summary import (
    CORRECTION,
    PAIRED,
    PairedComparison,
    by_question,
    corrected,
    measured,
    methods_in,
    of_method,
    pair,
)
from engine.studies.values import Cell, Column, Row, StudyTable

COLUMNS = Column.row(
    "method | value | first | second | first minus second | higher (questions) | "
    "lower (questions) | p, Holm | effect (d_z)"
)


def numbers(rows: Sequence[Row]) -> list[str]:
    """Names of the values that are numbers in some row, in the order in which the rows bring them."""
    found = dict.fromkeys(name for row in rows for name, value in row.values.items() if isinstance(value, (int, float)))
    return list(found)


def compare_runs(first: Evaluation, second: Evaluation) -> StudyTable:
    """Means and paired differences; raise `InputError` for runs of two studies or without a question in common."""
    if first.config.study != second.config.study:
        raise InputError(
            f"One run is of {first.config.study}, the other of {second.config.study}. Choose two runs of one study."
        )
    shared = [method for method in methods_in(first.rows) if method in methods_in(second.rows)]
    names = [name for name in numbers(first.rows) if name in numbers(second.rows)]
    found: list[tuple[tuple[Cell, ...], PairedComparison]] = []
    for method in shared:
        for name in names:
            a, b = (by_question(of_method(run.rows, method), name) for run in (first, second))
            means = measured([v for q, v in a.items() if q in b]), measured([v for q, v in b.items() if q in a])
            if means[0].n:
                found.append(((method, name, *means), pair(method, a, b)))
    if not found:
        raise InputError("The two runs have no question in common. Compare runs of the same data set.")
    by_holm = corrected([one for _, one in found])
    rows = tuple(
        (*head, one.difference, one.higher, one.lower, one.p, one.effect)
        for (head, _), one in zip(found, by_holm, strict=True)
    )
    questions = max(one.difference.n for one in by_holm)
    notes = (PAIRED, CORRECTION, "Only questions in both runs; a failed unit counts as 0.")
    return StudyTable(name="comparison", title="Two runs", columns=COLUMNS, rows=rows, n=questions, notes=notes)
