"""The parts of a report, independent of its format: sections return blocks, HTML and Markdown draw them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Literal

from engine.answer.citations import annotate, style_of
from engine.cases.review import Mark
from engine.cases.words import Change, word_diff
from engine.core.text import ANY_CITATION, marker_numbers
from engine.core.values import Answer, Case, Passage, T, own_title

RunKind = Literal["text", "strong", "cite", "invalid", "mark", "label", "old", "new"]


@dataclass(frozen=True)
class TextRun:
    """A stretch of text. `link` is the id of another place in the report; `note` is what a label or mark says."""

    text: str
    kind: RunKind = "text"
    link: str = ""
    note: str = ""


@dataclass(frozen=True)
class Text:
    """A paragraph; `kind` "answer" and "passage" keep the line breaks of the text."""

    runs: tuple[TextRun, ...]
    kind: Literal["plain", "answer", "passage", "note"] = "plain"


@dataclass(frozen=True)
class Cell:
    """A table cell; `note` is printed under the text, `faint` marks what is under a floor, `kind` is a verdict.

    `places` are what it names ("passage-3", "sentence-2", "fact-1.1"); a report links to a passage. `tint` in [-1, 1]
    is the share of the full colour: orange above zero, blue below.
    """

    text: str
    note: str = ""
    faint: bool = False
    places: tuple[str, ...] = ()
    kind: str = ""
    tint: float = 0.0


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
class ReportDocument:
    """A whole report. `lead` is the line above the title, `foot` the footer of a printed page."""

    title: str
    lead: str
    foot: str
    blocks: tuple[Block, ...] = ()


def plain(text: str, kind: Literal["plain", "answer", "passage", "note"] = "plain") -> Text:
    """A paragraph of one run."""
    return Text((TextRun(text),), kind)


def table(
    caption: str, columns: Iterable[str], rows: Iterable[Iterable[Cell | str]], numeric: Iterable[int] = ()
) -> Table:
    """A table; a text is a plain cell."""
    drawn = (tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in row) for row in rows)
    return Table(caption, tuple(columns), tuple(drawn), frozenset(numeric))


def notices(notes: Iterable[str]) -> list[Notice]:
    """Notes as notices; who wrote and who scored is said once, at the head of the report."""
    return [Notice(note) for note in notes if not note.startswith("Written by ")]


def part(title: str, blocks: Iterable[Block]) -> Section:
    """A headed part of an analysis."""
    return Section(title, tuple(blocks), level=4)


Labelled = tuple[int, int, str]  # start, end, what the label says


def signed(value: float) -> str:
    """A score with its sign: three decimals, four digits for small ones."""
    return f"{value:+z.3f}" if abs(value) >= 0.001 or value == 0 else f"{value:+.1e}"


def short(value: Any) -> str:
    """Any value on one line."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def place(passage: Passage) -> str:
    """The position of a passage in its document."""
    page = f", page {passage.page}" if passage.page is not None else ""
    return f"{passage.document}{page}, characters {passage.start:,} to {passage.end:,}"


def of_passages(*numbers: int) -> tuple[str, ...]:
    """The places of passages by their numbers in the case."""
    return tuple(f"passage-{number}" for number in numbers)


def name_of(case: Case, number: int) -> str:
    """A passage as a table names it: its number, and its title if it has one."""
    if not 1 <= number <= len(case.passages):
        return str(number)
    title = own_title(number, case.passages[number - 1].label)
    return f"{number} {title if len(title) <= 60 else title[:57] + '...'}".strip()


def exchanged(said: str, prompt: str, reply: str, of: str) -> list[Block]:
    """A call of a model: a note, the exact prompt, the raw reply; `of` names it in their labels (" of A")."""
    return [plain(said, "note"), Code(prompt, f"Prompt{of}"), Code(reply or "(empty)", f"Reply{of}")]


