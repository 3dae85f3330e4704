"""Attr-RAG's baselines and its table (Attr-RAG, section V): vanilla and re-ranked RAG at k = 10, 20, 30.

Against a reference: cosine, BLEU, Jaccard, ROUGE-1/2/L/Lsum F1; the winner is the method that most metrics favour.
Left out: eight further metrics that the paper computes and does not report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.core.metrics import bleu
from engine.core.progress import Watch
from engine.core.values import Answer, Hit, Passage, Value
from engine.methods.regeneration import Answering, similarities
from engine.models.protocols import Embedder, Reranker
from engine.retrieve.search import rerank_hits

DEPTHS = (10, 20, 30)  # Attr-RAG, Table I
METHODS = ("vanilla", "re-ranked")


class RagBaseline(Value, frozen=True):
    """One row of the table: what was given and what was written. `k` is the depth asked for."""

    method: str
    k: int
    passages: tuple[Passage, ...]
    answer: Answer


def rag_baselines(
    question: str,
    retrieved: Sequence[Hit],
    reranker: Reranker,
    write: Answering,
    depths: Sequence[int] = DEPTHS,
    watch: Watch | None = None,
    methods: Sequence[str] = METHODS,
) -> tuple[RagBaseline, ...]:
    """Vanilla and re-ranked RAG at each depth; `retrieved` is the pool in retrieval order (`retrieval.rerank_pool`)."""
    rankings = {"vanilla": list(retrieved)} if "vanilla" in methods else {}
    if "re-ranked" in methods:
        rankings["re-ranked"] = rerank_hits(question, retrieved, reranker)
    runs = [(name, k, tuple(hit.passage for hit in hits[:k])) for name, hits in rankings.items() for k in depths]
    rows: list[RagBaseline] = []
    for method, k, passages in runs:
        (watch or Watch()).step("baselines", len(rows), len(runs))
        rows.append(RagBaseline(method=method, k=k, passages=passages, answer=write(question, passages)))
    return tuple(rows)


def against_reference(
    answers: Mapping[str, str], reference: str, embedder: Embedder | None
) -> dict[str, dict[str, float]]:
    """For each method the seven similarities to the reference (six without an embedder)."""
    return {
        method: {**similarities(reference, text, embedder), "bleu": bleu(reference, text)}
        for method, text in answers.items()
    }


def winners(table: Mapping[str, Mapping[str, float]]) -> tuple[str, ...]:
    """The methods that most metrics favour; a tied metric favours each, and methods can tie. None of an empty table."""
    metrics = next(iter(table.values()), {}).keys()
    wins = dict.fromkeys(table, 0)
    for metric in metrics:
        best = max(row[metric] for row in table.values())
        for method, row in table.items():
            wins[method] += row[metric] == best
    most = max(wins.values(), default=0)
    return tuple(method for method, count in wins.items() if count == most)
