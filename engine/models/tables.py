"""Tables in the text of a passage: their rows with the names of the columns, and the rows that a claim names.

A small model does not bind a value to its row: of a whole table it calls "Students pay 90 euros" supportive where
adults do. Of the row alone, with its columns' names, it does not. So a verifier reads the rows that a claim is about.
No paper's method. Left out: claims that count, add up or compare the rows of a table; the column of a name; cells over
several rows, except the first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from engine.core.text import BETWEEN_CELLS, Span, content_words, unjoined
from engine.english.notation import amounts, dates_in_words, in_one_notation, values
from engine.models.alignment import stem
from engine.models.verdicts import WINDOW_WORDS, windows

_LINE = re.compile(r"\S(?:[^\n]*\S)?")
_RULE = re.compile(r"[\s:-]*\|[\s|:-]*")  # "|---|---|" below a head
_NOTE_MARKS = re.compile("[\u00b9\u00b2\u00b3\u2070-\u2079]")
_YEAR = re.compile(r"[12]\d{3}(?:[-/\u2013]\d\d(?:\d\d)?)?\W*")  # "2020", "2019/20", "2020*"
_WORD = re.compile(r"\w+")
_BARE = re.compile(r"[-+]?\d[\d., ]{0,20}")
_INITIALS = 5  # letters of a unit that are not compared with the first ones of words any more
_CAPTION = 15  # words of a line before a table that may say what it is of


class TextTable(NamedTuple):
    """Where a table starts in its text, its rows, the line of column names (or none), and a short line before it."""

    start: int
    rows: tuple[Span, ...]
    head: str = ""
    caption: str = ""


@lru_cache(maxsize=1024)  # every claim of an answer is held against the same passages
def tables(text: str) -> tuple[TextTable, ...]:
    """Two or more lines in sequence with the same number of cells, none so long that it is rather a text.

    One line is enough where each cell has its name ("Fee: 45"), as rows of data files and of long tables have. Else the
    first line names the columns where there are three and its cells differ from those below, or where it alone has no
    number. It does not where a passage starts in the middle of a table.

    >>> [(len(table.rows), table.head) for table in tables("Prices:\\nWho | Fee\\nStudents | 45\\nAdults | 90\\n")]
    [(2, 'Who | Fee')]
    """
    lines = [line.span() for line in _LINE.finditer(text) if not _RULE.fullmatch(line.group())]
    found, before = [], ""
    for cells, group in groupby(lines, key=lambda span: _count(text[slice(*span)])):
        rows = list(group)
        if cells > 1 and (len(rows) > 1 or names_columns(text[slice(*rows[0])])):
            headed = _is_headed([_cells(text[slice(*row)]) for row in rows])
            head = text[slice(*rows[0])] if headed else ""
            caption = before.strip(" .:") if len(before.split()) <= _CAPTION else ""
            found.append(TextTable(rows[0][0], tuple(rows[headed:]), head, caption))
        before = text[slice(*rows[-1])]
    return tuple(found)


def _count(line: str) -> int:
    """How many cells a line has; one where it is longer than a window."""
    return len(_cells(line)) if BETWEEN_CELLS in line and len(line.split()) <= WINDOW_WORDS else 1


def _cells(line: str) -> list[str]:
    """The cells of a line, with those that are empty at its ends; Markdown has a mark at both.

    >>> _cells("| 2019 | 2020"), _cells("| a | b |")
    (['', '2019', '2020'], ['a', 'b'])
    """
    inner = line[1:-1] if len(line) > 1 and line[0] == line[-1] == "|" else line
    return [cell.strip() for cell in f" {inner} ".split(BETWEEN_CELLS)]


def _is_headed(rows: Sequence[Sequence[str]]) -> bool:
    if len(rows) < 2 or _are_named(rows[0]):
        return False
    columns = [(head, below) for head, *below in zip(*rows, strict=True)]
    if len(columns) == 2:
        return not any(map(_is_number, rows[0])) and all(map(_is_number, filter(None, columns[1][1])))
    return not any(_is_like(head, below) for head, below in columns)


def names_columns(line: str) -> bool:
    """Is the line a row each of whose cells has the name of its column itself: "Who: Ann | Fee: 45"?"""
    return BETWEEN_CELLS in line and _are_named(_cells(line))


def _are_named(cells: Iterable[str]) -> bool:
    return all(": " in cell for cell in cells)


def _is_like(head: str, below: Sequence[str]) -> bool:
    """Is the first cell of a column a number like those below, and no year or name with a number ("Q1", "Week 2")."""
    numbers = [cell for cell in below if _is_number(cell)]
    if not numbers or not _is_number(head) or _YEAR.fullmatch(head):
        return False
    return not head[0].isalpha() or _letters(head) in map(_letters, numbers)


def _letters(cell: str) -> str:
    return "".join(filter(str.isalpha, cell))


def with_columns(row: str, head: str) -> str:
    """A row of a table with the name of its column before each cell; `head` is the table's first row.

    >>> with_columns("Iron | 1538", "Metal | Melts at")
    'Metal: Iron, Melts at: 1538'
    """
    columns = _columns(row, head)
    return _told(columns) if any(name for name, _ in columns) else row


def _told(columns: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name}: {cell}" if name else cell for name, cell in columns if cell)


def _columns(row: str, head: str) -> list[tuple[str, str]]:
    """Each cell with the name of its column, by the head or by the cell itself; the names are empty where none tells.

    >>> _columns("Iron | 1538", "Metal | Melts at"), _columns("Metal: Iron | Melts at: 1538", "")
    ([('Metal', 'Iron'), ('Melts at', '1538')], [('Metal', 'Iron'), ('Melts at', '1538')])
    """
    cells = _cells(row)
    if head:
        named = list(zip(_cells(head), cells, strict=False))
    elif _are_named(cells):
        named = [(name, cell) for name, _, cell in (cell.partition(": ") for cell in cells)]
    else:
        return [("", cell) for cell in cells]
    return [(" ".join(unjoined(name).split()), cell) for name, cell in named]


def _for_claim(claim: str, row: str, head: str) -> str:
    """The row with its columns; with those alone that a claim names if it has the number of another one.

    >>> [_for_claim(f"North sold {n} in Q2", "North | 5 | 7", "Who | Q1 | Q2") for n in (5, 7)]
    ['Who: North, Q2: 7', 'Who: North, Q1: 5, Q2: 7']
    """
    first, *columns = (_with_unit(column, claim) for column in _columns(row, head))
    named = [(name, cell) for name, cell in columns if _is_named(name, claim)]
    said, theirs, others = (
        {value for text in texts for value, _ in values(text)}
        for texts in ([claim], [cell for _, cell in named], [one[1] for one in columns if one not in named])
    )
    if theirs and not said & theirs and said & others:
        return _told((first, *named))
    return _told((first, *columns)) if any(name for name, _ in (first, *columns)) else row


def _with_unit(column: tuple[str, str], claim: str) -> tuple[str, str]:
    """A bare number with the unit that the name of its column ends with, where the claim has a measure of this kind.

    That is a unit of one dimension with the claim's, or the first letters of the words behind a number of the claim.

    >>> _with_unit(("height m", "48"), "It is 4,800 cm high")
    ('height', '48 m')
    >>> _with_unit(("range (nm)", "22"), "It has 9 nautical miles")
    ('range', '22 nautical miles')
    >>> _with_unit(("vitamin C", "48"), "It is 4,800 cm high")
    ('vitamin C', '48')
    """
    name, cell = column
    rest, _, unit = name.rpartition(" ")
    rest, unit = rest.removesuffix(" in"), unit.strip("()[]")
    if not rest or not unit or not _BARE.fullmatch(cell):
        return column
    kinds = {one.unit for one in amounts(claim) if one.measured}
    for written in (f"°{unit}", unit, unit.upper()):
        if any(one.unit in kinds and one.end > len(cell) for one in amounts(f"{cell} {written}")):
            return rest, f"{cell} {written}"
    letters = unit if unit.isalpha() and 1 < len(unit) < _INITIALS else "."
    spelled = re.search(r"\d\s+(" + r"\s+".join(rf"{one}[a-z]+" for one in letters) + r")\b", claim, re.IGNORECASE)
    return (rest, f"{cell} {spelled[1]}") if spelled and letters == unit else column


def named_rows(claim: str, text: str, table: TextTable) -> list[Span]:
    """The rows that a claim is about, in order: those whose first cell it names; else those that share most words.

    A number alone names no row, except a year: a false claim has the number of another row. "Total costs" does not name
    the row "Costs". An empty first cell is that of the row above. A head that opens the text may be a row itself.

    >>> text = "Who | Fee\\nStudents | 45\\nAdults | 90\\n"
    >>> [text[a:b] for a, b in named_rows("Students pay 90", text, tables(text)[0])]
    ['Students | 45']
    """
    claim = dates_in_words(claim)
    said = _said(claim)
    labels, shared, label = {}, {}, ""
    for row in table.rows:
        cells = [cell for _, cell in _columns(in_one_notation(claim, text[slice(*row)])[1], table.head)]
        label = cells[0] or label
        if _is_named(label, claim):
            labels[row] = frozenset(_stems(label))
        shared[row] = sum(not _is_number(stem) for stem in said.keys() & _stems(" ".join(cells)))
    different = set(labels.values())
    if labels:
        return [row for row, own in labels.items() if not _is_within(own, different, said)]
    most = max(shared.values())
    rows = [row for row, count in shared.items() if count == most]
    opens = bool(table.head) and not text[: table.start].strip() and _is_named(_cells(table.head)[0], claim)
    return [(table.start, table.start + len(table.head)), *rows] if opens else rows


@lru_cache(maxsize=1024)
def _said(claim: str) -> Counter[str]:
    return Counter(_stems(claim))


def _is_named(label: str, claim: str) -> bool:
    """Does a claim have all words of a label; of one whose words say little ("May", "US"), as they are written."""
    own = set(_stems(label))
    return _names(label) and (
        _said(claim).keys() >= own if own else set(_WORD.findall(claim)) >= set(_WORD.findall(label))
    )


def _is_within(own: Set[str], labels: Iterable[Set[str]], said: Counter[str]) -> bool:
    """Are the words of a label there only as a part of a longer one."""
    return any(own < other and max(said[stem] for stem in own) == 1 for other in labels if own)


def _names(cell: str) -> bool:
    """Can a cell name its row: it has a letter, or it is a year."""
    return bool(_YEAR.fullmatch(cell)) or any(map(str.isalpha, cell))


def _stems(text: str) -> list[str]:
    return [stem(word) for word in content_words(_NOTE_MARKS.sub("", text))]


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
        told = line if line == table.head else _for_claim(claim, line, table.head)
        size += len(told.split())
        if taken and size > words:
            yield _together(taken, table.caption)
            taken, size = [], len(told.split())
        taken.append((row, told))
    yield _together(taken, table.caption)


def _together(rows: Sequence[tuple[Span, str]], caption: str) -> tuple[Span, str]:
    (first, _), *_, (last, _) = rows[0], rows[-1]
    return (first[0], last[1]), ". ".join(filter(None, (caption, *(told for _, told in rows))))
