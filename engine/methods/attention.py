"""Value-weighted attention: sum over layers and heads of attention(t, i) x ||value_i|| (Kobayashi et al., 2020).

Cheap, and never negative. The prompt goes through once with a cache; only the answer's positions are run with attention
weights, since weights of a whole long prompt would fill the memory. Layers without attention (short convolutions) add
nothing. Left out: the output projection and the residual stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from engine.core.errors import CannotDo
from engine.core.progress import Watch
from engine.core.values import Answer, Prompt
from engine.methods.input_x_gradient import Explained, Inputs, More, Relevance, Rows, relevance_by
from engine.methods.spans import Floats
from engine.models.memory import eager_attention
from engine.models.protocols import LanguageModel


def value_weighted_attention(
    model: LanguageModel, prompt: Prompt, answer: Answer, **explained: Unpack[Explained]
) -> Relevance:
    """Relevance >= 0 of every input token, summed over the tokens of a span. Raises `CannotDo`, `PromptTooLong`."""
    method, unit = "value-weighted attention", "attention x value norm"
    return relevance_by(_attention_rows, method, unit, model, prompt, answer, **explained)


def _attention_rows(module: Any, inputs: Inputs, wanted: Sequence[Any], watch: Watch) -> tuple[Rows, More]:
    """Value-weighted attention to every input, summed over each of the wanted lists of answer positions."""
    import torch
    from transformers import DynamicCache

    from engine.models.scoring import last_logits, layer_kinds, row_of

    rows, count = np.zeros((len(inputs.answer), len(inputs.row))), len(inputs.answer)  # rows: (tokens, inputs)
    plain = layer_kinds(module) <= {"full_attention", "sliding_attention"}
    queries = row_of(module, inputs.row[inputs.first :])  # (1, tokens)
    with torch.no_grad(), eager_attention(module):
        # A cache of its own keeps every key, also where a layer's window is shorter; None is the model's own kind.
        cache = DynamicCache() if plain else None
        if inputs.first:
            cache = last_logits(module, row_of(module, inputs.ids[: inputs.first]), cache)[1]
        # One by one where a layer keeps a running state instead of keys and values.
        size = count if plain else 1
        for step in (slice(i, i + size) for i in range(0, count, size)):
            out = module(input_ids=queries[:, step], past_key_values=cache, use_cache=True, output_attentions=True)
            cache = out.past_key_values
            weighted = _weighted(out.attentions, cache)
            rows[step, : weighted.shape[1]] = weighted
    return [rows[positions].sum(axis=0).tolist() for positions in wanted], {}


def _weighted(attentions: Sequence[Any], cache: Any) -> Floats:
    """Sum over layers and heads for the newest positions, shape (positions, keys so far)."""
    layers = [layer for layer in cache.layers if getattr(layer, "values", None) is not None]
    weights = [weight for weight in attentions if weight is not None]
    if not weights or len(weights) != len(layers):
        raise CannotDo("This model does not provide attention weights. Use input x gradient or occlusion instead.")
    total = np.zeros(tuple(weights[0].shape[-2:]))
    for weight, layer in zip(weights, layers, strict=True):
        norms = layer.values.float().norm(dim=-1)[0]  # (key heads, keys)
        norms = norms.repeat_interleave(weight.shape[1] // norms.shape[0], dim=0)  # (heads, keys)
        total += (weight[0].float() * norms[:, None]).sum(0).cpu().numpy()
    return total
