"""What a replay needs and what one recomputed part comes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from engine.cases.canonical import canonical
from engine.corpus.collection import Collection
from engine.models.embedder import load_embedder
from engine.models.protocols import Embedder, Reranker, Writer
from engine.models.registry import load_writer
from engine.models.reranker import load_reranker
from engine.types import Analysis, Answer, Case, Value


class Outcome(Value, frozen=True):
    """A part computed again: `values` in the shape of the stored ones, or `why` it could not be.

    `floor` is how far a number may move by rounding alone, in the part's own unit.
    """

    values: Any = None
    floor: float = 0.0
    why: str = ""


@dataclass(frozen=True)
class Tools:
    """Where models and collections come from, by the names in the stamps."""

    embedder: Callable[[str], Embedder] = load_embedder
    reranker: Callable[[], Reranker] = load_reranker
    writer: Callable[[str], Writer] = load_writer
    collection: Callable[[str], Collection] = Collection.open


def stripped(case: Case) -> Case:
    """The case with its results taken out: scores, token probabilities, analyses, an answer that can be made again.

    What stays is what was asked: question, passages, prompt, stamps, and the text that was scored.
    """
    if case.stamp.model == "reader" and not _scored(case):
        answer = Answer(text="")
    else:
        tokens = tuple(msgspec.structs.replace(token, logprob=None) for token in case.answer.tokens)
        answer = msgspec.structs.replace(case.answer, tokens=tokens)
    return msgspec.structs.replace(
        case,
        answer=answer,
        hits=tuple(msgspec.structs.replace(hit, score=0.0, parts={}) for hit in case.hits),
        chunk_sets=tuple(msgspec.structs.replace(s, score=0.0) for s in case.chunk_sets),
        analyses=tuple(_stripped(analysis) for analysis in case.analyses),
        steps=(),
    )


def _scored(case: Case) -> bool:
    """Whether a model scored this answer's text, so that the text is an input of the replay."""
    return any(analysis.kind not in ("reading", "attr-rag", "labels") for analysis in case.analyses)


def _stripped(analysis: Analysis) -> Analysis:
    return Analysis(id=analysis.id, kind=analysis.kind, stamp=analysis.stamp, result={})


def plain(value: Any) -> Any:
    """A value as the library stores it: plain JSON, what is not finite as null."""
    return msgspec.json.decode(canonical(value))
