"""From a question to the passages that the writer is given: retrieve, align, re-rank, keep (Attr-RAG, section IV).

Consecutive alignment joins retrieved passages that are neighbours in a document into a chunk set. Each step is timed
and counted as it happens. The passages come out in prompt order: passage i of the context carries citation number
i + 1 for the rest of the case's life. docs/methods/retrieval.md says how this departs from the paper.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from engine.core.errors import QuestionError
from engine.core.progress import Watch, whole
from engine.core.settings import Retrieval
from engine.core.text import well_formed
from engine.core.turns import speaker_within
from engine.core.values import ChunkSet, Hit, Passage, Step, T
from engine.corpus.collection import Collection
from engine.models.protocols import Reranker
from engine.retrieve.search import rerank, search


def consecutive_alignment(hits: Sequence[Hit], align_gap: int = 1) -> tuple[ChunkSet, ...]:
    """Join hits of one document whose ordinals differ by at most `align_gap` (Attr-RAG, section IV-B-a).

    By character offsets: no character appears twice. Sets come in the order of their best hit, and carry its score;
    passages inside a set are in document order.
    """
    best = {hit.passage.id: hit for hit in sorted(hits, key=lambda hit: hit.score)}  # the last of each is the best
    groups: list[list[Hit]] = []
    for hit in sorted(best.values(), key=lambda h: (h.passage.document, h.passage.ordinal)):
        last = groups[-1][-1].passage if groups else None
        if last and last.document == hit.passage.document and hit.passage.ordinal - last.ordinal <= align_gap:
            groups[-1].append(hit)
        else:
            groups.append([hit])
    return tuple(sorted(map(_chunk_set, groups), key=lambda s: -s.score))


def _chunk_set(hits: Sequence[Hit]) -> ChunkSet:
    passages = tuple(hit.passage for hit in hits)
    return ChunkSet(passages=passages, text=merged_text(passages), score=max(hit.score for hit in hits))


def merged_text(passages: Sequence[Passage]) -> str:
    """Text of passages in document order, each character once; a line break separates passages that do not touch."""
    trimmed = without_overlap(passages)
    gaps = ["", *("" if one.end == after.start else "\n" for one, after in pairwise(trimmed))]
    return "".join(gap + passage.text for gap, passage in zip(gaps, trimmed, strict=False))


def without_overlap(passages: Sequence[Passage]) -> list[Passage]:
    """Passages of one document in order, each without the characters that earlier ones hold."""
    trimmed: list[Passage] = []
    covered = 0
    for passage in passages:
        start = max(passage.start, covered)
        covered = max(covered, passage.end)
        if start == passage.start:
            trimmed.append(passage)
        elif start < passage.end:
            cut = start - passage.start
            speaker = speaker_within(passage.text, passage.speaker, cut)
            rest = replace(passage, id=f"{passage.id}+{cut}", start=start, text=passage.text[cut:], speaker=speaker)
            trimmed.append(rest)
    return trimmed


QUESTION_LIMIT = 4_000  # characters; a longer text is a document, not a question


@dataclass(frozen=True)
class Context:
    """A writer's passages, and how they were found: hits, chunk sets in re-rank order, the leading sets' passages."""

    hits: tuple[Hit, ...]
    sets: tuple[ChunkSet, ...]
    passages: tuple[Passage, ...]


def check_question(question: str) -> str:
    """The question, well-formed and stripped; raise `QuestionError` for an empty or over-long one."""
    text = well_formed(question).strip() if isinstance(question, str) else ""
    if not text:
        raise QuestionError("The question is empty. Write what you want to know about the documents.")
    if len(text) > QUESTION_LIMIT:
        raise QuestionError(
            f"The question has {len(text):,} characters, the limit is {QUESTION_LIMIT:,}. Ask one question at a time"
            " and ingest long material as a document."
        )
    return text


def _count(unit: str) -> Callable[[tuple[Any, ...]], dict[str, float]]:
    return lambda values: {unit: len(values)}


@dataclass
class Steps:
    """Times the steps of one run; `watch` hears of each as it starts, `on_step` as it ends."""

    watch: Watch
    on_step: Callable[[Step], None] | None = None
    done: tuple[Step, ...] = ()

    def run(self, name: str, work: Callable[[], T], counts: Callable[[T], dict[str, float]]) -> T:
        """Do `work`, record its step and return its value."""
        self.watch.step(name)
        start = time.perf_counter()
        value = work()
        step = Step(name=name, seconds=time.perf_counter() - start, counts=counts(value))
        self.done = (*self.done, step)
        if self.on_step is not None:
            self.on_step(step)
        return value


def kept_passages(hits: Sequence[Hit], sets: Sequence[ChunkSet], keep: int) -> tuple[Passage, ...]:
    """The passages of the leading sets, or the leading hits where there are none."""
    if not sets:
        return tuple(hit.passage for hit in hits[:keep])
    return tuple(passage for chunk_set in sets[:keep] for passage in without_overlap(chunk_set.passages))


def finding(
    question: str,
    collection: Collection,
    reranker: Reranker,
    retrieval: Retrieval,
    *,
    reranked: bool = True,
    steps: Steps | None = None,
) -> Iterator[Context]:
    """Retrieve, align, re-rank and keep; with `reranked=False` the top passages as retrieved (vanilla RAG).

    The context comes with its hits first, then whole.
    """
    steps = steps or Steps(Watch())
    hits: tuple[Hit, ...] = steps.run(
        "retrieve", lambda: tuple(search(collection, question, retrieval)), _count("passages")
    )
    yield Context(hits, (), ())
    if not reranked:
        yield Context(hits, (), kept_passages(hits, (), retrieval.keep))
        return
    aligned = steps.run("align", lambda: consecutive_alignment(hits, retrieval.align_gap), _count("chunk sets"))
    sets = steps.run("re-rank", lambda: rerank(question, aligned, reranker), _count("chunk sets"))
    yield Context(hits, sets, kept_passages(hits, sets, retrieval.keep))


find_context = whole(finding)
