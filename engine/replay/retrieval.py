"""What was retrieved and re-ranked: the search again in the collection as it is now, the re-ranker on the same sets."""

from __future__ import annotations

from typing import Any

from engine.analyses.again import changed_since, reranked, reranker_of
from engine.analyses.floors import embedding_floor, reranking_floor
from engine.analyses.kind import Loaders, Outcome, plain
from engine.core.settings import BEST_SENTENCE, Retrieval
from engine.core.values import (
    Case,
    Hit,
    inputs_hash,
)
from engine.models.embedder import DEFAULT
from engine.retrieve.search import search


def stored_inputs(case: Case) -> Any:
    """The hash of question and passages."""
    return case.stamp.inputs


def inputs_again(case: Case, tools: Loaders) -> Outcome:
    """The hash, computed from the texts."""
    return Outcome(values=inputs_hash(case.question, case.passages))


def stored_hits(case: Case) -> Any:
    """Each retrieved passage in rank order: rank, score, parts."""
    return plain([_hit(rank, hit) for rank, hit in enumerate(case.hits)])


def _hit(rank: int, hit: Hit) -> dict[str, Any]:
    return {"rank": rank, "score": hit.score, "parts": hit.parts}


def hits_again(case: Case, tools: Loaders) -> Outcome:
    """The search again, in the collection as it is now."""
    settings = case.stamp.settings.get("retrieval")
    if case.corpus is None or settings is None:
        return Outcome(why="the stamp names no collection or no retrieval settings")
    collection = tools.collection(case.corpus)
    changed = changed_since(collection, (hit.passage.id for hit in case.hits))
    if changed:
        return Outcome(why=changed)
    found = {
        hit.passage.id: (rank, hit)
        for rank, hit in enumerate(search(collection, case.question, Retrieval.from_dict(settings)))
    }
    values = [_hit(*found[hit.passage.id]) if hit.passage.id in found else None for hit in case.hits]
    texts = [hit.passage.text for hit in case.hits]
    return Outcome(values=plain(values), floor=embedding_floor(collection.embedder, case.question, texts))


def stored_sets(case: Case) -> Any:
    """The re-ranker's score of each chunk set, in stored order."""
    return plain([{"score": chunk_set.score} for chunk_set in case.chunk_sets])


def sets_again(case: Case, tools: Loaders) -> Outcome:
    """The re-ranker again, on the same sets."""
    values = plain([{"score": chunk_set.score} for chunk_set in reranked(case, tools)])
    texts = [passage.text for s in case.chunk_sets for passage in s.passages]
    name = reranker_of(case)
    if name == BEST_SENTENCE:
        return Outcome(values=values, floor=embedding_floor(tools.embedder(DEFAULT), case.question, texts))
    return Outcome(values=values, floor=reranking_floor(tools.reranker(name), case.question, texts))
