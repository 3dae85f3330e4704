"""Teacher-forced occlusion: how much less likely is *this* answer without a source (METHODS sections 0 and 1).

score(j) = log p(A | all) - log p(A | all but j), in nats, total and per token; positive = the source makes the
answer more likely. One `score` call gives the full row, each source left out, on demand each source alone, and
the rows of the placebo floor; every span of the answer is read from the same rows. Leave-one-out gives two copies
of the same evidence 0 each, hence the scores of each source alone: log p(A | only j) - log p(A | none).
Above `max_sources` sources the surrogate over random ablations stands in (ablation_surrogate.py).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from engine.attribute.ablation_surrogate import surrogate_scores
from engine.attribute.floors import placebo_prompts
from engine.attribute.occlusion_rows import Asked, as_tuples, ask, attribution_of, floors_of, score_rows
from engine.attribute.removal import passage_numbers, passage_positions
from engine.attribute.spans import Span, answer_spans
from engine.errors import Cancelled
from engine.models.hooks import count_forwards
from engine.models.protocols import LanguageModel, TokenPrompt, require
from engine.progress import Watch
from engine.settings import Occlusion
from engine.types import Answer, Attribution, Prompt


@dataclass(frozen=True)
class Options:
    """What is measured beside the scores: floors, each source alone; and how."""

    placebos: Sequence[str] = ()
    alone: bool = False
    floors: bool = True
    settings: Occlusion = Occlusion()
    watch: Watch | None = None


def occlusion(
    model: LanguageModel,
    prompt: Prompt,
    answer: Answer,
    *,
    sources: Sequence[Sequence[int]] | None = None,
    spans: Sequence[Span] | None = None,
    placebos: Sequence[str] = (),
    alone: bool = False,
    floors: bool = True,
    settings: Occlusion | None = None,
    watch: Watch | None = None,
) -> Attribution:
    """Score sources (groups of passage numbers; default each passage) for spans (default the answer, its sentences).

    `answer.tokens` must carry the ids of `model` (see `answer_for`). `placebos` are texts of other documents.
    `details` holds, each (spans, sources): `with_markers`, and `alone` on demand; each (spans,): `full` (nats),
    `content_tokens`, `numerical_floor_by_span`, `placebo_floor_by_span`. Raises `CannotDo`, `PromptTooLong`,
    `AttributionError`, or `Cancelled` whose `partial` is the `Attribution` of the sources that were scored.
    """
    require(model, "score")
    coded = model.encode(prompt)
    groups = tuple(tuple(group) for group in sources or [(n,) for n in passage_numbers(coded)])
    removed = tuple(passage_positions(coded, group) for group in groups)
    options = Options(placebos, alone, floors, settings or Occlusion(), watch)
    return occlude("occlusion", model, prompt, answer, coded, groups, removed, spans, options)


def occlude(
    method: str,
    model: LanguageModel,
    prompt: Prompt,
    answer: Answer,
    coded: TokenPrompt,
    groups: Sequence[tuple[int, ...]],
    removed: Sequence[frozenset[int]],
    spans: Sequence[Span] | None,
    options: Options,
) -> Attribution:
    """Occlusion of any sets of prompt positions `removed`; `groups[j]` names the passages that j stands in."""
    start = time.perf_counter()
    chosen = tuple(spans) if spans is not None else answer_spans(answer)
    counted = options.settings.count_citation_markers
    asked = ask(coded, answer, groups, removed, chosen, count_citation_markers=counted)
    with count_forwards(model) as count:
        if len(groups) > options.settings.max_sources:
            result, stopped = _approximate(method, model, asked, options), None
        else:
            result, stopped = _exact(method, model, prompt, asked, options)
    whole = replace(result, forwards=count.rows, seconds=time.perf_counter() - start)
    if stopped is not None:
        raise Cancelled(str(stopped), whole)
    return whole


def _exact(
    method: str, model: LanguageModel, prompt: Prompt, asked: Asked, options: Options
) -> tuple[Attribution, Cancelled | None]:
    settings = options.settings
    texts = options.placebos[: settings.placebos] if options.floors else ()
    extra = [model.encode(changed) for changed in placebo_prompts(prompt, texts, settings.seed)]
    rows = score_rows(model, asked, extra, alone=options.alone, watch=options.watch)
    floors = floors_of(model, asked, rows) if options.floors and rows.stopped is None else (None, None)
    result = attribution_of(model.name, method, asked, rows, floors)
    if texts and len(rows.placebos) < settings.placebos:
        said = f"The placebo floor stands on {len(rows.placebos)} unrelated passages instead of {settings.placebos}."
        result = replace(result, notes=(*result.notes, said))
    if result.numerical_floor == 0.0 and getattr(model, "dtype", "float32") != "float32":
        said = f"Rounding did not show in the floor, yet {model.name} computes in {getattr(model, 'dtype', '')}: "
        said += "differences of a few tenths of a nat may be rounding."
        result = replace(result, notes=(*result.notes, said))
    return result, rows.stopped


def _approximate(method: str, model: LanguageModel, asked: Asked, options: Options) -> Attribution:
    """The surrogate's weights in the same shape; no per-token scores, no floors."""
    masks = np.vstack([asked.masks, asked.marked])
    fit = surrogate_scores(
        lambda prompts: model.score(prompts, asked.ids, options.watch),
        asked.prompt,
        asked.removed,
        masks,
        seed=options.settings.seed,
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
        details={
            "approximate": True,
            "kept": list(range(len(asked.groups))),
            "with_markers": fit.weights[count:].tolist(),
            "hold_out_correlation": fit.correlation[:count],
            "ablations": fit.ablations,
        },
    )
