"""Attribution of a case: the case's own passages, prompt and answer in, an `Analysis` with its stamp out.

A run that is stopped raises `Cancelled` whose `partial` is the analysis of what was finished, if that says anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from engine.analyses.faithfulness import FaithfulnessReport, faithfulness, faithfulness_of
from engine.analyses.kinds import (
    OCCLUSION,
    SENTENCES,
    SETS,
    USED_SUPPORTS,
)
from engine.analyses.token_map import TokenMap, token_map_of
from engine.answer.prompt import passage_body
from engine.answer.quoting_reader import whole_id
from engine.core.errors import Cancelled
from engine.core.progress import Watch
from engine.core.settings import Occlusion, Settings
from engine.core.values import (
    Analysis,
    Answer,
    Attribution,
    Case,
    Passage,
    Prompt,
)
from engine.methods import registry
from engine.methods.aggregate import sentence_sources
from engine.methods.occlusion import Options, occlude, occlusion
from engine.methods.spans import answer_spans, content_mask, passage_numbers
from engine.methods.subject import analysis_of, kept, subject
from engine.methods.used_supports import used_supports
from engine.models.protocols import Entailment, LanguageModel, require

# Occlusion of single sentences inside the passages that matter, once passages have been told apart.

TOP_PASSAGES = 3  # passages whose sentences are told apart by default


def sentence_occlusion(
    model: LanguageModel,
    prompt: Prompt,
    answer: Answer,
    *,
    numbers: Sequence[int] | None = None,
    placebos: Sequence[str] = (),
    settings: Occlusion | None = None,
    watch: Watch | None = None,
) -> Attribution:
    """As `occlusion`, every sentence of the passages `numbers` being a source (default the prompt's first three).

    `details["source_spans"][j]` = [passage number, start, end] in the passage segment's text. Raises
    `AttributionError` where the model's tokens cannot be placed in the text.
    """
    require(model, "score")
    coded = model.encode(prompt)
    wanted = tuple(numbers) if numbers is not None else passage_numbers(coded)[:TOP_PASSAGES]
    found = sentence_sources(model, prompt, coded, wanted)
    groups = [(source.number,) for source in found]
    removed = [source.positions for source in found]
    options = Options(placebos, settings=settings or Occlusion(), watch=watch)
    where = [[source.number, source.start, source.end] for source in found]

    def placed(result: Attribution) -> Attribution:
        return replace(result, details={**result.details, "source_spans": [where[j] for j in result.details["kept"]]})

    try:
        return placed(occlude(SENTENCES, model, prompt, answer, coded, groups, removed, None, options))
    except Cancelled as stopped:
        if not isinstance(stopped.partial, Attribution):
            raise
        raise Cancelled(str(stopped), placed(stopped.partial)) from stopped


def top_passages(attribution: Attribution, count: int = TOP_PASSAGES) -> tuple[int, ...]:
    """The passages of the `count` highest sources for the whole answer: what to look into sentence by sentence."""
    order = sorted(range(len(attribution.sources)), key=lambda j: -attribution.scores[0][j])
    return tuple(dict.fromkeys(number for j in order[:count] for number in attribution.sources[j]))


__all__ = [
    "FaithfulnessReport",
    "TokenMap",
    "faithfulness",
    "faithfulness_of",
    "method_of",
    "occlusion_of",
    "placebos_for",
    "sentence_occlusion_of",
    "sources_of",
    "subject",
    "token_map_of",
    "used_supports_of",
]


def placebos_for(case: Case, corpus: Sequence[Passage], count: int, seed: int) -> tuple[Passage, ...]:
    """`count` passages of documents that the case does not hold, drawn by `seed`."""
    held = {passage.document for passage in case.passages}
    others = [passage for passage in corpus if passage.document not in held]
    order = np.random.default_rng(seed).permutation(len(others))[:count]
    return tuple(others[i] for i in order)


def sources_of(case: Case) -> tuple[tuple[int, ...], ...]:
    """Passage numbers grouped into the chunk sets that they came in; a passage outside every set is its own source."""
    groups: dict[int, list[int]] = {}
    places = {passage.id: index for index, chunk_set in enumerate(case.chunk_sets) for passage in chunk_set.passages}
    for number, passage in enumerate(case.passages, start=1):
        groups.setdefault(places.get(whole_id(passage), -number), []).append(number)
    return tuple(tuple(numbers) for numbers in groups.values())


def occlusion_of(
    case: Case,
    model: LanguageModel,
    settings: Settings,
    *,
    by_set: bool = False,
    placebos: Sequence[Passage] = (),
    watch: Watch | None = None,
) -> Analysis:
    """Teacher-forced occlusion of every passage (or chunk set), with each alone and both floors."""
    prompt, answer, notes = subject(case, model, settings)
    kind = SETS if by_set else OCCLUSION

    def keep(found: Attribution) -> Analysis:
        extra = {"occlusion": settings.occlusion.to_dict(), "placebos": [p.id for p in placebos]}
        return analysis_of(case, model, settings, kind, _drawable(found, answer, notes, settings), extra)

    try:
        return keep(
            occlusion(
                model,
                prompt,
                answer,
                sources=sources_of(case) if by_set else None,
                placebos=[passage.text for passage in placebos],
                alone=True,
                settings=settings.occlusion,
                watch=watch,
            )
        )
    except Cancelled as stopped:
        raise kept(stopped, keep) from stopped


def sentence_occlusion_of(
    case: Case,
    model: LanguageModel,
    settings: Settings,
    *,
    numbers: Sequence[int] = (),
    placebos: Sequence[Passage] = (),
    watch: Watch | None = None,
) -> Analysis:
    """Occlusion of every sentence of the passages `numbers`; by default of the passages that mattered most.

    These are taken from the case's occlusion by the same model; where there is none it is computed first.
    """
    prompt, answer, notes = subject(case, model, settings)
    texts = [passage.text for passage in placebos]
    chosen = tuple(numbers)
    if not chosen:
        stored = next((a for a in case.analyses if a.id == f"{OCCLUSION}:{model.name}"), None)
        whole = (
            Attribution.from_dict(stored.result)
            if stored
            else occlusion(model, prompt, answer, floors=False, settings=settings.occlusion, watch=watch)
        )
        chosen = top_passages(whole)

    def keep(found: Attribution) -> Analysis:
        extra = {"occlusion": settings.occlusion.to_dict(), "placebos": [p.id for p in placebos], "of": list(chosen)}
        starts = {s.number: passage_body(s)[0] for s in prompt.segments if s.kind == "passage"}
        spans = [[n, start - starts[n], end - starts[n]] for n, start, end in found.details["source_spans"]]
        found = replace(found, details={**found.details, "text_spans": spans})
        return analysis_of(case, model, settings, SENTENCES, _drawable(found, answer, notes, settings), extra)

    try:
        return keep(
            sentence_occlusion(
                model, prompt, answer, numbers=chosen, placebos=texts, settings=settings.occlusion, watch=watch
            )
        )
    except Cancelled as stopped:
        raise kept(stopped, keep) from stopped


def _with_notes(found: Attribution, notes: tuple[str, ...]) -> dict[str, Any]:
    return replace(found, notes=(*notes, *found.notes)).to_dict()


def _drawable(found: Attribution, answer: Answer, notes: tuple[str, ...], settings: Settings) -> dict[str, Any]:
    """With where the tokens of `per_token` stand: `details["tokens"]` [start, end) and `details["content"]`."""
    tokens = [[token.start, token.end] for token in answer.tokens]
    content = content_mask(answer, count_citation_markers=settings.occlusion.count_citation_markers)
    details = {**found.details, "tokens": tokens, "content": content.tolist()}
    return _with_notes(replace(found, details=details), notes)


def method_of(
    case: Case, method: str, model: LanguageModel, settings: Settings, watch: Watch | None = None
) -> Analysis:
    """Any registered method over the case's passages, for the whole answer and each sentence."""
    prompt, answer, notes = subject(case, model, settings)
    counted = settings.occlusion.count_citation_markers
    own = registry.method(method, settings.gradient, count_citation_markers=counted)
    found = own.attribute(model, prompt, answer, answer_spans(answer), watch)
    extra = {"gradient": settings.gradient.to_dict()}
    return analysis_of(case, model, settings, method, _with_notes(found, notes), extra)


def used_supports_of(
    case: Case,
    model: LanguageModel,
    verifier: Entailment,
    settings: Settings,
    *,
    placebos: Sequence[Passage] = (),
    watch: Watch | None = None,
) -> Analysis:
    """What the model used of each passage, sentence by sentence, beside what the passage supports."""
    prompt, answer, notes = subject(case, model, settings)
    texts = [passage.text for passage in placebos]
    spans = answer.sentences or None
    scored = occlusion(model, prompt, answer, spans=spans, placebos=texts, settings=settings.occlusion, watch=watch)
    passages = {number: passage.text for number, passage in enumerate(case.passages, start=1)}
    result = replace(used_supports(scored, answer, passages, verifier, watch), notes=(*notes, *scored.notes))
    extra = {
        "occlusion": settings.occlusion.to_dict(),
        "placebos": [passage.id for passage in placebos],
        "verifier": verifier.name,
    }
    return analysis_of(case, model, settings, USED_SUPPORTS, result.to_dict(), extra)
