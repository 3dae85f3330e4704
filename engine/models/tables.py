"""Tables in the text of a passage: their rows with the names of the columns, and the rows that a claim names.

A small model does not bind a value to its row: of a whole table it calls "Students pay 90 euros" supportive where
adults do. Of the row alone, with its columns' names, it does not. So a verifier reads the rows that a claim is about.
No paper's method. Left out: claims that count, add up or compare the rows of a table; cells over several rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from engine.core.text import BETWEEN_CELLS, Span, content_words
from engine.english.notation import in_one_notation
from engine.models.alignment import stem
from engine.models.verdicts import WINDOW_WORDS, windows

_LINE = re.compile(r"[^\n]+")
_YEAR = re.compile(r"[12]\d{3}")
_CAPTION = 15  # words of a line before a table that may say what it is of


class TextTable(NamedTuple):
    """Where a table starts in its text, its rows, the line of column names (or none), and a short line before it."""

    start: int
    rows: tuple[Span, ...]
    head: str = ""
    caption: str = ""


@lru_cache(maxsize=1024)  # every claim of an answer is held against the same passages
def tables(text: str) -> tuple[TextTable, ...]:
    """Two or more lines in sequence with the same number of cells.

    The first line names the columns where there are three and its cells differ from those below, or where it alone has
    no number. It does not where a passage starts in the middle of a table.

    >>> [(len(table.rows), table.head) for table in tables("Prices:\\nWho | Fee\\nStudents | 45\\nAdults | 90\\n")]
    [(2, 'Who | Fee')]
    """
    lines = [line.span() for line in _LINE.finditer(text)]
    found, before = [], ""
    for cells, group in groupby(lines, key=lambda span: text[slice(*span)].count(BETWEEN_CELLS)):
        rows = list(group)
        if cells and len(rows) > 1:
            headed = _is_headed([text[slice(*row)].split(BETWEEN_CELLS) for row in rows])
            head = text[slice(*rows[0])] if headed else ""
            caption = before.strip(" .:") if len(before.split()) <= _CAPTION else ""
            found.append(TextTable(rows[0][0], tuple(rows[headed:]), head, caption))
        before = text[slice(*rows[-1])]
    return tuple(found)


def _is_headed(rows: Sequence[Sequence[str]]) -> bool:
    if all(": " in cell for cell in rows[0]):  # each row has the names itself
        return False
    columns = list(zip(*rows, strict=True))
    numbered = [all(map(_is_number, cells)) for _, *cells in columns]
    if len(rows[0]) == 2:
        return not any(map(_is_number, rows[0])) and numbered[1]
    same = (_is_number(head) and not _YEAR.fullmatch(head.strip()) for head, *_ in columns)
    return not any(a and b for a, b in zip(same, numbered, strict=True))


def with_columns(row: str, head: str) -> str:
    """A row of a table with the name of its column before each cell; `head` is the table's first row.

    >>> with_columns("Iron | 1538", "Metal | Melts at")
    'Metal: Iron, Melts at: 1538'
    """
    names, cells = (line.split(BETWEEN_CELLS) for line in (head, row))
    return ", ".join(f"{name}: {cell}" for name, cell in zip(names, cells, strict=False)) or row


def named_rows(claim: str, text: str, table: TextTable) -> list[Span]:
    """The rows that a claim is about, in order: those whose first cell it names; else those that share most words.

    A number alone names no row, except a year: a false claim has the number of another row.

    >>> text = "Who | Fee\\nStudents | 45\\nAdults | 90\\n"
    >>> [text[a:b] for a, b in named_rows("Students pay 90", text, tables(text)[0])]
    ['Students | 45']
    """
    said = _stems(claim)
    cells = {row: in_one_notation(claim, text[slice(*row)])[1].split(BETWEEN_CELLS) for row in table.rows}
    if keyed := [row for row, (first, *_) in cells.items() if _names(first) and _stems(first) <= said]:
        return keyed
    shared = {row: sum(not _is_number(stem) for stem in said & _stems(" ".join(own))) for row, own in cells.items()}
    most = max(shared.values())
    return [row for row, count in shared.items() if count == most]


def _names(cell: str) -> bool:
    """Can a cell name its row: it has a word, or it is a year."""
    return bool(_YEAR.fullmatch(cell.strip())) or not all(map(_is_number, _stems(cell)))


def _stems(text: str) -> set[str]:
    return set(map(stem, content_words(text)))


def _is_number(word: str) -> bool:
    return any(c.isdigit() for c in word)


def without_other_rows(claim: str, text: str) -> str:
    """The text without the rows of its tables that the claim is not about.

    >>> without_other_rows("Students pay 90", "Who | Fee\\nStudents | 45\\nAdults | 90\\nAll is due in May.")
    'Who | Fee\\nStudents | 45\\n\\nAll is due in May.'
    """
    parts, end = [], 0
    for table in tables(text):
        for row in sorted(set(table.rows).difference(named_rows(claim, text, table))):
            parts.append(text[end : row[0]])
            end = row[1]
    return "".join([*parts, text[end:]])


def readings(claim: str, text: str, words: int = WINDOW_WORDS) -> list[tuple[Span, str]]:
    """The parts of a text that a claim is compared with, each with what is read there, about `words` words at most.

    Outside of tables windows of whole sentences as they are; of a table the rows that the claim is about.
    """
    found, end = [], 0
    for table in tables(text):
        found += _windows(text, end, table.start, words)
        found += _of_rows(claim, text, table, words)
        end = table.rows[-1][1]
    return [*found, *_windows(text, end, len(text), words)] or [((0, len(text)), text)]


def _windows(text: str, start: int, end: int, words: int) -> list[tuple[Span, str]]:
    if not text[start:end].strip():
        return []
    spans = [(start + a, start + b) for a, b in windows(text[start:end], words)]
    return [(span, text[slice(*span)]) for span in spans]


def _of_rows(claim: str, text: str, table: TextTable, words: int) -> Iterator[tuple[Span, str]]:
    """The named rows, as many at a time as fit, after the line that says what the table is of."""
    taken: list[tuple[Span, str]] = []
    size = 0
    for row in named_rows(claim, text, table):
        line = text[slice(*row)]
        told = with_columns(line, table.head) if table.head else line
        size += len(told.split())
        if taken and size > words:
            yield _together(taken, table.caption)
            taken, size = [], len(told.split())
        taken.append((row, told))
    yield _together(taken, table.caption)


def _together(rows: Sequence[tuple[Span, str]], caption: str) -> tuple[Span, str]:
    (first, _), *_, (last, _) = rows[0], rows[-1]
    return (first[0], last[1]), ". ".join(filter(None, (caption, *(told for _, told in rows))))
