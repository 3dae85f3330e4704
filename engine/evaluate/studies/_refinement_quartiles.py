"""Refinement's gain by quartile of S3 (Table 4), in citation precision and by the judge's votes."""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import InputError
from engine.evaluate.studies._drawing import notes
from engine.evaluate.studies._refinement_tables import VOTES
from engine.evaluate.values import Axis, Column, Figure, Measure, Results, Row, Series, Table
from engine.refine.quartiles import Point, QuartileStudy, gain_by_quartile


def quartiles_of(rows: Sequence[Row], by_judge: bool) -> Results:
    """Gain of D over A by quartile of S3: in citation precision, and by the judge's votes where there are any."""
    kinds = {"citation precision": [_gain(row) for row in rows]}
    if by_judge:
        kinds["judge, +1 D, -1 A"] = [_vote(row) for row in rows]
    tables, figures, said = [], [], []
    for unit, gains in kinds.items():
        points = [(row, gain) for row, gain in zip(rows, gains, strict=True) if gain is not None]
        try:
            study = gain_by_quartile([_point(row, gain) for row, gain in points])
        except InputError as error:
            said.append(f"Gain by quartile of S3, {unit} (Table 4): {error}")
            continue
        name = "judge" if unit.startswith("judge") else "precision"
        tables.append(_quartile_table(study, unit, name, rows))
        figures.append(_quartile_figure(points, unit, name))
    return Results(tables=tuple(tables), figures=tuple(figures), notes=tuple(said))


def _gain(row: Row) -> float | None:
    first, second = (row.values.get("conditions", {}).get(n, {}).get("citation_precision") for n in ("A", "D"))
    return None if first is None or second is None or row.values.get("s3") is None else second - first


def _vote(row: Row) -> float | None:
    return VOTES.get(row.values.get("judged", {}).get("D-A", "")) if row.values.get("s3") is not None else None


def _point(row: Row, gain: float) -> Point:
    return Point(question=row.unit.example, s3=row.values["s3"], first=0.0, second=gain)


def _quartile_table(study: QuartileStudy, unit: str, name: str, rows: Sequence[Row]) -> Table:
    rho = "not defined" if study.rho is None else f"{study.rho:.2f}"
    return Table(
        name=f"quartiles_{name}",
        title=f"Gain of D over A by quartile of S3 ({unit})",
        columns=(
            Column(name="quartile"),
            Column(name="questions"),
            Column(name="S3 from"),
            Column(name="S3 to"),
            Column(name="gain", unit=unit, better="higher"),
        ),
        rows=tuple(
            (q.name, q.questions, q.s3_low, q.s3_high, Measure(value=q.gain, low=q.low, high=q.high, n=q.questions))
            for q in study.quartiles
        ),
        n=sum(q.questions for q in study.quartiles),
        shows="grounded refinement, Table 4",
        notes=(f"Spearman's rho of S3 and gain: {rho}.", *study.readings, *notes(rows)),
    )


def _quartile_figure(points: Sequence[tuple[Row, float]], unit: str, name: str) -> Figure:
    series = Series(
        name="runs",
        x=tuple(row.values["s3"] for row, _ in points),
        y=tuple(gain for _, gain in points),
        cases=tuple(row.case for row, _ in points),
    )
    return Figure(
        name=f"gain_by_s3_{name}",
        title="Gain of D over A against S3 of A",
        kind="points",
        x=Axis(name="S3 of A", unit="share of content words found"),
        y=Axis(name="D - A", unit=unit),
        series=(series,),
        shows="grounded refinement, Table 4",
    )
