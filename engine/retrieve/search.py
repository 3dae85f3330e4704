"""Stage 1 and re-ranking: the passages nearest to a question, dense, BM25 or both (Attr-RAG, sections IV-A and IV-B-b).

Hybrid is the cosine plus `LEXICAL` times BM25 as a share of the question's best BM25 score in the collection. Of the
sums tried on the public sets XQuAD, NQ gold passages and CLAP NQ it is the one that was above both of its parts on
all three (recall@1 0.952, 0.902, 0.980); a sum of z-scores lost 0.033 on NQ's noisy questions, reciprocal-rank
fusion more. In a large collection an index names the candidates; their scores come from our own vectors.
"""

from __future__ import annotations

import fnmatch
import logging
import os
import re
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import islice

import msgspec
import numpy as np
from numpy.typing import NDArray

from engine.core.errors import CorpusLocked, InputError, QuestionError, ServerError, StorageError
from engine.core.files import scattered
from engine.core.settings import Retrieval
from engine.core.text import titled
from engine.core.values import ChunkSet, Hit
from engine.corpus import index
from engine.corpus.collection import Collection
from engine.corpus.store import Snapshot
from engine.models.protocols import Floats, Reranker
from engine.retrieve import bm25
from engine.retrieve.bm25 import best_rows

# Candidates. Up to `index.NEEDED_FROM` passages every cosine is computed: exact, and cheaper than embedding the
# question. Above, or with a Chroma server, the index names `POOL` times k: it can leave a passage out, never give a
# wrong score.

log = logging.getLogger(__name__)
POOL = 10  # candidates a wanted passage
POOL_BY_WORDS = 5  # of these, BM25's best: on real texts the hybrid's ten are the exact ones (bench/scale.py)
_LEAST = 200  # candidates


def candidate_rows(collection: Collection, snapshot: Snapshot, vector: Floats, k: int) -> NDArray[np.intp] | None:
    """Rows of the snapshot to score, ascending; None for all of them.

    Where the index cannot be had (not in step, held by another process, the server is down) all passages are scored:
    slower, never wrong; the reason is logged. A search never builds an index: ingest and the health check do.
    """
    size = len(snapshot.passages)
    count = max(POOL * k, _LEAST)
    if count >= size or (size <= index.NEEDED_FROM and not os.environ.get(index.SERVER)):
        return None
    try:
        return index.open_index(collection.folder, snapshot, build=False).nearest(vector, count)
    except index.NotReady as error:
        log.debug("Searching without the index: %s", error)
        return None
    except (CorpusLocked, ServerError, StorageError) as error:
        log.warning("Searching without the index: %s", error)
        return None


_NAMES_COMPARED = 10_000  # documents whose names are compared with one that is not there


def rows_of_documents(snapshot: Snapshot, names: Sequence[str]) -> NDArray[np.intp] | None:
    """Rows of the passages of the documents with these names, ascending; None for no names, which are all documents.

    A name is a document's own, or has * for any part of it and ? for a letter, in capitals or not. Raises `InputError`
    for one that no document has.
    """
    if not names:
        return None
    found: dict[str, None] = {}
    for name in names:
        found |= dict.fromkeys([name] if name in snapshot.documents else _matching(snapshot, name))
    return np.array(sorted(row for document in found for row, _ in snapshot.rows_of(document)), dtype=np.intp)


def _matching(snapshot: Snapshot, name: str) -> list[str]:
    """The documents whose names a pattern with * and ? matches; raise `InputError` if there are none."""
    pattern = re.compile(fnmatch.translate(name.replace("[", "[[]")), re.IGNORECASE)
    if found := [document for document in snapshot.documents if pattern.match(document)]:
        return found
    near = get_close_matches(name, islice(snapshot.documents, _NAMES_COMPARED), 3, 0.5)
    way_out = f"Is it {' or '.join(map(repr, near))}?" if near else "* means any part of a name, as in '*.pdf'."
    raise InputError(f"The corpus {snapshot.manifest.name!r} has no document {name!r}. {way_out}")


LONGEST_QUERY = 20_000  # characters
LEXICAL = 0.2  # weight of BM25 in the hybrid; see above


def search(collection: Collection, question: str, how: Retrieval = Retrieval()) -> list[Hit]:
    """The best `how.k` passages, best first; k is clipped to the size of the collection, or of `how.documents` in it.

    `parts` holds "dense" (cosine, -1 to 1) and "bm25" (0 and up) where they were computed.
    """
    return search_many(collection, [question], how)[0]


