"""Refinement's judge: pairs of conditions compared by grounding, over all runs and over the flagged ones."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from engine.evaluate.studies._drawing import line, notes
from engine.evaluate.studies._refinement_tables import VOTES, fired
from engine.evaluate.summary import measure
from engine.evaluate.values import Axis, Cell, Column, Figure, Measure, Row, Table
from engine.judge import Winner, tally

Pairs = Sequence[tuple[str, str]]


def judge_tables(rows: Sequence[Row], pairs: Pairs) -> list[Table]:
    """All runs (Table 2), then v2c on the runs that its own trigger flags (Tables 10 and 11)."""
    marks = fired(rows, "v2c")
    flagged = [row for row in rows if marks.get(row.unit)]
    tables = [_table("judge", "Pairs of conditions by the judge", rows, pairs, "grounded refinement, Table 2")]
    second = [names for names in pairs if names[0].startswith("v2")]
    if second:
        shows = "grounded refinement, Tables 10 and 11"
        tables.append(_table("judge_flagged", "Pairs by the judge on flagged runs", flagged, second, shows))
    return tables


def votes(rows: Sequence[Row], first: str, second: str) -> Measure:
    """Mean of +1 (first wins), 0, -1 over the runs whose orders agree, by question."""
    marked = [replace(row, values={"vote": VOTES.get(_winner(row, first, second) or "")}) for row in rows]
    return measure(marked, "vote", None)


def _winner(row: Row, first: str, second: str) -> Winner | None:
    found: Winner | None = row.values.get("judged", {}).get(f"{first}-{second}")
    return found


def _table(name: str, title: str, rows: Sequence[Row], pairs: Pairs, shows: str) -> Table:
    lines: list[tuple[Cell, ...]] = []
    for first, second in pairs:
        winners = [_winner(row, first, second) for row in rows]
        found = tally([winner for winner in winners if winner is not None])
        lines.append(
            (
                f"{first} against {second}",
                found.wins,
                found.ties,
                found.losses,
                found.disagreed,
                found.unparsed,
                winners.count(None),
                found.win_share,
                votes(rows, first, second),
                found.p,
            )
        )
    return Table(
        name=name,
        title=title,
        columns=(
            Column(name="comparison"),
            Column(name="first wins", unit="runs"),
            Column(name="ties", unit="runs"),
            Column(name="second wins", unit="runs"),
            Column(name="orders disagree", unit="runs"),
            Column(name="unparsed", unit="runs"),
            Column(name="not judged", unit="runs"),
            Column(name="wins, of decided", unit="share"),
            Column(name="mean vote", unit="+1 first, -1 second"),
            Column(name="p, binomial"),
        ),
        rows=tuple(lines),
        n=len(rows),
        unit="runs (question x seed)",
        shows=shows,
        notes=notes(rows, "Blinded, both orders, counted where they agree; p is not corrected over the rows."),
    )


def judge_figure(rows: Sequence[Row], pairs: Pairs) -> Figure:
    """Mean vote of every pair."""
    return Figure(
        name="judge",
        title="Mean vote of the judge",
        kind="bars",
        x=Axis(name="comparison"),
        y=Axis(name="mean vote", unit="+1 first, -1 second"),
        series=(line("all runs", {f"{a} against {b}": votes(rows, a, b) for a, b in pairs}),),
        shows="grounded refinement, Table 2",
    )
