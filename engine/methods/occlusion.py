"""Teacher-forced occlusion: how much less likely is *this* answer without a source (docs/methods/occlusion.md).

score(j) = log p(A | all) - log p(A | all but j), in nats, total and per token; positive = the source makes the answer
more likely. One `score` call gives the full row, each source left out, on demand each source alone, and the rows of the
placebo floor; every span of the answer is read from the same rows. Leave-one-out gives two copies of the same evidence
0 each, hence log p(A | only j) - log p(A | none). Above `max_sources` sources a surrogate is fitted to random
ablations. Attr-RAG, section IV-B-c, occludes by regeneration (regeneration.py); this form and the surrogate are
ContextCite's (Cohen-Wang et al., 2024). Left out: its surrogate for few sources.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from engine.answer.prompt import passage_body
from engine.core.errors import AttributionError, PromptTooLong
from engine.core.progress import Watch, whole
from engine.core.settings import Occlusion
from engine.core.statistics import rank_correlation
from engine.core.text import words
from engine.core.values import Answer, Attribution, Details, Prompt, Segment
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
from engine.models.offsets import common_length
from engine.models.protocols import LanguageModel, TokenPrompt, growing_scores, require
from engine.prompts import fill

# Floors. *Numerical*: rows again with eager attention. Two equal rows inside one batch differ by exactly 0, and on a
# CPU batched and single bf16 rows mostly agree, although each is 0.05 to 0.4 nats from float32; eager attention sums
# in another order and differs as much. *Placebo*: passages of other documents, inserted one at a time.


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
        prompts.append(Prompt(segments=(*prompt.segments[:place], segment, *prompt.segments[place:])))
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

    @property
    def ablated(self) -> list[TokenPrompt]:
        """The prompt less each source."""
        return [drop_positions(self.prompt, positions) for positions in self.removed]

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

    @property
    def gained(self) -> Floats:
        """Probability that a source adds to the others and alone, in [0, 2], (sources, tokens); nan without its row."""
        known = (np.where(np.isfinite(each), each, np.nan) for each in (self.full, self.without, self.alone))
        full, without, alone = map(np.exp, known)
        return token_gains(full - without, alone[1:] - alone[0])


def token_gains(left_out: Floats, alone: Floats) -> Floats:
    """Occlusion both ways: the gains of two differences added up, each where it is above 0; shape (sources, tokens).

    >>> token_gains(np.array([[0.5, -0.25]]), np.array([[-0.5, 0.75]])).tolist()
    [[0.5, 0.75]]
    """
    return np.maximum(left_out, 0.0) + np.maximum(alone, 0.0)


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
    model: LanguageModel, asked: OcclusionTask, placebos: Sequence[TokenPrompt], *, alone: bool, watch: Watch
) -> Iterator[Rows]:
    """All rows as they come; a placebo that does not fit into the window costs the placebos only."""
    count = len(asked.groups)
    rows = [asked.prompt, *asked.ablated]
    if alone:
        rows += [asked.alone(None), *(asked.alone(j) for j in range(count))]

    def split(scored: Floats, *, whole: bool) -> Rows:
        without, single, extra = np.split(scored[1:], [count, len(rows) - 1])
        return Rows(scored[0], without, single, extra[np.isfinite(extra).all(axis=1)], whole)

    try:
        for scored in growing_scores(model, [*rows, *placebos], asked.ids, watch):
            if np.isfinite(scored[0]).all():
                yield split(scored, whole=False)
    except PromptTooLong:
        if not placebos:
            raise
        said = "The placebo floor is missing: with an unrelated passage the prompt exceeds the window."
        for part in score_rows(model, asked, (), alone=alone, watch=watch):
            yield dataclasses.replace(part, notes=(said,))
        return
    if not np.isfinite(scored[0]).all():
        raise AttributionError(
            f"{model.name} gave a probability that is not finite for the full prompt. "
            "Load it in float32 or bfloat16 and try again."
        )
    yield split(scored, whole=True)


def floors_of(model: LanguageModel, asked: OcclusionTask, rows: Rows) -> tuple[Floats, Floats | None]:
    """Numerical and placebo floor of each span, then of each token, nats, shape (spans + tokens,); None: not scored."""
    masks = np.vstack([asked.masks, np.eye(len(asked.ids), dtype=bool)])
    kept = np.flatnonzero(np.isfinite(rows.without).all(axis=1)).tolist()
    ablated = asked.ablated
    prompts = [asked.prompt, *(ablated[j] for j in kept)]
    numerical = numerical_floor(model, prompts, np.vstack([rows.full, rows.without[kept]]), asked.ids, masks)
    return numerical, largest_change(rows.placebos, rows.full, masks) if len(rows.placebos) else None


NO_FLOORS: tuple[Floats | None, Floats | None] = (None, None)


def attribution_of(
    model: str, method: str, asked: OcclusionTask, rows: Rows, floors: tuple[Floats | None, Floats | None] = NO_FLOORS
) -> Attribution:
    """Differences of rows as a value; sources whose row is missing or not finite are left out and named."""
    kept = [j for j, row in enumerate(rows.without) if np.isfinite(row).all()]
    gone = ["+".join(map(str, group)) for j, group in enumerate(asked.groups) if j not in kept]
    why = "the model's probability was not finite" if rows.whole else "the run has not reached them"
    missing = (f"Not scored, because {why}: passage {', '.join(gone)}.",) if gone else ()
    drops = rows.full - rows.without[kept]  # (kept, tokens)
    wanted = [0, *(j + 1 for j in kept)]
    alone = len(rows.alone) and np.isfinite(rows.alone[wanted]).all()
    spans = len(asked.spans)
    numerical, placebo = ([] if floor is None else floor.tolist() for floor in floors)
    return Attribution(
        method=method,
        model=model,
        unit="nats",
        spans=asked.spans,
        sources=tuple(asked.groups[j] for j in kept),
        scores=as_tuples(asked.masks @ drops.T),
        per_token=as_tuples(drops.T),
        numerical_floor=max(numerical[:spans], default=None),
        placebo_floor=max(placebo[:spans], default=None),
        notes=(*rows.notes, *missing),
        details=Details(
            kept=tuple(kept),
            full=tuple((asked.masks @ rows.full).tolist()),
            with_markers=as_tuples(asked.marked @ drops.T),
            content_tokens=tuple(asked.masks.sum(axis=1).tolist()),
            alone=as_tuples(asked.masks @ (rows.alone[wanted[1:]] - rows.alone[0]).T) if alone else (),
            gained=as_tuples(asked.masks @ rows.gained[kept].T) if alone else (),
            numerical_floor_by_span=tuple(numerical[:spans]),
            placebo_floor_by_span=tuple(placebo[:spans]),
            placebo_floor_by_token=tuple(placebo[spans:]),
        ),
    )


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
    settings: Occlusion = Occlusion(),
    watch: Watch = Watch(),
    method: str = "occlusion",
) -> Iterator[Attribution]:
    """Score sources (groups of passage numbers; default each passage) for spans (default the answer, its sentences).

    `answer.tokens` must carry the ids of `model` (see `answer_for`). `removed` are the prompt positions of each source,
    by default its whole passages; `placebos` texts of other documents. `details` holds, each (spans, sources):
    `with_markers`, and on demand `alone` and `gained`; each (spans,): `full` (nats), `content_tokens`,
    `numerical_floor_by_span`, `placebo_floor_by_span`. Raises `CannotDo`, `PromptTooLong`, `AttributionError`,
    `Cancelled`. What comes before the last value lacks floors and the sources not scored yet.
    """
    require(model, "score")
    start, counted = time.perf_counter(), settings.count_citation_markers
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


# A sparse linear surrogate for more sources than can be left out one by one (ContextCite, sections 3 and 4). Sources
# are kept or dropped at random, a LASSO from the kept sources to the answer's log-probability is fitted, and its
# weights are the scores. Here the target is the log-probability of each span (nats), not its logit, so that weights
# compare with exact leave-one-out, and the fit is judged on ablations that it never saw. Up to about 60 sources n + 1
# exact passes cost less and are right.

ABLATIONS = 64  # ContextCite's default
HELD_OUT = 16  # more ablations, on which the fit is judged
PENALTY = 0.01  # ContextCite's default for the LASSO, on a standardised target


def _approximate(method: str, model: LanguageModel, asked: OcclusionTask, seed: int, watch: Watch) -> Attribution:
    """The surrogate's weights in the same shape; no per-token scores, no floors."""
    from sklearn.linear_model import Lasso
    from sklearn.preprocessing import StandardScaler

    masks, spans, count = np.vstack([asked.masks, asked.marked]), len(asked.spans), len(asked.groups)
    kept = np.random.default_rng(seed).random((ABLATIONS + HELD_OUT, count)) < 0.5
    gone = [frozenset().union(*(asked.removed[j] for j in np.flatnonzero(~row))) for row in kept]
    rows = [drop_positions(asked.prompt, positions) for positions in gone]
    targets = model.score(rows, asked.ids, watch) @ masks.T.astype(np.float64)  # (rows, spans)
    usable = np.isfinite(targets).all(axis=1)
    if usable.sum() < 2 * HELD_OUT:
        raise AttributionError("Too few ablations gave finite probabilities to fit the surrogate. Use fewer sources.")
    kept, targets = kept[usable].astype(float), targets[usable]
    standard = StandardScaler().fit(targets[:-HELD_OUT])
    lasso = Lasso(alpha=PENALTY, max_iter=10_000).fit(kept[:-HELD_OUT], standard.transform(targets[:-HELD_OUT]))
    weights = lasso.coef_.reshape(len(masks), count) * standard.scale_[:, None]  # nats
    predicted = standard.inverse_transform(lasso.predict(kept[-HELD_OUT:]).reshape(HELD_OUT, len(masks)))
    told = targets[-HELD_OUT:]
    correlation = [rank_correlation(predicted[:, s].tolist(), told[:, s].tolist()) for s in range(spans)]
    shown = "not defined" if correlation[0] is None else f"{correlation[0]:.2f}"
    note = (
        f"Approximate: a sparse linear fit over {len(kept) - HELD_OUT} random ablations of {count} sources; "
        f"rank correlation with {HELD_OUT} held-out ablations: {shown}."
    )
    return Attribution(
        method=f"{method}, approximate",
        model=model.name,
        unit="nats",
        spans=asked.spans,
        sources=asked.groups,
        scores=as_tuples(weights[:spans]),
        per_token=(),
        notes=(note,),
        details=Details(
            approximate=True,
            kept=tuple(range(count)),
            with_markers=as_tuples(weights[spans:]),
            hold_out_correlation=tuple(correlation),
            ablations=len(rows),
        ),
    )