def search_many(collection: Collection, questions: Sequence[str], how: Retrieval = Retrieval()) -> list[list[Hit]]:
    """`search` for each question; the questions are embedded in one batch."""
    for question in questions:
        check_query(question)
    snapshot = collection.snapshot()
    if not snapshot.passages:
        return [[] for _ in questions]
    chosen = rows_of_documents(snapshot, how.documents)
    vectors = collection.embedder.embed(list(questions)) if how.mode != "bm25" else [None] * len(questions)
    return [_search(collection, snapshot, q, v, how, chosen) for q, v in zip(questions, vectors, strict=True)]


def _search(
    collection: Collection,
    snapshot: Snapshot,
    question: str,
    vector: Floats | None,
    how: Retrieval,
    rows: NDArray[np.intp] | None,
) -> list[Hit]:
    """One question whose vector is known (None for BM25 alone), among `rows` (None: all)."""
    words = None if how.mode == "dense" else bm25.index_of(collection.folder, snapshot)
    if vector is None:
        if rows is None and words is not None:
            rows = words.best(question, how.k)
        return _hits(snapshot, rows, _lexical(words, question, rows), how.k)
    if rows is None:
        rows = candidate_rows(collection, snapshot, vector, how.k)
        if rows is not None and words is not None:
            rows = np.union1d(rows, words.best(question, POOL_BY_WORDS * how.k))
    dense = np.asarray((snapshot.vectors if rows is None else scattered(snapshot.vectors, rows)) @ vector)
    return _hits(snapshot, rows, {"dense": dense} | _lexical(words, question, rows), how.k)


def _lexical(words: bm25.Postings | None, question: str, rows: NDArray[np.intp] | None) -> dict[str, Floats]:
    """The BM25 scores of some rows (None: all) as a part of a hit's score; none where there is no index."""
    return {} if words is None else {"bm25": words.scores(question, rows)}


def check_query(query: str) -> str:
    """A text to search with, unchanged; raise `QuestionError` if it is empty or over the limit.

    A question is held to the shorter limit of `engine.answer.context`; a problem with its options, or a text that a
    model wrote, may be longer.
    """
    if not query.strip():
        raise QuestionError("The question or search text is empty. Enter one and try again.")
    if len(query) > LONGEST_QUERY:
        raise QuestionError(
            f"The search text has {len(query):,} characters; the limit is {LONGEST_QUERY:,}. "
            "Shorten it, or ingest it as a document."
        )
    return query


def fuse(dense: Floats, lexical: Floats) -> Floats:
    """The hybrid score: cosine plus `LEXICAL` times BM25 over the best BM25; shape (n,), about -1 to 1.2."""
    best = float(lexical.max(initial=0.0))
    return dense + LEXICAL * lexical / best if best > 0 else dense


def _hits(snapshot: Snapshot, rows: NDArray[np.intp] | None, parts: dict[str, Floats], k: int) -> list[Hit]:
    """The k best of `rows` (None: all) by the fused parts, or by the only one; ties in stored order."""
    total = fuse(parts["dense"], parts["bm25"]) if len(parts) == 2 else next(iter(parts.values()))
    if not len(total):  # documents without text
        return []
    return [
        Hit(
            passage=snapshot.passages[i if rows is None else rows[i]],
            score=float(total[i]),
            parts={name: float(values[i]) for name, values in parts.items()},
        )
        for i in best_rows(total, k)
    ]


# Re-ranking: chunk sets for Attr-RAG, single passages from a pool for its baselines. A re-ranker gets the document's
# title, an empty line, and the text.


def rerank(question: str, sets: Sequence[ChunkSet], reranker: Reranker) -> tuple[ChunkSet, ...]:
    """The sets with the re-ranker's scores, best first; ties keep the order given."""
    scores = reranker.rank_scores(question, [titled(s.passages[0].title, s.text, "\n\n") for s in sets])
    scored = [msgspec.structs.replace(s, score=float(v)) for s, v in zip(sets, scores, strict=True)]
    return tuple(sorted(scored, key=lambda s: -s.score))


def rerank_hits(question: str, hits: Sequence[Hit], reranker: Reranker) -> list[Hit]:
    """The hits in the order of the re-ranker's score, which joins their parts as "rerank"; ties keep their order."""
    scores = reranker.rank_scores(question, [titled(h.passage.title, h.passage.text, "\n\n") for h in hits])
    scored = [
        msgspec.structs.replace(h, score=float(v), parts={**h.parts, "rerank": float(v)})
        for h, v in zip(hits, scores, strict=True)
    ]
    return sorted(scored, key=lambda h: -h.score)
