"""What a report is made of, apart from how it is written: the sections return blocks, HTML and Markdown draw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RunKind = Literal["text", "strong", "cite", "invalid", "mark", "label", "old", "new"]


@dataclass(frozen=True)
class Run:
    """A stretch of text. `link` is the id of another place in the report; `note` is what a label or mark says."""

    text: str
    kind: RunKind = "text"
    link: str = ""
    note: str = ""


@dataclass(frozen=True)
class Text:
    """A paragraph; `kind` "answer" and "passage" keep the line breaks of the text."""

    runs: tuple[Run, ...]
    kind: Literal["plain", "answer", "passage", "note"] = "plain"


@dataclass(frozen=True)
class Cell:
    """A table cell; `note` is printed under the text, `faint` marks what is under a floor, `kind` is a verdict."""

    text: str
    note: str = ""
    faint: bool = False
    link: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Table:
    """A table; the first cell of a row is its header. `numeric` are the columns set flush right."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numeric: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Facts:
    """Name and value pairs."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Heat:
    """Text cut into pieces, each with a signed value; `largest` is the value that gets the full colour."""

    caption: str
    pieces: tuple[tuple[str, float], ...]
    largest: float
    unit: str


@dataclass(frozen=True)
class Code:
    """Text as it was sent or stored, in a fixed-width face."""

    text: str
    label: str


@dataclass(frozen=True)
class Notice:
    """A sentence that must not be missed."""

    text: str


@dataclass(frozen=True)
class Fold:
    """Blocks behind a line that opens them; open where the report is printed."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Section:
    """A headed part of the report; `level` 2 to 4."""

    title: str
    blocks: tuple[Block, ...]
    id: str = ""
    level: int = 2


Block = Text | Table | Facts | Heat | Code | Notice | Fold | Section


@dataclass(frozen=True)
class Document:
    """A whole report. `lead` is what stands over the title, `foot` what a printed page carries at its foot."""

    title: str
    lead: str
    foot: str
    blocks: tuple[Block, ...] = ()


def plain(text: str, kind: Literal["plain", "answer", "passage", "note"] = "plain") -> Text:
    """A paragraph of one run."""
    return Text((Run(text),), kind)


def cells(*values: str) -> tuple[Cell, ...]:
    """A row of plain cells."""
    return tuple(Cell(value) for value in values)
