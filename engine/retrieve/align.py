"""Consecutive alignment: retrieved passages that stand side by side in a document become one chunk set.

Attr-RAG, section IV-B-a. Text is merged by character offsets, so that no character of the document stands twice
even where passages overlap (METHODS section 0).
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.types import ChunkSet, Hit, Passage


def consecutive_alignment(hits: Sequence[Hit], align_gap: int = 1) -> tuple[ChunkSet, ...]:
    """Join hits of one document whose ordinals differ by at most `align_gap`.

    Sets come in the order of their best hit, and carry its score; passages inside a set are in document order.
    """
    best: dict[str, Hit] = {}
    for hit in hits:
        known = best.get(hit.passage.id)
        best[hit.passage.id] = hit if known is None or hit.score > known.score else known
    groups: list[list[Hit]] = []
    for hit in sorted(best.values(), key=lambda h: (h.passage.document, h.passage.ordinal)):
        last = groups[-1][-1].passage if groups else None
        if last and last.document == hit.passage.document and hit.passage.ordinal - last.ordinal <= align_gap:
            groups[-1].append(hit)
        else:
            groups.append([hit])
    return tuple(sorted(map(_chunk_set, groups), key=lambda s: -s.score))


def _chunk_set(hits: Sequence[Hit]) -> ChunkSet:
    """Hits of one document, in document order, as a set."""
    passages = tuple(hit.passage for hit in hits)
    return ChunkSet(passages=passages, text=merged_text(passages), score=max(hit.score for hit in hits))


def merged_text(passages: Sequence[Passage]) -> str:
    """Text of passages in document order, each character once; what does not touch is set apart by a line break."""
    pieces: list[str] = []
    reached = -1
    for passage in passages:
        if passage.end <= reached:
            continue
        gap = "\n" if 0 <= reached < passage.start else ""
        pieces.append(gap + passage.text[max(reached - passage.start, 0) :])
        reached = passage.end
    return "".join(pieces)
