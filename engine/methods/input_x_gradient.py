"""Input x gradient (grounded refinement, section 4.3.1): R_i = sum over the hidden dimension of e_i * dl_t / de_i.

One forward over prompt + answer gives every target l_t; the map of the answer, or of a sentence, is one backward
of the sum of the same target; per-token rows are one backward each on the same graph (cheaper on a CPU than vmap,
jacrev or a batch of copies, and ten times lighter than the copies). The token explained is the one that was
generated; the paper explains the argmax, and `Relevance.argmax` shows where they differ.
Gradient norm is the same backward pass read otherwise: ||dl_t / de_i||^2, never negative. It is not in the paper. An
embedding goes through a norm first, which takes its length out, so its product with the gradient says less about the
passage than the gradient's size does (bench/RESULTS.md).
Left out: relevance propagation (LRP), which registers as a method of its own (registry.py).
`torch.autograd.grad` only: `.backward()` would write into the shared model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import numpy as np

from engine.core.errors import AttributionError, CannotDo, ModelError
from engine.core.progress import Watch
from engine.core.values import Answer, Prompt, Value
from engine.methods.spans import Span, content_mask, span_masks
from engine.models.hooks import count_forwards
from engine.models.memory import check_fits, is_out_of_memory
from engine.models.protocols import LanguageModel, TokenPrompt, require

if TYPE_CHECKING:
    import torch


class Relevance(Value, frozen=True):
    """Signed relevance R_i of input position i; positive = pushes the target up.

    Inputs are the prompt's tokens, then the answer's tokens except the last. `by_span[s]` explains the sum of the
    target over the content tokens of `spans[s]`, `by_token[k]` the target of answer token `tokens[k]`. `target` is
    "logit", "log_probability" or, for methods without one, a name of their own. `values[t]` is the target of answer
    token t; `argmax[t]` the token id that the model would have chosen there (the papers explain that one; where it
    differs from the answer's the page says so). Both empty where a method does not compute them.
    """

    method: str
    model: str
    target: str
    spans: tuple[tuple[int, int], ...]
    by_span: tuple[tuple[float, ...], ...]
    tokens: tuple[int, ...] = ()
    by_token: tuple[tuple[float, ...], ...] = ()
    values: tuple[float, ...] = ()
    argmax: tuple[int, ...] = ()
    forwards: int = 0
    backwards: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    delta: float | None = None
    steps: float | None = None


Target = Literal["logit", "log_probability"]
INPUT_X_GRADIENT = "input x gradient"
GRADIENT_NORM = "gradient norm"
Form = Literal["product", "norm"]


@dataclass(frozen=True)
class Inputs:
    """Prompt and answer as one row of ids: position `first + t` predicts answer token t."""

    ids: tuple[int, ...]
    answer: tuple[int, ...]
    first: int

    @property
    def row(self) -> tuple[int, ...]:
        """The ids that the model reads: the last answer token predicts nothing that is asked for."""
        return self.ids + self.answer[:-1]


class Explained(TypedDict, total=False):
    """The targets of a method over input tokens: `spans` (default the whole answer) and the answer tokens `tokens`."""

    spans: Sequence[Span] | None
    tokens: Sequence[int]
    count_citation_markers: bool
    watch: Watch


Rows = Sequence[Sequence[float]]


class More(TypedDict, total=False):
    """The fields of `Relevance` that only some methods know."""

    values: tuple[float, ...]
    argmax: tuple[int, ...]
    backwards: int
    delta: float
    steps: float
    notes: tuple[str, ...]


def input_x_gradient(
    model: LanguageModel,
    prompt: Prompt,
    answer: Answer,
    *,
    target: Target = "logit",
    form: Form = "product",
    **explained: Unpack[Explained],
) -> Relevance:
    """Relevance of every input token for the spans and tokens that are explained.

    `form` "product" is the paper's e_i * dl / de_i; "norm" is ||dl / de_i||^2, whose unit is the target squared.
    One forward and len(spans) + len(tokens) backwards. Raises `CannotDo` for a model without gradients, `Cancelled`,
    `PromptTooLong`, `AttributionError` for an answer without content tokens or for logits that are not finite.
    """

    def rows(module: Any, inputs: Inputs, wanted: Sequence[Any], watch: Watch) -> tuple[Rows, More]:
        import torch

        embeddings = embed(module, inputs.row).requires_grad_(True)
        with torch.enable_grad():
            logits = answer_logits(module, embeddings, inputs)[0]  # (tokens, vocabulary)
            values = target_values(logits, inputs.answer, target)  # (tokens,)
        if not torch.isfinite(values).all():
            raise AttributionError("The model gave logits that are not finite. Load it in float32 or bfloat16.")
        found: list[tuple[float, ...]] = []
        for done, positions in enumerate(wanted):
            watch.step("backward passes", done, len(wanted))
            found.append(_row(values, positions, embeddings, form, keep=done + 1 < len(wanted)))
        watch.report("backward passes", len(wanted), len(wanted))
        argmax = tuple(logits.detach().argmax(-1).tolist())
        return found, {"values": tuple(values.detach().tolist()), "argmax": argmax, "backwards": len(found)}

    method, unit = (
        (INPUT_X_GRADIENT, target) if form == "product" else (GRADIENT_NORM, f"squared gradient of the {target}")
    )
    return relevance_by(rows, method, unit, model, prompt, answer, **explained)


def relevance_by(
    rows: Callable[[Any, Inputs, Sequence[Any], Watch], tuple[Rows, More]],
    method: str,
    unit: str,
    model: LanguageModel,
    prompt: Prompt,
    answer: Answer,
    spans: Sequence[Span] | None = None,
    tokens: Sequence[int] = (),
    count_citation_markers: bool = False,
    watch: Watch = Watch(),
) -> Relevance:
    """The value of a method over input tokens, with what it took.

    `rows` gets the module, the ids and the answer positions of each span and then of each token; it returns a row for
    each and further fields of the value.
    """
    require(model, "gradients")  # the capability that says: here is the module itself
    start = time.perf_counter()
    chosen = tuple(spans) if spans is not None else ((0, len(answer.text)),)
    masks = span_masks(answer, chosen, content_mask(answer, count_citation_markers=count_citation_markers))
    inputs = inputs_of(model, prompt, answer)
    wanted = [*(np.flatnonzero(mask) for mask in masks), *(np.array([t]) for t in tokens)]
    try:
        with count_forwards(model) as count, model.hold(watch) as module:  # type: ignore[attr-defined]
            found, more = rows(module, inputs, wanted, watch)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise ModelError(
            "The gradients of this prompt do not fit into memory. Use fewer or shorter passages, bfloat16, or "
            "occlusion."
        ) from error
    return Relevance(
        method=method,
        model=model.name,
        target=unit,
        spans=chosen,
        by_span=tuple(map(tuple, found[: len(chosen)])),
        tokens=tuple(tokens),
        by_token=tuple(map(tuple, found[len(chosen) :])),
        forwards=count.rows,
        seconds=time.perf_counter() - start,
        **more,
    )


def inputs_of(model: LanguageModel, prompt: Prompt, answer: Answer) -> Inputs:
    """Encode the prompt and refuse what does not fit into the window (`PromptTooLong`)."""
    coded: TokenPrompt = model.encode(prompt)
    window = getattr(model, "window", None)
    if window is not None:
        check_fits(coded, window, len(answer.tokens), model.name)
    return Inputs(ids=coded.ids, answer=tuple(token.id for token in answer.tokens), first=len(coded.ids) - 1)


def _row(
    values: torch.Tensor, positions: Any, embeddings: torch.Tensor, form: Form, *, keep: bool
) -> tuple[float, ...]:
    import torch

    if len(positions) == 0:
        return (0.0,) * embeddings.shape[1]
    total = values[torch.as_tensor(positions, device=values.device)].sum()
    (gradient,) = torch.autograd.grad(total, embeddings, retain_graph=keep)
    factor = gradient if form == "norm" else embeddings.detach()
    relevance = (factor.float() * gradient.float()).sum(-1)[0]
    return tuple(relevance.tolist())


def embed(module: Any, ids: Sequence[int]) -> torch.Tensor:
    """The embedding layer's output, detached, shape (1, len(ids), width)."""
    import torch

    layer = module.get_input_embeddings()
    if layer is None:
        raise CannotDo("This model has no input embeddings to take gradients of. Use occlusion instead.")
    with torch.no_grad():
        row = torch.tensor([list(ids)], device=layer.weight.device)
        embeddings: torch.Tensor = layer(row)
    return embeddings.detach()


def answer_logits(module: Any, embeddings: torch.Tensor, inputs: Inputs) -> torch.Tensor:
    """Logits of the positions that predict the answer, float32, shape (rows of embeddings, tokens, vocabulary)."""
    from engine.models.scoring import last_positions

    keep = last_positions(module, len(inputs.answer))
    logits: torch.Tensor = module(inputs_embeds=embeddings, use_cache=False, **keep).logits
    return logits[:, -len(inputs.answer) :].float()


def target_values(logits: torch.Tensor, answer: Sequence[int], target: Target) -> torch.Tensor:
    """The target of each answer token, shape (..., tokens): its logit, or its log-probability in nats."""
    import torch

    scores = logits.log_softmax(-1) if target == "log_probability" else logits
    index = torch.tensor(list(answer), device=logits.device).expand(logits.shape[:-1]).unsqueeze(-1)
    return scores.gather(-1, index).squeeze(-1)
