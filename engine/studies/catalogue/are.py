"""ARE compared with DRQA, RARR, CCVER and an EFEC-style editor (ARE, Tables 1, 3 and 5, Fig. 5 and 6).

One run is one data set and one model. Attr_p of ARE pairs evidence and clause, that of the others is unpaired (appendix
E); Table 5 gives them the pairing. Before editing (Table 3) every method is measured on the answer as it was. The
answer checked is the example's, else one written without passages. `options.by_model` names the parts that the language
model takes over: decomposer, judge, editor, expander; without it rules and the verifier decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from engine.core.progress import Watch
from engine.methods.are.baselines import NAMES
from engine.studies.are_answers import COLUMNS, against_are, cells, checked, cost, harmonic, revised
from engine.studies.config import Config
from engine.studies.example import Example
from engine.studies.summary import by_method, figure, table
from engine.studies.tools import Study, StudyTools
from engine.studies.values import Cell, Figure, Found, Results, Row, Series, StudyTable, Unit

ARE, DRQA = "are", "drqa"
LABELS = {DRQA: "DRQA", "efec-style": "EFEC-style", "ccver": "CCVER", "rarr": "RARR", ARE: "ARE"}
GRID = tuple(round(i / 20, 2) for i in range(21))  # of the contours: Attr and Pres from 0 to 1


def run(tools: StudyTools, unit: Unit, example: Example, watch: Watch) -> Found:
    """One answer by one method."""
    settings = tools.settings(unit.seed)
    by = checked if unit.method == ARE else revised
    return by(tools, unit, example, settings, watch)


def results(config: Config, rows: Sequence[Row]) -> Results:
    """Tables 1, 3 and 5, the comparison with ARE, the outcomes of its facts, and the two contours."""
    by = {name: own for name, own in by_method(rows, LABELS).items() if _offered(own)}
    tables = [_table_1(by, rows), _table_3(by, rows), _table_5(by, rows)]
    if ARE in by:
        tables += [*against_are(rows, by, LABELS, ("attr_r", "pres")), _outcomes(by[ARE])]
    edited = {name: own for name, own in by.items() if name != DRQA}
    figures = [contour(by, edited, "attr_r", "F1_RP", "left"), contour(by, edited, "attr_p", "F1_PP", "right")]
    return Results(tables=tuple(tables), figures=tuple(figures))


def _offered(rows: Sequence[Row]) -> bool:
    """Is there a row that ran, or failed: without a language model the methods that ask by one are left out."""
    return any("attr_r" not in row.missing for row in rows)


def _table_1(by: dict[str, list[Row]], rows: Sequence[Row]) -> StudyTable:
    body = ((LABELS[name], *cells(own, edits=name != DRQA)) for name, own in by.items())
    said = "DRQA does not edit. Attr_p: ARE's pairs evidence and clause, the others' is unpaired (appendix E)."
    title = "Attribution and preservation after editing"
    return table("table_1", title, COLUMNS, body, rows, said, unit="answers", shows="ARE, Table 1")


def _table_3(by: dict[str, list[Row]], rows: Sequence[Row]) -> StudyTable:
    body = ((LABELS[name], *cells(own, "before_", edits=False)[:2]) for name, own in by.items())
    title = "What each retrieval finds, before any edit"
    return table("table_3", title, COLUMNS[:3], body, rows, unit="answers", shows="ARE, Table 3")


def _table_5(by: dict[str, list[Row]], rows: Sequence[Row]) -> StudyTable:
    body: list[tuple[Cell, ...]] = []
    for name, own in by.items():
        if name not in (ARE, DRQA):
            body.append((LABELS[name], *cells(own)))
            body.append((f"{LABELS[name]}, evidence by clause", *cells(own, "aggregated_")))
    body += [(LABELS[ARE], *cells(by[ARE]))] if ARE in by else []
    said = "Evidence by clause: answers whose questions belong to clauses and whose number of clauses is unchanged."
    title = "Evidence of sub-questions, joined by clause"
    return table("table_5", title, COLUMNS, body, rows, said, unit="answers", shows="ARE, Table 5")


def _outcomes(rows: Sequence[Row]) -> StudyTable:
    """The outcomes of ARE's facts; every fact of every answer is in the denominator."""
    counted = sum((Counter(row.values.get("outcomes", {})) for row in rows), Counter[str]())
    body = ((name, count, count / counted.total()) for name, count in counted.most_common())
    heads = "outcome | facts | share (of all facts)"
    return table("outcomes", "Outcomes of the facts", heads, body, rows, n=counted.total(), unit="facts")


def contour(by: dict[str, list[Row]], edited: dict[str, list[Row]], attribution: str, name: str, side: str) -> Figure:
    """Level curves of the F1 over attribution and Pres, a point a method, a line at the best before editing."""
    place = ("attr_r", "attr_p", "pres").index(attribution)
    points = {label: cells(own) for label, own in edited.items()}
    before = [cells(own, "before_", edits=False)[place].value for own in by.values()]
    best = max((value for value in before if value is not None), default=None)
    levels = harmonic(*np.meshgrid(np.array(GRID), np.array(GRID)))
    series = [Series(name=name, x=GRID, y=GRID, z=tuple(tuple(map(float, row)) for row in levels))]
    if best is not None:
        series.append(Series(name="best before editing", x=(best, best), y=(0.0, 1.0)))
    for method, found in points.items():
        x, y = found[place].value, found[2].value
        if x is not None:
            series.append(Series(name=LABELS[method], x=(x,), y=(y,), low=(found[2].low,), high=(found[2].high,)))
    axis = {"attr_r": "Attr_r", "attr_p": "Attr_p"}[attribution]
    title = f"{axis} and Pres after editing, over level curves of {name}"
    said = "Right of the line: editing exceeded the best attribution of any method before editing."
    axes, shows = (f"{axis} (0 to 1)", "Pres (0 to 1)"), f"ARE, Fig. 5 and 6, {side}"
    return figure("contour", f"fig_5_{side}", title, *axes, series, shows, notes=(said,))


STUDY = Study(
    name="are",
    title="Attribution and preservation of answers that are checked and edited",
    shows=("ARE, Table 1", "ARE, Table 3", "ARE, Table 5", "ARE, Fig. 5 and 6"),
    methods=(DRQA, *(name for name in NAMES if name != DRQA), ARE),
    run=run,
    results=results,
    cost=cost,
    uses={"an answer": "checking the example's answer (without one, an answer is written from memory)"},
    writes=lambda config, unit, example: not example.answer or bool(config.options.get("by_model")),
)
