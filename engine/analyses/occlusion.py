"""Occlusion of a case: of its passages, its chunk sets, or the sentences of the passages that mattered most.

Teacher-forced, or by writing the answer again without each passage.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace as replace_field
from functools import partial
from statistics import median
from typing import Any

from msgspec.structs import replace

from engine.analyses.attribution import attribution_blocks, floors, for_stamp, of_the_stamp, placebos_of, stamped
from engine.analyses.floors import drop_floor, token_floor
from engine.analyses.kind import OCCLUSION, SENTENCES, SETS, ByModel, Floor, Kind, Outcome, RunContext, less, words_of
from engine.answer.prompt import passage_body
from engine.answer.quoting_reader import whole_id
from engine.answer.write import prompting
from engine.cases.blocks import Block
from engine.cases.review import Review
from engine.core.progress import Watch, last
from engine.core.settings import Settings
from engine.core.text import sentences, words
from engine.core.values import Analysis, Answer, Attribution, Case, Details, Json
from engine.methods.aggregate import sentence_sources
from engine.methods.occlusion import cut_to_words, occluding, occlusion, rows_needed
from engine.methods.regeneration import (
    METHOD as REGENERATION,
    PLACEBOS,
    WRITTEN,
    answering,
    attribution_of,
    regenerating,
)
from engine.methods.spans import Span, content_mask
from engine.methods.subject import analysis_of, default_spans, subject
from engine.models.embedder import DEFAULT
from engine.models.protocols import LanguageModel

TOP_PASSAGES = 3  # passages whose sentences are told apart by default


def top_passages(attribution: Attribution) -> tuple[int, ...]:
    """The passages of the highest sources for the whole answer: what to look into sentence by sentence."""
    order = sorted(range(len(attribution.sources)), key=lambda j: -attribution.scores[0][j])
    return tuple(dict.fromkeys(number for j in order[:TOP_PASSAGES] for number in attribution.sources[j]))


def strongest(case: Case) -> dict[int, tuple[int, float, str]]:
    """By sentence (from 1) the passage that matters most in the last occlusion, its nats per token, and the scorer.

    A sentence where none exceeds its floors is left out, and all are where the run was stopped before the last passage.
    """
    found = PASSAGES.readable(case)
    if found is None or len(set().union(*found.sources)) < len(case.passages):
        return {}
    result: dict[int, tuple[int, float, str]] = {}
    for number, span in enumerate(case.answer.sentences, start=1):
        if span not in found.spans or not found.sources:
            continue
        row = found.spans.index(span)
        best = max(range(len(found.sources)), key=lambda j: found.scores[row][j])
        most = max(floor or 0.0 for floor in floors(found, row))
        tokens = found.details.content_tokens[row] if found.details.content_tokens else 0
        if tokens and found.scores[row][best] > most:
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


class SentenceOptions(ByModel, frozen=True):
    """The passages whose sentences are left out, by number; () are those that mattered most."""

    passages: tuple[int, ...] = ()


def _run(case: Case, options: OcclusionOptions, context: RunContext, *, by_set: bool = False) -> Iterator[Analysis]:
    """Teacher-forced occlusion of every passage (or chunk set); by default with each alone and both floors."""
    kind, sources = (SETS, sources_of(case)) if by_set else (OCCLUSION, None)
    asked: Json = {"sources": sources, "alone": options.alone, "floors": options.floors}
    model = context.tools.scorer(options.model)
    return _occluded(case, model, context, kind, for_stamp(options), spans=options.spans, **asked)


def _run_sentences(case: Case, options: SentenceOptions, context: RunContext) -> Iterator[Analysis]:
    """Occlusion of every sentence of some passages: `details.source_spans[j]` = [number, start, end) in the segment.

    Those that mattered most are taken from the case's occlusion by the same model; where there is none it is computed.
    """
    model, how = context.tools.scorer(options.model), context.settings.occlusion
    prompt, answer, _ = subject(case, model, context.settings)
    chosen = options.passages
    if not chosen:
        stored = case.analysis(f"{OCCLUSION}:{model.name}")
        chosen = top_passages(
            Attribution.from_dict(stored.result)
            if stored
            else occlusion(model, prompt, answer, floors=False, settings=how, watch=context.watch)
        )
    starts = {s.number: passage_body(s)[0] for s in prompt.segments if s.kind == "passage"}
    sources = sentence_sources(model, prompt, model.encode(prompt), chosen)

    def placed(details: Details) -> Details:
        where = tuple((s.number, s.start, s.end) for s in (sources[j] for j in details.kept))
        spans = tuple((n, start - starts[n], end - starts[n]) for n, start, end in where)
        return replace(details, source_spans=where, text_spans=spans)

    numbers, removed = [(source.number,) for source in sources], [source.positions for source in sources]
    asked: Json = {"sources": numbers, "removed": removed, "method": SENTENCES}
    return _occluded(case, model, context, SENTENCES, {"of": list(chosen)}, placed, **asked)


def _occluded(
    case: Case,
    model: LanguageModel,
    context: RunContext,
    kind: str,
    extra: Json,
    placed: Callable[[Details], Details] = lambda details: details,
    spans: tuple[Span, ...] = (),
    **asked: Any,
) -> Iterator[Analysis]:
    """Occlusion with unrelated passages, as analyses; `details` say where the tokens of `per_token` are."""
    settings, unrelated = context.settings, placebos_of(case, context)
    prompt, answer, notes = subject(case, model, settings)
    asked["spans"] = spans or default_spans(case, answer, settings)
    texts, how = [passage.text for passage in unrelated], settings.occlusion
    used = {"occlusion": how.to_dict(), "placebos": [passage.id for passage in unrelated], **extra}
    if asked.get("alone"):
        used["gained"] = True  # the result has the gains of occlusion both ways, which older ones lack
    tokens = tuple((token.start, token.end) for token in answer.tokens)
    content = tuple(content_mask(answer, count_citation_markers=how.count_citation_markers).tolist())
    for found in occluding(model, prompt, answer, placebos=texts, settings=how, watch=context.watch, **asked):
        details = replace(placed(found.details), tokens=tokens, content=content)
        drawn = replace(found, details=details, notes=(*notes, *found.notes))
        yield analysis_of(case, model, settings, kind, drawn, used)


def _again(case: Case, analysis: Analysis, model: LanguageModel, context: RunContext) -> Outcome:
    if analysis.kind == SENTENCES:
        of = tuple(analysis.stamp.settings.get("of", ()))
        grown = _run_sentences(case, SentenceOptions(model=model.name, passages=of), context)
    else:
        grown = _run(case, stamped(OcclusionOptions, analysis), context, by_set=analysis.kind == SETS)
    older = {"gained"} if not analysis.stamp.settings.get("gained") else set()
    values = less(less(last(grown).result), older)
    prompt, answer, _ = subject(case, model, context.settings)
    coded, ids = model.encode(prompt), [token.id for token in answer.tokens]
    by_token = 2 * token_floor(model, [(coded, ids)])  # a difference of two rows
    floors: dict[str, Floor] = dict.fromkeys(("per_token", "placebo_floor_by_token"), by_token)
    floor = drop_floor(model, coded, ids)
    floors["gained"] = 2 * floor  # two drops, and a probability moves by no more than its logarithm
    return Outcome(values=values, floor=floor, floors=floors)


def _run_regenerated(case: Case, options: ByModel, context: RunContext) -> Iterator[Analysis]:
    """The answer written again without each passage (docs/methods/occlusion-by-regeneration.md)."""
    model, settings = context.tools.scorer(options.model), context.settings
    longest = int(median([len(words(passage.text)) for passage in case.passages] or [0]))
    unrelated = [replace(p, text=cut_to_words(p.text, longest)) for p in placebos_of(case, context)[:PLACEBOS]]
    write = prompting(model, settings.prompting, settings.decoding, case.passages)
    how: Json = {"floor": settings.selection.floor, "seed": settings.occlusion.seed}
    grown = regenerating(
        case.question,
        [(passage,) for passage in case.passages],
        answering(write, Watch(context.watch.report, context.watch.cancel)),  # none of these texts is shown
        context.tools.embedder(DEFAULT),
        placebos=unrelated,
        watch=context.watch,
        **how,
    )
    start = time.perf_counter()
    for found in grown:
        timed = replace(attribution_of(found, model.name), seconds=time.perf_counter() - start)
        yield analysis_of(case, model, settings, REGENERATION, timed, {"placebos": [p.id for p in unrelated], **how})


def _regenerated_blocks(case: Case, found: Attribution, review: Review | None = None) -> list[Block]:
    """The scores, with the answer written here in the place of the case's."""
    said = next((note.removeprefix(WRITTEN) for note in found.notes if note.startswith(WRITTEN)), case.answer.text)
    return attribution_blocks(replace(case, answer=Answer(text=said)), found, review)


