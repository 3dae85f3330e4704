"""From a question to the passages that the writer is given: retrieve, align, re-rank, keep (Attr-RAG, IV-A and IV-B).

Each step is timed and counted as it happens; the passages come out in prompt order, so that passage i of the
context carries citation number i + 1 for the rest of the case's life.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from engine.corpus.collection import Collection
from engine.errors import QuestionError
from engine.models.protocols import Reranker
from engine.progress import Watch
from engine.retrieve.align import consecutive_alignment
from engine.retrieve.rerank import rerank
from engine.retrieve.search import search
from engine.settings import Retrieval
from engine.types import ChunkSet, Hit, Passage, Step

T = TypeVar("T")
QUESTION_LIMIT = 4_000  # characters; a longer text is a document, not a question


@dataclass(frozen=True)
class Context:
    """What a writer is given, and how it was found. `kept` are the leading chunk sets; `passages` theirs, flattened."""

    hits: tuple[Hit, ...]
    sets: tuple[ChunkSet, ...]
    kept: tuple[ChunkSet, ...]
    passages: tuple[Passage, ...]
    steps: tuple[Step, ...]


def check_question(question: str) -> str:
    """The question, stripped; raise `QuestionError` for an empty or over-long one."""
    text = question.strip()
    if not text:
        raise QuestionError("The question is empty. Write what you want to know of the documents.")
    if len(text) > QUESTION_LIMIT:
        raise QuestionError(
            f"The question has {len(text):,} characters, the limit is {QUESTION_LIMIT:,}. Ask one question at a time"
            " and ingest long material as a document."
        )
    return text


def _count(unit: str) -> Callable[[tuple[Any, ...]], dict[str, float]]:
    return lambda values: {unit: len(values)}


class Steps:
    """Times the steps of one run and tells the watch of each as it starts and ends."""

    def __init__(self, watch: Watch, on_step: Callable[[Step], None] | None = None) -> None:
        self.done: tuple[Step, ...] = ()
        self._watch = watch
        self._on_step = on_step

    def run(self, name: str, work: Callable[[], T], counts: Callable[[T], dict[str, float]]) -> T:
        """Do `work`, record its step and return its value."""
        self._watch.step(name)
        start = time.perf_counter()
        value = work()
        step = Step(name=name, seconds=time.perf_counter() - start, counts=counts(value))
        self.done = (*self.done, step)
        if self._on_step is not None:
            self._on_step(step)
        return value


def find_context(
    question: str,
    collection: Collection,
    reranker: Reranker,
    retrieval: Retrieval,
    *,
    reranked: bool = True,
    steps: Steps | None = None,
) -> Context:
    """Retrieve, align, re-rank and keep; with `reranked=False` the top passages as retrieved (vanilla RAG)."""
    steps = steps or Steps(Watch())
    hits: tuple[Hit, ...] = steps.run(
        "retrieve", lambda: tuple(search(collection, question, retrieval)), _count("passages")
    )
    if not reranked:
        top = tuple(hit.passage for hit in hits[: retrieval.keep])
        return Context(hits=hits, sets=(), kept=(), passages=top, steps=steps.done)
    aligned = steps.run("align", lambda: consecutive_alignment(hits, retrieval.align_gap), _count("chunk sets"))
    sets = steps.run("re-rank", lambda: rerank(question, aligned, reranker), _count("chunk sets"))
    kept = sets[: retrieval.keep]
    passages = tuple(passage for chunk_set in kept for passage in chunk_set.passages)
    return Context(hits=hits, sets=sets, kept=kept, passages=passages, steps=steps.done)
