"""The kinds of analyses that can be replayed, and the copy of a case that is: without its results."""

from __future__ import annotations

import msgspec

from engine.cases.replay import (
    attr_rag,
    attribution,
    facts,
    reading,
    refinement,
    steps,
)
from engine.cases.replay.outcome import Json, Kind
from engine.core.errors import GroundworkError
from engine.core.values import Analysis, Answer, Case
from engine.methods import registry

OWN: dict[str, Kind] = {
    "reading": reading.KIND,
    "attr-rag": attr_rag.KIND,
    "refinement": refinement.KIND,
    "facts": facts.KIND,
    "steps": steps.KIND,
    **dict.fromkeys(attribution.NAMES, attribution.KIND),
}
SAID = {
    "labels": "these labels were imported; nothing computes them",
    "relevance to steps": "these levels were said by a model or a person; nothing computes them",
    "judgement": "these votes were said by a model; ask it again on the Refinement page",
}
# Analyses that score no text of the case's answer, so that the answer need not be an input.
UNSCORED = ("reading", "attr-rag", "labels", "steps", "relevance to steps")


def kind_of(analysis: Analysis) -> Kind | None:
    """How an analysis is computed again; None for a kind that has no replay."""
    methods = {method.name for method in registry.methods()}
    return OWN.get(analysis.kind) or (attribution.KIND if analysis.kind in methods else None)


def unreplayable(analysis: Analysis) -> str:
    """Why an analysis of a kind without replay is not compared."""
    return SAID.get(analysis.kind, f"there is no replay of the kind {analysis.kind!r} yet")


def stripped(case: Case) -> Case:
    """The case with its results taken out: scores, token probabilities, analyses, an answer that can be made again.

    What stays is what was asked: question, passages, prompt, stamps, the text that was scored, and what a language
    model wrote.
    """
    if case.stamp.model == reading.READER and all(a.kind in UNSCORED for a in case.analyses):
        answer = Answer(text="")
    else:
        tokens = tuple(msgspec.structs.replace(token, logprob=None) for token in case.answer.tokens)
        answer = msgspec.structs.replace(case.answer, tokens=tokens)
    return msgspec.structs.replace(
        case,
        answer=answer,
        hits=tuple(msgspec.structs.replace(hit, score=0.0, parts={}) for hit in case.hits),
        chunk_sets=tuple(msgspec.structs.replace(s, score=0.0) for s in case.chunk_sets),
        analyses=tuple(map(_stripped, case.analyses)),
        steps=(),
    )


def _stripped(analysis: Analysis) -> Analysis:
    return Analysis(id=analysis.id, kind=analysis.kind, stamp=analysis.stamp, result=_given(analysis))


def _given(analysis: Analysis) -> Json:
    kind = kind_of(analysis)
    try:
        return kind.given(analysis.result) if kind else {}
    except GroundworkError:
        return {}  # what cannot be read has no inputs; its replay says what is wrong with it