def rows_of(case: Case, kind: str, settings: Settings) -> int:
    """Rows through the model at this level; for sentences a guess from the longest passages."""
    if kind == SENTENCES:
        counts = sorted((len(sentences(passage.text)) for passage in case.passages), reverse=True)
        count = sum(counts[:TOP_PASSAGES])
    else:
        count = len(sources_of(case)) if kind == SETS else len(case.passages)
    return rows_needed(count, alone=kind != SENTENCES, placebos=settings.occlusion.placebos)


def _cost(kind: str, case: Case, options: ByModel, settings: Settings) -> str:
    rows = rows_of(case, kind, settings)
    return f"up to {rows} forward passes of up to {words_of(case):,} words; nothing is generated"


PASSAGES: Kind[Attribution] = Kind(
    name=OCCLUSION,
    title="Occlusion: without each passage",
    result=Attribution,
    blocks=attribution_blocks,
    options=OcclusionOptions,
    run=_run,
    cost=partial(_cost, OCCLUSION),
    again=of_the_stamp(
        _again, by_placebos=frozenset({"placebo_floor", "placebo_floor_by_span", "placebo_floor_by_token"})
    ),
)
CHUNK_SETS: Kind[Attribution] = replace_field(
    PASSAGES,
    name=SETS,
    title="Occlusion: without each chunk set",
    run=partial(_run, by_set=True),
    cost=partial(_cost, SETS),
)
SINGLE_SENTENCES: Kind[Attribution] = replace_field(
    PASSAGES,
    name=SENTENCES,
    options=SentenceOptions,
    title="Occlusion: without each sentence of the passages that mattered most",
    run=_run_sentences,
    cost=partial(_cost, SENTENCES),
)
REGENERATED: Kind[Attribution] = Kind(
    name=REGENERATION,
    title="Occlusion by regeneration: the answer written again without each passage",
    result=Attribution,
    blocks=_regenerated_blocks,
    run=_run_regenerated,
    cost=lambda case, options, settings: f"{len(case.passages) + 2 + PLACEBOS} answers to write",
    terms=("regeneration",),
    not_again="its answers were written by a language model; run it again instead",
)
