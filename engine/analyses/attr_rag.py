"""Attr-RAG on a question of a collection: its passages fill the gaps and are the placebos; the stamp says which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from engine.analyses.attribution import placebos_for
from engine.core.progress import Watch
from engine.core.settings import Selection
from engine.core.values import (
    Analysis,
    Case,
    Passage,
    Stamp,
    Step,
)
from engine.methods.attr_rag import AttrRag, Lookup, Score, attr_rag
from engine.methods.regeneration import PLACEBOS, Answering
from engine.models.protocols import Embedder


@dataclass(frozen=True)
class AttrRagRun:
    """A run, and what its stamp carries beside the answer's own: selection, seed, ids of the placebos."""

    found: AttrRag
    chosen: dict[str, Any]

    def analysis(self, stamp: Stamp) -> Analysis:
        """The run as an analysis of the case whose answer carries `stamp`."""
        own = replace(stamp, settings={**stamp.settings, **self.chosen})
        return Analysis(id="attr-rag", kind="attr-rag", stamp=own, result=self.found.to_dict())


def attr_rag_run(
    case: Case,
    corpus: Sequence[Passage],
    write: Answering,
    ablate: Callable[[Sequence[Passage]], Answering],
    *,
    embedder: Embedder,
    settings: Selection,
    seed: int,
    score: Score | None = None,
    watch: Watch | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> AttrRagRun:
    """Attr-RAG on the case's question and re-ranked chunk sets, which came from the passages `corpus` (see `attr_rag`).

    Raises what `attr_rag` raises.
    """
    seen = replace(case, passages=tuple(passage for chunk_set in case.chunk_sets for passage in chunk_set.passages))
    placebos = placebos_for(seen, corpus, PLACEBOS, seed)
    found = attr_rag(
        case.question,
        case.chunk_sets,
        write,
        ablate=ablate,
        embedder=embedder,
        lookup=lookup_in(corpus),
        placebos=placebos,
        score=score,
        settings=settings,
        seed=seed,
        watch=watch,
        on_step=on_step,
    )
    return AttrRagRun(found, {"selection": settings.to_dict(), "seed": seed, "placebos": [p.id for p in placebos]})


def lookup_in(passages: Sequence[Passage]) -> Lookup:
    """Finds a passage by its document and its ordinal there."""
    at = {(passage.document, passage.ordinal): passage for passage in passages}
    return lambda document, ordinal: at.get((document, ordinal))
