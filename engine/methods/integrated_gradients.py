"""Integrated Gradients (Sundararajan et al., 2017) through Captum: zero baseline, 32 steps by default.

Integrates over prompt and answer embeddings together, so that the relevances of all inputs add up to
target(input) - target(zero) up to `delta`, given as a share of that difference.
Left out: other baselines. Captum's layer methods are not safe when two sessions share a model; its
`IntegratedGradients` on embeddings registers no hooks and is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from engine.core.errors import AttributionError
from engine.core.progress import Watch
from engine.core.values import Answer, Prompt
from engine.methods import input_x_gradient as gradient
from engine.methods.input_x_gradient import Explained, Inputs, More, Relevance, Rows, Target, relevance_by
from engine.models.protocols import LanguageModel

if TYPE_CHECKING:
    import torch

ADDS_UP = 0.05  # the largest delta with which a map is taken for what it is meant to be
TRUSTED = "The values add up to what the target gains over the zero baseline."
DOUBTED = "Do not rely on this map: its values do not add up to what the target gains over the zero baseline."
ROWS = 4  # steps that go through the model at once; more costs memory and gains nothing on a CPU


def integrated_gradients(
    model: LanguageModel,
    prompt: Prompt,
    answer: Answer,
    *,
    target: Target = "logit",
    steps: int = 32,
    **explained: Unpack[Explained],
) -> Relevance:
    """As `input_x_gradient`; `delta` is the largest |delta| of any row as a share of the difference."""

    def rows(module: Any, inputs: Inputs, wanted: Sequence[Any], watch: Watch) -> tuple[Rows, More]:
        found = []
        for done, positions in enumerate(wanted):
            watch.step("integrated gradients", done, len(wanted))
            found.append(_integrate(module, inputs, positions, target, steps))
        delta, backwards = max(delta for _, delta in found), steps * len(wanted)
        told = (f"{TRUSTED if delta <= ADDS_UP else DOUBTED} Delta: {delta:.0%} with {steps} steps.",)
        return [row for row, _ in found], {"delta": delta, "steps": float(steps), "backwards": backwards, "notes": told}

    return relevance_by(rows, "integrated gradients", target, model, prompt, answer, **explained)


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
        values = gradient.target_values(gradient.answer_logits(module, embeddings, inputs), inputs.answer, target)
        return values[:, index.to(values.device)].sum(-1)

    embeddings = gradient.embed(module, inputs.row)
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
