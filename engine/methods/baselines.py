"""Attr-RAG's baselines and its table (Attr-RAG, section V): vanilla and re-ranked RAG at k = 10, 20, 30.

Against a reference: cosine, BLEU, Jaccard, ROUGE-1/2/L/Lsum F1; the winner is the method that most metrics favour.
Left out: eight further metrics that the paper computes and does not report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.core.metrics import bleu
from engine.core.values import Hit, Passage
from engine.methods.regeneration import similarities
from engine.models.protocols import Embedder, Reranker
from engine.retrieve.search import rerank_hits

DEPTHS = (10, 20, 30)  # Attr-RAG, Table I
METHODS = ("vanilla", "re-ranked")


def baseline_passages(
    method: str, depth: int, question: str, retrieved: Sequence[Hit], reranker: Reranker
) -> tuple[Passage, ...]:
    """The passages that vanilla or re-ranked RAG reads: the first `depth` of the pool, `retrieved` in this order."""
    hits = rerank_hits(question, retrieved, reranker) if method == "re-ranked" else retrieved
    return tuple(hit.passage for hit in hits[:depth])


def against_reference(answers: Mapping[str, str], reference: str, embedder: Embedder) -> dict[str, dict[str, float]]:
    """For each method the seven similarities to the reference."""
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
