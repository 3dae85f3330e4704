"""The sentences of some passages that answer a question best, each as a short passage: what a small writer reads.

A model of a hundred million parameters seems to answer better from fewer sentences (bench/RESULTS.md: 60 questions,
intervals overlap), so the quoting reader's ranking chooses. Every piece is a frozen span of its
document like any passage, with its own number, so that citations, occlusion and token maps point at it exactly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from engine.answer.choice import sentence_text
from engine.answer.sentence_scores import Candidate, score_sentences
from engine.models.protocols import Embedder
from engine.types import Passage

_CUT = "#"
Run = tuple[int, int, int]
"""Passage number from 1, and the characters [start, end) of its text."""


def best_sentences(question: str, passages: Sequence[Passage], embedder: Embedder, most: int) -> tuple[Passage, ...]:
    """The `most` best sentences, best first; neighbours in one passage become one piece, at the better one's place."""
    ranked = sorted(score_sentences(question, passages, embedder), key=lambda c: -c.score)
    pieces: list[Run] = []
    for candidate in _distinct(ranked, passages)[:most]:
        pieces = _joined(pieces, (candidate.number, candidate.start, candidate.end), passages)
    return tuple(piece(passages[number - 1], start, end) for number, start, end in pieces)


def piece(passage: Passage, start: int, end: int) -> Passage:
    """Characters [start, end) of a passage's text as a passage; the passage itself where that is all of it."""
    if (start, end) == (0, len(passage.text)):
        return passage
    return replace(
        passage,
        id=f"{passage.id}{_CUT}{start}-{end}",
        start=passage.start + start,
        end=passage.start + end,
        text=passage.text[start:end],
    )


def whole_id(passage: Passage) -> str:
    """The id of the passage that a piece was cut from; its own where it is whole.

    >>> whole_id(piece(Passage(id="a", document="d", title="", ordinal=0, start=9, end=13, text="A. B"), 3, 4))
    'a'
    """
    return re.sub(rf"{_CUT}\d+-\d+$", "", passage.id)


def _distinct(ranked: Sequence[Candidate], passages: Sequence[Passage]) -> list[Candidate]:
    """The candidates less headings, each text once."""
    first: dict[str, Candidate] = {}
    for candidate in ranked:
        if not candidate.heading:
            first.setdefault(sentence_text(candidate, passages), candidate)
    return list(first.values())


def _joined(pieces: Sequence[Run], new: Run, passages: Sequence[Passage]) -> list[Run]:
    """The pieces with one more; it is merged with those that only white space parts it from."""
    number, start, end = new
    text = passages[number - 1].text
    touching = [p for p in pieces if p[0] == number and not text[min(p[2], end) : max(p[1], start)].strip()]
    if not touching:
        return [*pieces, new]
    whole = (number, min(start, *(p[1] for p in touching)), max(end, *(p[2] for p in touching)))
    return [whole if p == touching[0] else p for p in pieces if p not in touching[1:]]
