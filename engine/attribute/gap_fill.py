"""Gap filling (Attr-RAG, section IV-B-d, last paragraph): {55, 57, 59} becomes 55 to 59.

Where two consecutive selected chunks of a document are at most `max_gap` ordinals apart, the chunks between them
are added from the document itself, also when retrieval never returned them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from msgspec.structs import replace

from engine.types import Passage

Lookup = Callable[[str, int], Passage | None]
"""(document id, ordinal) to the passage there, None where the document has none."""


def missing_ordinals(ordinals: Sequence[int], max_gap: int) -> tuple[int, ...]:
    """Ordinals that fill the gaps of `ordinals`.

    >>> missing_ordinals([59, 55, 57, 70], 2)
    (56, 58)
    """
    steps = pairwise(sorted(set(ordinals)))
    return tuple(n for low, high in steps if high - low <= max_gap for n in range(low + 1, high))


def fill_gaps(passages: Sequence[Passage], lookup: Lookup, max_gap: int) -> tuple[Passage, ...]:
    """The passages that filling adds, in order of documents as given and then of ordinals."""
    documents = dict.fromkeys(passage.document for passage in passages)
    added: list[Passage] = []
    for document in documents:
        ordinals = [passage.ordinal for passage in passages if passage.document == document]
        found = [lookup(document, ordinal) for ordinal in missing_ordinals(ordinals, max_gap)]
        added.extend(passage for passage in found if passage is not None)
    return tuple(added)


def by_best_set(passages: Sequence[Passage], added: Sequence[Passage]) -> tuple[Passage, ...]:
    """Documents in order of their first passage in `passages` (their best set), chunks in document order.

    Overlapping chunks lose the characters that the one before them has, so that none stands twice in a prompt.
    """
    documents = dict.fromkeys(passage.document for passage in passages)
    ordered: list[Passage] = []
    for document in documents:
        own = {p.ordinal: p for p in (*added, *passages) if p.document == document}
        ordered.extend(without_overlap([own[ordinal] for ordinal in sorted(own)]))
    return tuple(ordered)


def without_overlap(passages: Sequence[Passage]) -> list[Passage]:
    """Chunks of one document in order, each without the characters that earlier ones hold."""
    trimmed: list[Passage] = []
    covered = 0
    for passage in passages:
        start = max(passage.start, covered)
        covered = max(covered, passage.end)
        if start == passage.start:
            trimmed.append(passage)
        elif start < passage.end:
            trimmed.append(_from(passage, start))
    return trimmed


def _from(passage: Passage, start: int) -> Passage:
    """The passage from character `start` of the document on, under an id of its own."""
    cut = start - passage.start
    return replace(passage, id=f"{passage.id}+{cut}", start=start, text=passage.text[cut:])
