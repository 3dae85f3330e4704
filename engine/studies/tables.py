"""Tables as CSV, JSON, LaTeX and Markdown. Every one says its n, its unit and which way is better.

CSV and JSON hold full precision, an interval in columns of its own; LaTeX and Markdown round for reading. Text that
came from data sets and models is escaped for each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec
import pandas as pd

from engine.cases.markup import quoted
from engine.core.values import Value
from engine.report.drawings import latex
from engine.report.markdown import one_line
from engine.studies.values import Cell, Column, Measure, StudyTable

ARROWS = {"": "", "higher": "↑", "lower": "↓"}
LATEX_ARROWS = {"": "", "higher": r"$\uparrow$", "lower": r"$\downarrow$"}


def rounded(cell: Cell) -> str:
    """A cell for reading: three decimals, whole numbers whole, a dash for what is not defined.

    A positive number that would read as zero, such as a p-value, is said to be under 0.001.

    >>> rounded(Measure(value=0.5, low=0.25, high=0.75, n=12)), rounded(None), rounded(1234.5), rounded(1e-5)
    ('0.500 [0.250, 0.750]', '-', '1,234.5', '<0.001')
    """
    if isinstance(cell, Measure):
        interval = "" if cell.low is None or cell.high is None else f" [{rounded(cell.low)}, {rounded(cell.high)}]"
        return f"{rounded(cell.value)}{interval}"
    if cell is None:
        return "-"
    if isinstance(cell, float):
        if 0 < cell < 0.0005:
            return "<0.001"
        return f"{cell:,.0f}" if abs(cell) >= 10_000 else f"{cell:,.1f}" if abs(cell) >= 100 else f"{cell:.3f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def heading(column: Column) -> str:
    """Name, unit and direction: "ROUGE-L (F1) ↑"."""
    return f"{column.label} {ARROWS[column.better]}".strip()


def caption(table: StudyTable) -> str:
    """Title, what it redraws, and what one n is."""
    shows = f" After {table.shows}." if table.shows else ""
    unit = re.sub(r"s\b", "", table.unit, count=1) if table.n == 1 else table.unit
    return f"{table.title}.{shows} n = {table.n:,} {unit}."


def to_csv(table: StudyTable) -> str:
    """Full precision; a measure takes four columns: value, low, high, n."""
    data: dict[str, list[object]] = {}
    for j, column in enumerate(table.columns):
        cells = [row[j] for row in table.rows]
        values = (cell.value if isinstance(cell, Measure) else cell for cell in cells)
        data[column.label] = [quoted(value) if isinstance(value, str) else value for value in values]
        for end in ("low", "high", "n") if any(isinstance(cell, Measure) for cell in cells) else ():
            data[f"{column.label} {end}"] = [getattr(cell, end, None) for cell in cells]
    text: str = pd.DataFrame(data, dtype=object).to_csv(index=False, lineterminator="\n")
    return text


def to_markdown(table: StudyTable) -> str:
    """A GitHub table under its caption, with its notes."""
    lines = [f"**{one_line(caption(table))}**", ""]
    lines.append(f"| {' | '.join(one_line(heading(column)) for column in table.columns)} |")
    lines.append(f"| {' | '.join('---' for _ in table.columns)} |")
    lines += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in table.rows]
    lines += ["", *(f"{one_line(note)}  " for note in table.notes)] if table.notes else []
    return "\n".join(lines).rstrip() + "\n"


def _cell(cell: Cell) -> str:
    return one_line(cell) if isinstance(cell, str) else rounded(cell)


def to_latex(table: StudyTable) -> str:
    """A booktabs table."""
    heads = [f"{latex(column.label)} {LATEX_ARROWS[column.better]}".strip() for column in table.columns]
    kinds = "".join("l" if all(isinstance(row[j], str) for row in table.rows) else "r" for j in range(len(heads)))
    frame = pd.DataFrame([[latex(rounded(cell)) for cell in row] for row in table.rows], columns=heads, dtype=object)
    drawn: str = frame.to_latex(index=False, escape=False, caption=latex(caption(table)), column_format=kinds)
    return drawn + "".join(f"% {' '.join(note.split())}\n" for note in table.notes)


def to_json(value: Value) -> str:
    """The table itself, or another value of a run, for people to read."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode() + "\n"


FORMATS: Mapping[str, Callable[[StudyTable], str]] = {
    "csv": to_csv,
    "json": to_json,
    "tex": to_latex,
    "md": to_markdown,
}
