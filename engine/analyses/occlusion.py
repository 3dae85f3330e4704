"""Occlusion of a case: of its passages, its chunk sets, or the sentences of the passages that mattered most.

Teacher-forced, or by writing the answer again without each passage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace as replace_kind
from functools import partial

from msgspec.structs import replace

from engine.analyses.attribution import attributed, of_the_stamp, placebos, placebos_of, with_notes
from engine.analyses.floors import drop_floor, token_floor
from engine.analyses.kind import (
    OCCLUSION,
    SENTENCES,
    SETS,
    ByModel,
    Floor,
    Kind,
    Loaders,
    Outcome,
    RunContext,
    less,
    words_of,
)
from engine.answer.prompt import passage_body
from engine.answer.quoting_reader import whole_id
from engine.answer.write import prompting
from engine.core.progress import Watch, last
from engine.core.settings import Occlusion, Settings
from engine.core.text import sentences
from engine.core.values import Analysis, Answer, Attribution, Case, Passage, Prompt
from engine.methods.aggregate import sentence_sources
from engine.methods.occlusion import Options, occlude, occluding, occlusion, rows_needed
from engine.methods.regeneration import METHOD as REGENERATION, PLACEBOS, attribution_of, regenerate
from engine.methods.spans import Span, content_mask, passage_numbers
from engine.methods.subject import analysis_of, subject
from engine.models.embedder import DEFAULT
from engine.models.protocols import LanguageModel, require

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
) -> Iterator[Attribution]:
    """As `occluding`, every sentence of the passages `numbers` being a source (default the prompt's first three).

    `details.source_spans[j]` = [passage number, start, end] in the passage segment's text. Raises
    `AttributionError` where the model's tokens cannot be placed in the text.
    """
    require(model, "score")
    coded = model.encode(prompt)
    wanted = tuple(numbers) if numbers is not None else passage_numbers(coded)[:TOP_PASSAGES]
    found = sentence_sources(model, prompt, coded, wanted)
    groups = [(source.number,) for source in found]
    removed = [source.positions for source in found]
    options = Options(placebos, settings=settings or Occlusion(), watch=watch)
    where = [(source.number, source.start, source.end) for source in found]

    def placed(result: Attribution) -> Attribution:
        spans = tuple(where[j] for j in result.details.kept)
        return replace(result, details=replace(result.details, source_spans=spans))

    return map(placed, occlude(SENTENCES, model, prompt, answer, coded, groups, removed, None, options))


def top_passages(attribution: Attribution, count: int = TOP_PASSAGES) -> tuple[int, ...]:
    """The passages of the `count` highest sources for the whole answer: what to look into sentence by sentence."""
    order = sorted(range(len(attribution.sources)), key=lambda j: -attribution.scores[0][j])
    return tuple(dict.fromkeys(number for j in order[:count] for number in attribution.sources[j]))


def strongest(case: Case) -> dict[int, tuple[int, float, str]]:
    """By the case's last occlusion of passages: of each sentence (from 1) the passage that matters most.

    With its score in nats per token and the scorer. A sentence where none exceeds its floors is left out.
    """
    held = [analysis.result for analysis in case.analyses if analysis.kind == OCCLUSION]
    if not held:
        return {}
    found = Attribution.from_dict(held[-1])
    details = found.details
    result: dict[int, tuple[int, float, str]] = {}
    for number, span in enumerate(case.answer.sentences, start=1):
        if span not in found.spans or not found.sources:
            continue
        row = found.spans.index(span)
        best = max(range(len(found.sources)), key=lambda j: found.scores[row][j])
        floors = [floors[row] for floors in (details.numerical_floor_by_span, details.placebo_floor_by_span) if floors]
        tokens = details.content_tokens[row] if details.content_tokens else 0
        if tokens and found.scores[row][best] > max(floors, default=0.0):
            result[number] = (found.sources[best][0], found.scores[row][best] / tokens, found.model)
    return result


def sources_of(case: Case) -> tuple[tuple[int, ...], ...]:
    """Passage numbers grouped into the chunk sets that they came in; a passage outside every set is its own source."""
    groups: dict[int, list[int]] = {}
    places = {passage.id: index for index, chunk_set in enumerate(case.chunk_sets) for passage in chunk_set.passages}
    for number, passage in enumerate(case.passages, start=1):
        groups.setdefault(places.get(whole_id(passage), -number), []).append(number)
    return tuple(tuple(numbers) for numbers in groups.values())


class OcclusionOptions(ByModel, frozen=True):
    """Stretches of the answer (() is the whole and each sentence), each source alone, numerical and placebo floor."""

    spans: tuple[Span, ...] = ()
    alone: bool = True
    floors: bool = True


def occlusion_of(
    case: Case,
    model: LanguageModel,
    settings: Settings,
    options: OcclusionOptions | None = None,
    *,
    by_set: bool = False,
    placebos: Sequence[Passage] = (),
    watch: Watch | None = None,
) -> Iterator[Analysis]:
    """Teacher-forced occlusion of every passage (or chunk set); by default with each alone and both floors."""
    options = options or OcclusionOptions()
    prompt, answer, notes = subject(case, model, settings)
    kind = SETS if by_set else OCCLUSION

    def keep(found: Attribution) -> Analysis:
        extra = {"occlusion": settings.occlusion.to_dict(), "placebos": [p.id for p in placebos]}
        return analysis_of(case, model, settings, kind, _drawable(found, answer, notes, settings), extra)

    grown = occluding(
        model,
        prompt,
        answer,
        sources=sources_of(case) if by_set else None,
        spans=options.spans or None,
        placebos=[passage.text for passage in placebos],
        alone=options.alone,
        floors=options.floors,
        settings=settings.occlusion,
        watch=watch,
    )
    return map(keep, grown)


def sentence_occlusion_of(
    case: Case,
    model: LanguageModel,
    settings: Settings,
    *,
    numbers: Sequence[int] = (),
    placebos: Sequence[Passage] = (),
    watch: Watch | None = None,
) -> Iterator[Analysis]:
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
        spans = tuple((n, start - starts[n], end - starts[n]) for n, start, end in found.details.source_spans)
        found = replace(found, details=replace(found.details, text_spans=spans))
        return analysis_of(case, model, settings, SENTENCES, _drawable(found, answer, notes, settings), extra)

    grown = sentence_occlusion(
        model, prompt, answer, numbers=chosen, placebos=texts, settings=settings.occlusion, watch=watch
    )
    return map(keep, grown)


def _drawable(found: Attribution, answer: Answer, notes: tuple[str, ...], settings: Settings) -> Attribution:
    """With where the tokens of `per_token` stand: `details.tokens` [start, end) and `details.content`."""
    tokens = tuple((token.start, token.end) for token in answer.tokens)
    content = content_mask(answer, count_citation_markers=settings.occlusion.count_citation_markers)
    details = replace(found.details, tokens=tokens, content=tuple(content.tolist()))
    return with_notes(replace(found, details=details), notes)


def _again(case: Case, analysis: Analysis, model: LanguageModel, settings: Settings, tools: Loaders) -> Outcome:
    """Occlusion again, with the unrelated passages of then."""
    found, missing = placebos(case, analysis.stamp, tools)
    if analysis.kind == SENTENCES:
        of = tuple(analysis.stamp.settings.get("of", ()))
        grown = sentence_occlusion_of(case, model, settings, numbers=of, placebos=found)
    else:
        by_set = analysis.kind == SETS
        grown = occlusion_of(case, model, settings, by_set=by_set, placebos=found)
    values = less(last(grown).result)
    if missing:
        values.pop("placebo_floor", None)
        for name in ("placebo_floor_by_span", "placebo_floor_by_token"):
            values.get("details", {}).pop(name, None)
    prompt, answer, _ = subject(case, model, settings)
    coded, ids = model.encode(prompt), [token.id for token in answer.tokens]
    by_token = 2 * token_floor(model, [(coded, ids)])  # a difference of two rows
    floors: dict[str, Floor] = dict.fromkeys(("per_token", "placebo_floor_by_token"), by_token)
    return Outcome(values=values, floor=drop_floor(model, coded, ids), why=missing, floors=floors)


def _run(case: Case, options: OcclusionOptions, context: RunContext, *, by_set: bool = False) -> Iterator[Analysis]:
    model, unrelated = context.tools.scorer(options.model), placebos_of(case, context)
    return occlusion_of(case, model, context.settings, options, by_set=by_set, placebos=unrelated, watch=context.watch)


def _run_sentences(case: Case, options: ByModel, context: RunContext) -> Iterator[Analysis]:
    model, unrelated = context.tools.scorer(options.model), placebos_of(case, context)
    return sentence_occlusion_of(case, model, context.settings, placebos=unrelated, watch=context.watch)


def _run_regenerated(case: Case, options: ByModel, context: RunContext) -> Iterator[Analysis]:
    """The answer written again without each passage (docs/methods/occlusion-by-regeneration.md)."""
    model, settings, unrelated = context.tools.scorer(options.model), context.settings, placebos_of(case, context)
    write = prompting(model, settings.prompting, settings.decoding, case.passages)
    found = regenerate(
        case.question,
        [(passage,) for passage in case.passages],
        lambda question, passages: write(question, passages, None, context.watch).answer,
        context.tools.embedder(DEFAULT),
        placebos=unrelated,
        floor="largest" if settings.selection.floor == "largest" else "median",
        seed=settings.occlusion.seed,
        watch=context.watch,
    )
    extra = {"placebos": [passage.id for passage in unrelated]}
    yield analysis_of(case, model, settings, REGENERATION, attribution_of(found, model.name), extra)


def rows_of(case: Case, kind: str, settings: Settings) -> int:
    """Rows through the model at this level; for sentences a guess from the longest passages."""
    if kind == SENTENCES:
        counts = sorted((len(sentences(passage.text)) for passage in case.passages), reverse=True)
        count = sum(counts[:TOP_PASSAGES])
    else:
        count = len(sources_of(case)) if kind == SETS else len(case.passages)
    return rows_needed(count, alone=kind != SENTENCES, placebos=settings.occlusion.placebos if case.corpus else 0)


def _cost(kind: str, case: Case, options: ByModel, settings: Settings) -> str:
    rows = rows_of(case, kind, settings)
    return f"up to {rows} forward passes of up to {words_of(case):,} words; nothing is generated"


PASSAGES: Kind[Attribution] = Kind(
    name=OCCLUSION,
    title="Occlusion: without each passage",
    result=Attribution,
    blocks=attributed,
    options=OcclusionOptions,
    run=_run,
    cost=partial(_cost, OCCLUSION),
    again=of_the_stamp(_again),
)
CHUNK_SETS: Kind[Attribution] = replace_kind(
    PASSAGES,
    name=SETS,
    title="Occlusion: without each chunk set",
    run=partial(_run, by_set=True),
    cost=partial(_cost, SETS),
)
SINGLE_SENTENCES: Kind[Attribution] = replace_kind(
    PASSAGES,
    name=SENTENCES,
    options=ByModel,
    title="Occlusion: without each sentence of the passages that mattered most",
    run=_run_sentences,
    cost=partial(_cost, SENTENCES),
)
REGENERATED: Kind[Attribution] = Kind(
    name=REGENERATION,
    title="Occlusion by regeneration: the answer written again without each passage",
    result=Attribution,
    blocks=attributed,
    run=_run_regenerated,
    cost=lambda case, options, settings: f"{len(case.passages) + 2 + PLACEBOS} answers to write",
    terms=("regeneration",),
    not_again="its answers were written by a language model; run it again instead",
)
