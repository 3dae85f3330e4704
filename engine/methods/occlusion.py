"""Teacher-forced occlusion: how much less likely is *this* answer without a source (docs/methods/occlusion.md).

score(j) = log p(A | all) - log p(A | all but j), in nats, total and per token; positive = the source makes the answer
more likely. One `score` call gives the full row, each source left out, on demand each source alone, and the rows of the
placebo floor; every span of the answer is read from the same rows. Leave-one-out gives two copies of the same evidence
0 each, hence log p(A | only j) - log p(A | none). Above `max_sources` sources a surrogate over random ablations is used
(ablation_surrogate.py). Attr-RAG, section IV-B-c, occludes by regeneration (regeneration.py); this form is that of
ContextCite (Cohen-Wang et al., 2024). Left out: its surrogate for few sources.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from msgspec.structs import replace

from engine.answer.prompt import passage_body
from engine.core.errors import AttributionError, PromptTooLong
from engine.core.progress import Watch, whole
from engine.core.settings import Occlusion
from engine.core.text import words
from engine.core.values import Answer, Attribution, Details, Prompt, Segment
from engine.methods.ablation_surrogate import surrogate_scores
from engine.methods.spans import (
    Floats,
    Mask,
    Span,
    answer_spans,
    as_tuples,
    content_mask,
    drop_positions,
    passage_numbers,
    passage_positions,
    span_mask,
    span_masks,
)
from engine.models.hooks import count_forwards
from engine.models.memory import summed_otherwise
from engine.models.protocols import LanguageModel, TokenPrompt, growing_scores, require
from engine.models.scoring import common_length
from engine.prompts import fill

# Floors. *Numerical*: rows again with eager attention. Two equal rows inside one batch differ by exactly 0, and on a
# CPU batched and single bf16 rows mostly agree, although each is 0.05 to 0.4 nats from float32; eager attention sums
# in another order and differs as much. *Placebo*: passages of other documents, inserted one at a time.

T = TypeVar("T")


def insert_at(items: Sequence[T], item: T, place: int) -> list[T]:
    """`items` with `item` before index `place`.

    >>> insert_at("ac", "b", 1)
    ['a', 'b', 'c']
    """
    return [*items[:place], item, *items[place:]]


def cut_to_words(text: str, count: int) -> str:
    """The first `count` words of `text` with what stands between them."""
    spans = words(text)
    return text[: spans[count - 1][1]] if len(spans) > count > 0 else text


def placebo_prompts(prompt: Prompt, texts: Sequence[str], seed: int) -> tuple[Prompt, ...]:
    """The prompt once for each text, inserted among the passages at a random place, under a number of its own.

    Each text is cut to the median length of the prompt's passages, in words.
    """
    places = [i for i, segment in enumerate(prompt.segments) if segment.kind == "passage"]
    if not places:
        return ()
    lengths = [len(words(passage_body(prompt.segments[i])[1])) for i in places]
    number = max(prompt.numbers) + 1
    rng = np.random.default_rng(seed)
    prompts = []
    for text in texts:
        body = fill("passage", number=number, text=cut_to_words(text, int(np.median(lengths))))
        place = [*places, places[-1] + 1][int(rng.integers(0, len(places) + 1))]
        segment = Segment(kind="passage", text=body, number=number, role=prompt.segments[places[0]].role)
        prompts.append(Prompt(segments=tuple(insert_at(prompt.segments, segment, place))))
    return tuple(prompts)


def largest_change(rows: Floats, reference: Floats, masks: Mask) -> Floats:
    """max over rows of |sum over a span of (row - reference)|, shape (spans,). `rows`: (rows, tokens)."""
    changes: Floats = np.abs((rows - reference) @ masks.T.astype(np.float64))  # (rows, spans)
    largest: Floats = changes.max(axis=0)
    return largest


def numerical_floor(
    model: LanguageModel, rows: Sequence[TokenPrompt], scored: Floats, ids: Sequence[int], masks: Mask
) -> Floats:
    """Largest |difference| between `scored` and the same rows in another order of sums, shape (spans,), nats.

    Of all rows the full one (row 0) and the three that begin most like it: they are read from its cache.
    """
    chosen = sorted(range(len(rows)), key=lambda i: -common_length(rows[0].ids, rows[i].ids))[:4]
    with summed_otherwise(model, len(rows[0].ids) + len(ids)):
        again = model.score([rows[i] for i in chosen], ids)
    return largest_change(again, scored[chosen], masks)


@dataclass(frozen=True)
class OcclusionTask:
    """The answer's ids under a prompt, its spans, and the sources that can be left out.

    `removed[j]` are the prompt positions of source j, `groups[j]` its passage numbers. `masks` (spans, tokens) are
    the content tokens of each span, `marked` the same with citation markers.
    """

    prompt: TokenPrompt
    groups: tuple[tuple[int, ...], ...]
    removed: tuple[frozenset[int], ...]
    ids: tuple[int, ...]
    spans: tuple[Span, ...]
    masks: Mask
    marked: Mask

    def without(self, source: int) -> TokenPrompt:
        """The prompt less source `source`."""
        return drop_positions(self.prompt, self.removed[source])

    def alone(self, source: int | None) -> TokenPrompt:
        """The prompt with `source` as its only source; with none of them for None."""
        kept = self.removed[source] if source is not None else frozenset()
        return drop_positions(self.prompt, frozenset().union(*self.removed) - kept)


@dataclass(frozen=True)
class Rows:
    """Token log-probabilities (nats) of the answer, each (rows, tokens); not finite where a row is missing.

    `alone[0]` is the row without any source. `whole`: no row is still to come.
    """

    full: Floats
    without: Floats
    alone: Floats
    placebos: Floats
    whole: bool = True
    notes: tuple[str, ...] = ()


def rows_needed(sources: int, *, alone: bool = False, placebos: int = 0) -> int:
    """Rows that an exact occlusion with floors sends through the model: what it costs, before it runs."""
    return 1 + sources + (sources + 1 if alone else 0) + placebos + min(4, sources + 1)


def ask(
    prompt: TokenPrompt,
    answer: Answer,
    spans: Sequence[Span] | None = None,
    groups: Sequence[Sequence[int]] | None = None,
    removed: Sequence[frozenset[int]] | None = None,
    *,
    count_citation_markers: bool,
) -> OcclusionTask:
    """The sources and spans of an occlusion; default each passage, whole, and the answer with its sentences.

    Raises `AttributionError` without sources or content tokens.
    """
    chosen = tuple(map(tuple, groups if groups is not None else [(n,) for n in passage_numbers(prompt)]))
    if not chosen:
        raise AttributionError("The prompt has no source to leave out. Answer with at least one passage first.")
    content = content_mask(answer, count_citation_markers=count_citation_markers)
    stretches = tuple(spans) if spans is not None else answer_spans(answer)
    return OcclusionTask(
        prompt=prompt,
        groups=chosen,
        removed=tuple(removed or (passage_positions(prompt, group) for group in chosen)),
        ids=tuple(token.id for token in answer.tokens),
        spans=stretches,
        masks=span_masks(answer, stretches, content),
        marked=np.stack([span_mask(answer, span) for span in stretches]),
    )


def score_rows(
    model: LanguageModel, asked: OcclusionTask, placebos: Sequence[TokenPrompt], *, alone: bool, watch: Watch | None
) -> Iterator[Rows]:
    """All rows as they come; a placebo that does not fit into the window costs the placebos only."""
    count = len(asked.groups)
    rows = [asked.prompt, *(asked.without(j) for j in range(count))]
    if alone:
        rows += [asked.alone(None), *(asked.alone(j) for j in range(count))]

    def split(scored: Floats, notes: tuple[str, ...], *, whole: bool) -> Rows:
        without, single, extra = np.split(scored[1:], [count, len(rows) - 1])
        return Rows(scored[0], without, single, extra[np.isfinite(extra).all(axis=1)], whole, notes)

    scored = np.empty(0)
    for scored, notes in _scores(model, rows, placebos, asked.ids, watch):
        if np.isfinite(scored[0]).all():
            yield split(scored, notes, whole=False)
    if not np.isfinite(scored[0]).all():
        raise AttributionError(
            f"{model.name} gave a probability that is not finite for the full prompt. "
            "Load it in float32 or bfloat16 and try again."
        )
    yield split(scored, notes, whole=True)


def _scores(
    model: LanguageModel,
    rows: list[TokenPrompt],
    placebos: Sequence[TokenPrompt],
    ids: Sequence[int],
    watch: Watch | None,
) -> Iterator[tuple[Floats, tuple[str, ...]]]:
    """Log-probabilities as they come (nan: not yet), and what to say."""
    try:
        for scored in growing_scores(model, [*rows, *placebos], ids, watch):
            yield scored, ()
    except PromptTooLong:
        if not placebos:
            raise
        said = "The placebo floor is missing: with an unrelated passage the prompt exceeds the window."
        for scored, _ in _scores(model, rows, (), ids, watch):
            yield scored, (said,)


def floors_of(model: LanguageModel, asked: OcclusionTask, rows: Rows) -> tuple[Floats, Floats | None]:
    """Numerical floor and placebo floor of each span and then of each token, nats, shape (spans + tokens,).

    None where no placebo was scored.
    """
    masks = np.vstack([asked.masks, np.eye(len(asked.ids), dtype=bool)])
    kept = np.isfinite(rows.without).all(axis=1)
    prompts = [asked.prompt, *(asked.without(int(j)) for j in np.flatnonzero(kept))]
    numerical = numerical_floor(model, prompts, np.vstack([rows.full, rows.without[kept]]), asked.ids, masks)
    return numerical, largest_change(rows.placebos, rows.full, masks) if len(rows.placebos) else None


NO_FLOORS: tuple[Floats | None, Floats | None] = (None, None)


def attribution_of(
    model: str, method: str, asked: OcclusionTask, rows: Rows, floors: tuple[Floats | None, Floats | None] = NO_FLOORS
) -> Attribution:
    """Differences of rows as a value; sources whose row is missing or not finite are left out and named."""
    kept = [j for j, row in enumerate(rows.without) if np.isfinite(row).all()]
    drops = rows.full - rows.without[kept]  # (kept, tokens)
    numerical, placebo = (None if floor is None else float(floor[: len(asked.spans)].max()) for floor in floors)
    return Attribution(
        method=method,
        model=model,
        unit="nats",
        spans=asked.spans,
        sources=tuple(asked.groups[j] for j in kept),
        scores=as_tuples(asked.masks @ drops.T),
        per_token=as_tuples(drops.T),
        numerical_floor=numerical,
        placebo_floor=placebo,
        notes=(*rows.notes, *_missing(asked, kept, whole=rows.whole)),
        details=_details(asked, rows, kept, drops, floors),
    )


def _details(
    asked: OcclusionTask, rows: Rows, kept: list[int], drops: Floats, floors: tuple[Floats | None, Floats | None]
) -> Details:
    wanted = [0, *(j + 1 for j in kept)]
    alone = len(rows.alone) and np.isfinite(rows.alone[wanted]).all()
    spans = len(asked.spans)
    numerical, placebo = (np.empty(0) if floor is None else floor for floor in floors)
    return Details(
        kept=tuple(kept),
        full=tuple((asked.masks @ rows.full).tolist()),
        with_markers=as_tuples(asked.marked @ drops.T),
        content_tokens=tuple(asked.masks.sum(axis=1).tolist()),
        alone=as_tuples(asked.masks @ (rows.alone[wanted[1:]] - rows.alone[0]).T) if alone else (),
        numerical_floor_by_span=tuple(numerical[:spans].tolist()),
        placebo_floor_by_span=tuple(placebo[:spans].tolist()),
        placebo_floor_by_token=tuple(placebo[spans:].tolist()),
    )


def _missing(asked: OcclusionTask, kept: list[int], *, whole: bool) -> tuple[str, ...]:
    gone = ["+".join(map(str, group)) for j, group in enumerate(asked.groups) if j not in kept]
    why = "the model's probability was not finite" if whole else "the run was stopped"
    return (f"Not scored, because {why}: passage {', '.join(gone)}.",) if gone else ()


def occluding(
    model: LanguageModel,
    prompt: Prompt,
    answer: Answer,
    *,
    sources: Sequence[Sequence[int]] | None = None,
    removed: Sequence[frozenset[int]] | None = None,
    spans: Sequence[Span] | None = None,
    placebos: Sequence[str] = (),
    alone: bool = False,
    floors: bool = True,
    settings: Occlusion | None = None,
    watch: Watch | None = None,
    method: str = "occlusion",
) -> Iterator[Attribution]:
    """Score sources (groups of passage numbers; default each passage) for spans (default the answer, its sentences).

    `answer.tokens` must carry the ids of `model` (see `answer_for`). `removed` are the prompt positions of each source,
    by default its whole passages; `placebos` texts of other documents. `details` holds, each (spans, sources):
    `with_markers`, and `alone` on demand; each (spans,): `full` (nats), `content_tokens`, `numerical_floor_by_span`,
    `placebo_floor_by_span`. Raises `CannotDo`, `PromptTooLong`, `AttributionError`, `Cancelled`. What comes before the
    last value lacks floors and the sources not scored yet.
    """
    require(model, "score")
    start, settings = time.perf_counter(), settings or Occlusion()
    counted = settings.count_citation_markers
    asked = ask(model.encode(prompt), answer, spans, sources, removed, count_citation_markers=counted)
    with count_forwards(model) as count:

        def measured(result: Attribution) -> Attribution:
            return replace(result, forwards=count.rows, seconds=time.perf_counter() - start)

        if len(asked.groups) > settings.max_sources:
            yield measured(_approximate(method, model, asked, settings.seed, watch))
            return
        texts = placebos[: settings.placebos] if floors else ()
        extra = [model.encode(changed) for changed in placebo_prompts(prompt, texts, settings.seed)]
        for rows in score_rows(model, asked, extra, alone=alone, watch=watch):
            if not rows.whole:
                yield measured(attribution_of(model.name, method, asked, rows))
        found = floors_of(model, asked, rows) if floors else NO_FLOORS
        result = attribution_of(model.name, method, asked, rows, found)
        notes = []
        if texts and len(rows.placebos) < settings.placebos:
            notes.append(
                f"The placebo floor uses {len(rows.placebos)} unrelated passages instead of {settings.placebos}."
            )
        dtype = getattr(model, "dtype", "float32")
        if result.numerical_floor == 0.0 and dtype != "float32":
            notes.append(
                f"The floor shows no rounding, but {model.name} computes in {dtype}: differences of a few tenths of a "
                "nat may be rounding."
            )
        yield measured(replace(result, notes=(*result.notes, *notes)))


occlusion = whole(occluding)


def _approximate(
    method: str, model: LanguageModel, asked: OcclusionTask, seed: int, watch: Watch | None
) -> Attribution:
    """The surrogate's weights in the same shape; no per-token scores, no floors."""
    masks = np.vstack([asked.masks, asked.marked])
    fit = surrogate_scores(
        lambda prompts: model.score(prompts, asked.ids, watch), asked.prompt, asked.removed, masks, seed
    )
    count = len(asked.spans)
    return Attribution(
        method=f"{method}, approximate",
        model=model.name,
        unit="nats",
        spans=asked.spans,
        sources=asked.groups,
        scores=as_tuples(fit.weights[:count]),
        per_token=(),
        notes=(fit.note,),
        details=Details(
            approximate=True,
            kept=tuple(range(len(asked.groups))),
            with_markers=as_tuples(fit.weights[count:]),
            hold_out_correlation=tuple(fit.correlation[:count]),
            ablations=fit.ablations,
        ),
    )
