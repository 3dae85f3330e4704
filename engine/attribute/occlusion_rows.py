"""The rows behind an occlusion: which prompts are scored, and how their differences become a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.attribute.floors import Floats, largest_change, numerical_floor
from engine.attribute.removal import drop_positions
from engine.attribute.spans import Mask, Span, content_mask, span_mask, span_masks
from engine.errors import AttributionError, Cancelled, PromptTooLong
from engine.models.protocols import LanguageModel, TokenPrompt
from engine.progress import Watch
from engine.types import Answer, Attribution


@dataclass(frozen=True)
class Asked:
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

    `alone[0]` is the row without any source. `stopped` is set where a cancelled run left rows out.
    """

    full: Floats
    without: Floats
    alone: Floats
    placebos: Floats
    stopped: Cancelled | None = None
    notes: tuple[str, ...] = ()


def rows_needed(sources: int, *, alone: bool = False, placebos: int = 0, floors: bool = True) -> int:
    """Rows that an exact occlusion sends through the model: what it costs, before it runs."""
    numerical = min(3, sources + 1) if floors else 0
    return 1 + sources + (sources + 1 if alone else 0) + (placebos if floors else 0) + numerical


def ask(
    prompt: TokenPrompt,
    answer: Answer,
    groups: Sequence[tuple[int, ...]],
    removed: Sequence[frozenset[int]],
    spans: Sequence[Span],
    *,
    count_citation_markers: bool,
) -> Asked:
    """Check that there is something to ask; `AttributionError` without sources or content tokens."""
    if not groups:
        raise AttributionError("The prompt holds no source to leave out. Answer with at least one passage first.")
    content = content_mask(answer, count_citation_markers=count_citation_markers)
    return Asked(
        prompt=prompt,
        groups=tuple(groups),
        removed=tuple(removed),
        ids=tuple(token.id for token in answer.tokens),
        spans=tuple(spans),
        masks=span_masks(answer, spans, content),
        marked=np.stack([span_mask(answer, span) for span in spans]),
    )


def score_rows(
    model: LanguageModel, asked: Asked, placebos: Sequence[TokenPrompt], *, alone: bool, watch: Watch | None
) -> Rows:
    """All rows from one `score` call; a placebo that does not fit into the window costs the placebos only."""
    count = len(asked.groups)
    rows = [asked.prompt, *(asked.without(j) for j in range(count))]
    if alone:
        rows += [asked.alone(None), *(asked.alone(j) for j in range(count))]
    scored, stopped, notes = _score(model, rows, placebos, asked.ids, watch)
    if not np.isfinite(scored[0]).all():
        raise AttributionError(
            f"{model.name} gave a probability that is no finite number for the full prompt. "
            "Load it in float32 or bfloat16 and try again."
        )
    without, single, extra = np.split(scored[1:], [count, len(rows) - 1])
    return Rows(scored[0], without, single, extra[np.isfinite(extra).all(axis=1)], stopped, notes)


def _score(
    model: LanguageModel,
    rows: list[TokenPrompt],
    placebos: Sequence[TokenPrompt],
    ids: Sequence[int],
    watch: Watch | None,
) -> tuple[Floats, Cancelled | None, tuple[str, ...]]:
    """Log-probabilities, what stopped the run (its rows are nan), and what to say."""
    try:
        return model.score([*rows, *placebos], ids, watch), None, ()
    except PromptTooLong:
        if not placebos:
            raise
        said = "With an unrelated passage the prompt does not fit into the window: no placebo floor."
        scored, stopped, _ = _score(model, rows, (), ids, watch)
        return scored, stopped, (said,)
    except Cancelled as stopped:
        if not isinstance(stopped.partial, np.ndarray) or not np.isfinite(stopped.partial[0]).all():
            raise
        return stopped.partial, stopped, ()


def floors_of(model: LanguageModel, asked: Asked, rows: Rows) -> tuple[Floats, Floats | None]:
    """Numerical floor and placebo floor of each span and then of each token, nats, shape (spans + tokens,).

    None where no placebo was scored.
    """
    masks = np.vstack([asked.masks, np.eye(len(asked.ids), dtype=bool)])
    kept = np.isfinite(rows.without).all(axis=1)
    prompts = [asked.prompt, *(asked.without(int(j)) for j in np.flatnonzero(kept))]
    numerical = numerical_floor(model, prompts, np.vstack([rows.full, rows.without[kept]]), asked.ids, masks)
    return numerical, largest_change(rows.placebos, rows.full, masks) if len(rows.placebos) else None


def attribution_of(
    model: str, method: str, asked: Asked, rows: Rows, floors: tuple[Floats | None, Floats | None]
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
        notes=(*rows.notes, *_missing(asked, kept, rows.stopped)),
        details=_details(asked, rows, kept, drops, floors),
    )


def _details(
    asked: Asked, rows: Rows, kept: list[int], drops: Floats, floors: tuple[Floats | None, Floats | None]
) -> dict[str, object]:
    details: dict[str, object] = {
        "kept": kept,
        "full": (asked.masks @ rows.full).tolist(),
        "with_markers": (asked.marked @ drops.T).tolist(),
        "content_tokens": asked.masks.sum(axis=1).tolist(),
    }
    wanted = [0, *(j + 1 for j in kept)]
    if len(rows.alone) and np.isfinite(rows.alone[wanted]).all():
        details["alone"] = (asked.masks @ (rows.alone[wanted[1:]] - rows.alone[0]).T).tolist()
    for name, floor in zip(("numerical", "placebo"), floors, strict=True):
        if floor is not None:
            details[f"{name}_floor_by_span"] = floor[: len(asked.spans)].tolist()
    if floors[1] is not None:
        details["placebo_floor_by_token"] = floors[1][len(asked.spans) :].tolist()
    return details


def _missing(asked: Asked, kept: list[int], stopped: Cancelled | None) -> tuple[str, ...]:
    gone = ["+".join(map(str, group)) for j, group in enumerate(asked.groups) if j not in kept]
    why = "the run was stopped" if stopped else "the model gave no finite probability"
    return (f"Not scored, because {why}: passage {', '.join(gone)}.",) if gone else ()


def as_tuples(matrix: Floats) -> tuple[tuple[float, ...], ...]:
    """A matrix as the rows of an `Attribution`."""
    return tuple(tuple(row) for row in matrix.tolist())
