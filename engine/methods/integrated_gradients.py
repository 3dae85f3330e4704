"""Integrated Gradients (Sundararajan et al., 2017) through Captum: zero baseline, 32 steps by default.

Integrates over prompt and answer embeddings together, so that the relevances of all inputs add up to
target(input) - target(zero) up to `delta`, given as a share of that difference.
Left out: other baselines. Captum's layer methods are not safe when two sessions share a model; its
`IntegratedGradients` on embeddings registers no hooks and is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.core.errors import AttributionError
from engine.core.progress import Watch
from engine.core.values import Answer, Prompt
from engine.methods.input_x_gradient import (
    Inputs,
    Relevance,
    Target,
    batch_logits,
    embed,
    inputs_of,
    memory_named,
    target_values,
)
from engine.methods.spans import Span, content_mask, span_masks
from engine.models.hooks import count_forwards
from engine.models.protocols import LanguageModel, require

if TYPE_CHECKING:
    import torch

ROWS = 4  # steps that go through the model at once; more costs memory and gains nothing on a CPU


def integrated_gradients(
    model: LanguageModel,
    prompt: Prompt,
    answer: Answer,
    *,
    spans: Sequence[Span] | None = None,
    tokens: Sequence[int] = (),
    target: Target = "logit",
    steps: int = 32,
    count_citation_markers: bool = False,
    watch: Watch | None = None,
) -> Relevance:
    """As `input_x_gradient`; `delta` is the largest |delta| of any row as a share of the difference."""
    require(model, "gradients")
    start = time.perf_counter()
    chosen = tuple(spans) if spans is not None else ((0, len(answer.text)),)
    masks = span_masks(answer, chosen, content_mask(answer, count_citation_markers=count_citation_markers))
    inputs = inputs_of(model, prompt, answer)
    wanted = [np.flatnonzero(mask) for mask in masks] + [np.array([t]) for t in tokens]
    watch = watch or Watch()
    rows: list[tuple[float, ...]] = []
    deltas: list[float] = []
    with memory_named(), count_forwards(model) as count, model.hold(watch) as module:  # type: ignore[attr-defined]
        for done, positions in enumerate(wanted):
            watch.step("integrated gradients", done, len(wanted))
            row, delta = _integrate(module, inputs, positions, target, steps)
            rows.append(row)
            deltas.append(delta)
    return Relevance(
        method="integrated gradients",
        model=model.name,
        target=target,
        spans=chosen,
        by_span=tuple(rows[: len(chosen)]),
        tokens=tuple(tokens),
        by_token=tuple(rows[len(chosen) :]),
        prompt_tokens=len(inputs.ids),
        forwards=count.rows,
        backwards=steps * len(wanted),
        seconds=time.perf_counter() - start,
        delta=max(deltas),
        steps=float(steps),
    )


def _integrate(
    module: Any, inputs: Inputs, positions: Any, target: Target, steps: int
) -> tuple[tuple[float, ...], float]:
    """The relevance row and |delta| as a share of target(input) - target(zero)."""
    import torch
    from captum.attr import IntegratedGradients

    if len(positions) == 0:
        return (0.0,) * len(inputs.row), 0.0
    index = torch.as_tensor(positions)

    def total(embeddings: torch.Tensor) -> torch.Tensor:
        values = target_values(batch_logits(module, embeddings, inputs), inputs.answer, target)
        return values[:, index.to(values.device)].sum(-1)

    embeddings = embed(module, inputs.row)
    with torch.enable_grad():
        attributed = IntegratedGradients(total).attribute(
            embeddings, baselines=torch.zeros_like(embeddings), n_steps=steps, internal_batch_size=ROWS
        )
    with torch.no_grad():
        difference = float(total(embeddings) - total(torch.zeros_like(embeddings)))
    row = attributed.detach().float().sum(-1)[0]
    if not torch.isfinite(row).all():
        raise AttributionError("The model gave gradients that are not finite. Load it in float32 or bfloat16.")
    return tuple(row.tolist()), abs(float(row.sum()) - difference) / max(abs(difference), 1e-12)
