"""Re-ranking: chunk sets in the order of a re-ranker's score of (question, full text of the set).

Attr-RAG, section IV-B-b; also the re-ranked baselines, which rank single passages from a pool.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.models.protocols import Reranker
from engine.types import ChunkSet, Hit


def rerank(question: str, sets: Sequence[ChunkSet], reranker: Reranker) -> tuple[ChunkSet, ...]:
    """The sets with the re-ranker's scores, best first; ties keep the order given."""
    scores = reranker.rank_scores(question, [_headed(s.passages[0].title, s.text) for s in sets])
    scored = [msgspec.structs.replace(s, score=float(v)) for s, v in zip(sets, scores, strict=True)]
    return tuple(sorted(scored, key=lambda s: -s.score))


def rerank_hits(question: str, hits: Sequence[Hit], reranker: Reranker) -> list[Hit]:
    """The hits in the order of the re-ranker's score, which joins their parts as "rerank"; ties keep their order."""
    scores = reranker.rank_scores(question, [_headed(h.passage.title, h.passage.text) for h in hits])
    scored = [
        msgspec.structs.replace(h, score=float(v), parts={**h.parts, "rerank": float(v)})
        for h, v in zip(hits, scores, strict=True)
    ]
    return sorted(scored, key=lambda h: -h.score)


def _headed(title: str, text: str) -> str:
    """The text as a re-ranker gets it: the document's title, an empty line, the text."""
    head = title.replace("_", " ").strip()
    return f"{head}\n\n{text}" if head else text