def answer_runs(answer: Answer, passages: tuple[Passage, ...], labels: Iterable[Labelled] = ()) -> tuple[TextRun, ...]:
    """The answer cut at its citations and at labelled spans; text positions are offsets into `answer.text`."""
    spans = sorted(labels)
    edges = [*((c.start, c.end) for c in answer.citations), *((start, end) for start, end, _ in spans)]
    cuts = {0, len(answer.text), *chain.from_iterable(edges)}
    runs: list[TextRun] = []
    for start, end in pairwise(sorted(point for point in cuts if 0 <= point <= len(answer.text))):
        citation = next((c for c in answer.citations if c.start <= start < c.end), None)
        said = [text for s, e, text in spans if s <= start < e]
        if citation is not None:
            opened = [c for c in answer.citations if c.start == start]  # of a range all but the last are at one place
            runs.extend(_citation(c.number, c.valid, passages) for c in opened)
        elif said:
            closes = any(e == end for s, e, _ in spans if s <= start < e)
            runs.append(TextRun(answer.text[start:end], "label", note="; ".join(said) if closes else ""))
        else:
            runs.append(TextRun(answer.text[start:end]))
    return tuple(runs)


def _citation(number: int, valid: bool, passages: tuple[Passage, ...]) -> TextRun:
    if not valid or not 1 <= number <= len(passages):
        return TextRun(f"[{number}]", "invalid", note="this passage was not given")
    passage = passages[number - 1]
    return TextRun(f"[{number}]", "cite", link=f"passage-{number}", note=passage.label)


def cut(text: str, spans: Iterable[tuple[int, int, T]]) -> Iterator[tuple[str, T | None]]:
    """The text as pieces, each with the value of its (start, end, value) span, None between.

    The spans come in order; what two of them share belongs to the first.

    >>> list(cut("Ice melts.", [(0, 3, 1.5), (2, 9, 2.0)]))
    [('Ice', 1.5), (' melts', 2.0), ('.', None)]
    """
    position = 0
    for start, end, value in (*spans, (len(text), len(text), None)):
        start = max(start, position)
        if text[position:start]:
            yield text[position:start], None
        if text[start:end]:
            yield text[start:end], value
        position = max(start, end)


def cut_at_citations(text: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The text as pieces, each citation marker with the numbers that it names, () between.

    >>> list(cut_at_citations("Ice melts [cite_1, cite_2]."))
    [('Ice melts ', ()), ('[cite_1, cite_2]', (1, 2)), ('.', ())]
    """
    markers = ANY_CITATION.finditer(text)
    numbered = ((m.start(), m.end(), tuple(number for *_, number in marker_numbers(m.group()))) for m in markers)
    return ((piece, numbers or ()) for piece, numbers in cut(text, numbered))


def cited(runs: Iterable[TextRun], case: Case) -> tuple[TextRun, ...]:
    """The runs, each citation marker in their plain text as a link to its passage."""
    style = style_of(case.answer.text)
    found: list[TextRun] = []
    for run in runs:
        whole = annotate(Answer(text=run.text), len(case.passages), style)
        found += [run] if run.kind != "text" else answer_runs(whole, case.passages)
    return tuple(found)


def changed_runs(before: str, after: str) -> tuple[TextRun, ...]:
    """Both texts as one: what is only in `before` struck through, what is only in `after` underlined."""
    kinds: dict[Change, RunKind] = {"same": "text", "removed": "old", "added": "new"}
    return tuple(TextRun(word.text, kinds[word.change]) for word in word_diff(before, after))


def marked_runs(text: str, spans: Iterable[tuple[int, int]]) -> tuple[TextRun, ...]:
    """Text with the quoted stretches marked; stretches that overlap are drawn as one."""
    quoted = cut(text, ((start, end, True) for start, end in sorted(spans)))
    return tuple(TextRun(words, "mark" if marked else "text") for words, marked in quoted)


def decided_by(mark: Mark | None) -> str:
    """Who set a mark and why, if a reason was given, as a note under it; empty without a mark."""
    return f"by {mark.author}{': ' if mark.reason else ''}{mark.reason}" if mark else ""


def when(time: str) -> str:
    """A time as people read it: to the minute, UTC."""
    return f"{time[:16].replace('T', ' ')} UTC" if len(time) >= 16 else time
