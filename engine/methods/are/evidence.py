"""Evidence for a fact (ARE, section 4.2): search, re-rank by similarity to the fact, keep the best; the rest is shown.

Sources are the case's own passages ("faithful to what it was given") and a collection ("supported elsewhere"), kept
apart. Similarity is the cosine of the embedder's vectors; of a case passage the closest sentence counts where it is
closer than the whole. Left out: web search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from engine.answer.citations import find_citations
from engine.core.progress import Watch
from engine.core.settings import Retrieval, Verification
from engine.core.text import sentences
from engine.core.values import Hit, Passage
from engine.corpus.collection import Collection
from engine.methods.are.facts import Clause
from engine.methods.are.values import Evidence
from engine.models.embedder import embed_passages
from engine.models.protocols import Embedder
from engine.retrieve.search import search_many

MOST_CITED = 9_999  # the highest number that a citation may have


@dataclass(frozen=True)
class Sources:
    """Where evidence may come from; `case` are the case's passages in citation order."""

    embedder: Embedder
    case: tuple[Passage, ...] = ()
    collection: Collection | None = None

    def chosen(self, settings: Verification) -> Sources:
        """The sources that `evidence_from` names."""
        wanted = settings.evidence_from
        return Sources(
            embedder=self.embedder,
            case=() if wanted == "corpus" else self.case,
            collection=None if wanted == "case" else self.collection,
        )


def cited_numbers(answer: str, clause: Clause) -> frozenset[int]:
    """The passages that a clause cites, by number; a number that no passage has does no harm."""
    style = "garage" if "[cite_" in answer.lower() else "alce"
    found = find_citations(clause.text, MOST_CITED, style)  # type: ignore[arg-type]
    return frozenset(citation.number for citation in found if citation.valid)


def find_evidence(
    facts: Sequence[str],
    queries: Sequence[Sequence[str]],
    sources: Sources,
    settings: Verification,
    watch: Watch | None = None,
    cited: Sequence[frozenset[int]] = (),
) -> list[tuple[Evidence, ...]]:
    """For each fact what `queries[i]` found, the case's passages first, each source by falling similarity to the fact.

    At most `settings.passages` a source, and with `settings.anchored` the case passages that `cited` names for the
    fact; a passage of the case is not offered again as one of the corpus.
    """
    watch = watch or Watch()
    watch.step("search", 0, len(facts))
    named = cited if cited and settings.anchored else [frozenset[int]()] * len(facts)
    from_case = _case_evidence(facts, sources, settings.passages, named)
    if sources.collection is None:
        return from_case
    found = _searched(facts, queries, sources.collection, settings, watch)
    held = {" ".join(passage.text.split()) for passage in sources.case}
    return [
        (*mine, *(e for e in theirs if " ".join(e.text.split()) not in held))
        for mine, theirs in zip(from_case, found, strict=True)
    ]


def _case_evidence(
    facts: Sequence[str], sources: Sources, most: int, cited: Sequence[frozenset[int]]
) -> list[tuple[Evidence, ...]]:
    """The case's passages by their similarity to each fact, those that it cites always among them."""
    if not sources.case or not facts:
        return [() for _ in facts]
    parts = [[p.text, *(p.text[a:b] for a, b in sentences(p.text))] for p in sources.case]
    flat = [text for texts in parts for text in texts]
    starts = np.cumsum([0, *(len(texts) for texts in parts[:-1])])
    similar = sources.embedder.embed(list(facts)) @ sources.embedder.embed(flat).T
    best = np.maximum.reduceat(similar, starts, axis=1)
    result = []
    for row, named in zip(best, cited, strict=True):
        ranked = [int(i) for i in np.argsort(-row, kind="stable")]
        order = [i for place, i in enumerate(ranked) if place < most or i + 1 in named]
        result.append(tuple(_from_case(sources.case[i], i + 1, float(row[i])) for i in order))
    return result


def _from_case(passage: Passage, number: int, score: float) -> Evidence:
    return Evidence(
        text=passage.text,
        source="case",
        passage=passage.id,
        document=passage.document,
        title=passage.title,
        number=number,
        score=round(score, 4),
    )


def _searched(
    facts: Sequence[str], queries: Sequence[Sequence[str]], collection: Collection, settings: Verification, watch: Watch
) -> list[tuple[Evidence, ...]]:
    """What the searches of each fact found, once each, by similarity to the fact itself."""
    flat = [query for asked in queries for query in asked]
    hits = iter(search_many(collection, flat, Retrieval(k=settings.passages)))
    pooled: list[list[Hit]] = []
    for asked in queries:
        seen: dict[str, Hit] = {}
        for _ in asked:
            seen.update((hit.passage.id, hit) for hit in next(hits))
        pooled.append(list(seen.values()))
    watch.step("re-rank", 0, len(facts))
    return [
        _reranked(fact, found, asked, collection, settings.passages)
        for fact, found, asked in zip(facts, pooled, queries, strict=True)
    ]


def _reranked(
    fact: str, hits: Sequence[Hit], asked: Sequence[str], collection: Collection, most: int
) -> tuple[Evidence, ...]:
    """The hits by their similarity to the fact; a search with the fact alone has computed it already."""
    if not hits:
        return ()
    if tuple(asked) == (fact,) and all("dense" in hit.parts for hit in hits):
        scores = [hit.parts["dense"] for hit in hits]
    else:
        embedder = collection.embedder
        vectors = embed_passages(embedder, [hit.passage.text for hit in hits])
        scores = [float(v) for v in vectors @ embedder.embed([fact])[0]]
    order = sorted(range(len(hits)), key=lambda i: -scores[i])[:most]
    found = [replace(_from_case(hits[i].passage, 0, scores[i]), source="corpus", number=None) for i in order]
    return tuple(found)
