"""The report as Markdown: the same blocks, as plain text that reads well unrendered.

Text is escaped so that nothing in it becomes markup, a link, an image or HTML in a renderer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from engine.cases import blocks as b
from engine.cases.markup import visible

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|!~$&])")
_LINE_START = re.compile(r"^(\s*)([-+=:>]|\d+[.)])(?=\s|$|[-=:])", re.MULTILINE)
_WRAPPED = re.compile(r"\S(?:[^\n]*\S)?")
_ADDRESS = re.compile(r"(?i)\b(https?|ftp|mailto|www)(?=[:.])")


def to_markdown(document: b.ReportDocument) -> str:
    """The whole file."""
    parts = [f"{escaped(document.lead)}\n\n# {one_line(document.title)}", *(_draw(block) for block in document.blocks)]
    return "\n\n".join((*parts, f"---\n\n{escaped(document.foot)}")) + "\n"


def escaped(text: str) -> str:
    """Text that a Markdown renderer shows as it is; bare addresses are broken by a backslash, so that none is linked.

    >>> escaped("![x](http://a.b) <b>")
    '\\\\!\\\\[x\\\\](http\\\\://a.b) \\\\<b\\\\>'
    """
    marked = _SPECIAL.sub(r"\\\1", visible(text).replace("\t", " "))
    marked = _LINE_START.sub(lambda found: f"{found[1]}{found[2][:-1]}\\{found[2][-1]}", marked)
    return _ADDRESS.sub(r"\1\\", marked)


def one_line(text: str) -> str:
    """Text on one line that a Markdown renderer shows as it is."""
    return escaped(" ".join(text.split()))


def _draw(block: b.Block) -> str:
    return _DRAW[type(block)](block)


def _paragraph(block: b.Text) -> str:
    text = "".join(map(_run, block.runs))
    if block.kind in ("answer", "passage"):
        return "\n".join(f"> {line}" for line in text.split("\n"))
    return text


def _run(run: b.TextRun) -> str:
    text = escaped(run.text)
    note = f" ({escaped(run.note)})" if run.kind in ("label", "invalid") and run.note else ""
    wraps = {"strong": "**", "mark": "**", "label": "**", "old": "~~", "new": "**"}
    wrap = wraps.get(run.kind, "")
    if wrap:  # line by line: Markdown ends emphasis where a line of a table or list ends
        text = _WRAPPED.sub(lambda part: f"{wrap}{part.group()}{wrap}", text)
    return text + note


def _table(block: b.Table) -> str:
    rule = ["---:" if i in block.numeric else "---" for i in range(len(block.columns))]
    rows = [
        [one_line(name) for name in block.columns],
        rule,
        *([one_line(f"{cell.text} ({cell.note})" if cell.note else cell.text) for cell in row] for row in block.rows),
    ]
    return f"{one_line(block.caption)}\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _heat(block: b.Heat) -> str:
    strongest = sorted((p for p in block.pieces if p[0].strip()), key=lambda p: -abs(p[1]))[:10]
    listed = "; ".join(f"{one_line(text)} {value:+z.3f}" for text, value in strongest)
    return f"{one_line(block.caption)} ({one_line(block.unit)}; the ten strongest): {listed}"


def _code(block: b.Code) -> str:
    text = visible(block.text)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _headed(head: str, blocks: Iterable[b.Block]) -> str:
    return "\n\n".join((head, *map(_draw, blocks)))


_DRAW: dict[type, Callable[[Any], str]] = {
    b.Text: _paragraph,
    b.Table: _table,
    b.Facts: lambda block: "\n".join(f"- {one_line(name)}: {one_line(value)}" for name, value in block.pairs),
    b.Heat: _heat,
    b.Code: _code,
    b.Notice: lambda block: f"**Note.** {escaped(block.text)}",
    b.Fold: lambda block: _headed(f"**{one_line(block.title)}**", block.blocks),
    b.Section: lambda block: _headed(f"{'#' * block.level} {one_line(block.title)}", block.blocks),
}
