"""Documents to passages with exact offsets: whole sentences to a word budget, blocks of words, or headings.

Consecutive passages do not overlap unless asked. White space between passages belongs to
none of them; everything else of the document stands in at least one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from engine.core.settings import Chunking
from engine.core.text import BETWEEN_CELLS, Span, headings, sentences
from engine.core.turns import SpokenTurn, turn_at, turns
from engine.core.values import Document, Passage, sha256
from engine.models.tables import names_columns

_LONGEST = 2_000  # characters; a "sentence" above this (a line of data) is cut at white space
_USUAL_WORD = 6  # characters of a word with its space
_WORD_LENGTH = 40  # characters a word of the budget at most, so that a run of unbroken characters is no passage


def passages(document: Document, how: Chunking = Chunking()) -> tuple[Passage, ...]:
    """The passages of `document` in order; `text == document.text[start:end]` for each.

    The id is "{document id}@{first 10 hex digits of the text's SHA-256}:{start}-{end}": it names document,
    content and span, so it never comes to mean something else.
    """
    return tuple(passages_at(document, _spans(document, how)))


def passages_at(document: Document, spans: Iterable[Span], first: int = 0) -> Iterator[Passage]:
    """The document's passages at these spans, in order; `first` is the ordinal of the first one."""
    digest = sha256(document.text)[:10]
    (spoken,) = turns(document.text)
    for ordinal, (start, end) in enumerate(spans, first):
        turn = turn_at(spoken, start)
        yield Passage(
            id=f"{document.id}@{digest}:{start}-{end}",
            document=document.id,
            title=document.title,
            ordinal=ordinal,
            start=start,
            end=end,
            text=document.text[start:end],
            page=bisect_right(document.pages, start) if document.pages else None,
            speaker=turn.speaker if turn and turn.start < start else "",
        )


def _spans(document: Document, how: Chunking) -> list[Span]:
    """Where the passages are.

    words: blocks of `how.words` white-space words, as the 100-word passages of DPR and RAISE. sentences: whole
    sentences up to `how.words` words; a longer sentence is a passage of its own. headings: one passage per section; a
    section over the budget is split by whole sentences inside it.
    """
    text = document.text
    if how.method == "words":
        words = (match.span() for match in re.finditer(r"\S+", text))
        return _pack(text, [piece for word in words for piece in _cut(text, word, how)], how)
    sections = document.sections if how.method == "headings" else ()
    spans: list[Span] = []
    (spoken,) = turns(text)
    for start, end in pairwise(sorted({0, *(section.start for section in sections), len(text)})):
        part = text[start:end]
        units = [(start + s, start + e) for span in sentences(part) for s, e in _cut(part, span, how)]
        spans.extend(_pack(text, units, how, _tied(text, units, spoken)))
    return spans


def _tied(text: str, units: Sequence[Span], spoken: Sequence[SpokenTurn]) -> list[bool]:
    """Whether each unit says little without the next one, or the next one without it.

    That is a heading, a question, a line that ends with a colon, a row of a table whose cells do not name their
    columns, and in a transcript all but the end of a reply: what follows would lack its speaker.
    """
    told = [turn_at(spoken, start) for start, _ in units]
    talks = [turn and (turn.asks or turn is after) for turn, after in zip(told, [*told[1:], None], strict=False)]
    lines = [text[start:end] for start, end in units]
    rows = [BETWEEN_CELLS in line and not names_columns(line) for line in lines]
    return [
        bool(heading or line.endswith(":") or (row and following) or talk)
        for line, heading, row, following, talk in zip(
            lines, headings(text, units), rows, [*rows[1:], False], talks, strict=False
        )
    ]


def _pack(text: str, units: Sequence[Span], how: Chunking, tied: Sequence[bool] = ()) -> list[Span]:
    """Join consecutive units greedily while they hold at most `how.words` words, repeating `how.overlap` words.

    Units that are tied to the next one go into the following span with it, unless the span has nothing else.
    """
    sizes = [len(text[s:e].split()) for s, e in units]
    spans: list[Span] = []
    first = 0
    while first < len(units):
        last, total = first, sizes[first]
        while (
            last + 1 < len(units)
            and total + sizes[last + 1] <= how.words
            and units[last + 1][1] - units[first][0] <= how.words * _WORD_LENGTH
        ):
            last += 1
            total += sizes[last]
        if tied and last + 1 < len(units):
            last = next((place for place in range(last, first - 1, -1) if not tied[place]), last)
        spans.append((units[first][0], units[last][1]))
        if last + 1 == len(units):
            break
        first = _restart(sizes, first, last, how.overlap)
    return spans


def _restart(sizes: Sequence[int], first: int, last: int, overlap: int) -> int:
    """The unit at which the next span starts: after `last`, less the whole units that fit into the overlap."""
    start, repeated = last + 1, 0
    while start - 1 > first and repeated + sizes[start - 1] <= overlap:
        start -= 1
        repeated += sizes[start]
    return start


def _cut(text: str, span: Span, how: Chunking) -> Iterator[Span]:
    """The whole span, or pieces of about the budget split at white space if it is too long for a sentence."""
    start, end = span
    if end - start <= _LONGEST:
        yield span
        return
    piece = min(how.words * _USUAL_WORD, _LONGEST)
    while start < end:
        cut = min(start + piece, end)
        if cut < end:
            space = max(text.rfind(c, start + 1, cut) for c in " \t\n")
            cut = space if space > start else cut
        yield start, cut
        start = cut
        while start < end and text[start].isspace():
            start += 1
