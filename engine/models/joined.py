"""Several rows' caches as one: what each row has read, padded on the left to the longest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def joined(caches: Sequence[Any]) -> Any:
    """One cache of all rows, made of one a row; the first is changed and returned.

    Keys and values are padded with zeros, which the mask must hide; a convolution's inputs and running states have one
    size for all. Raises `TypeError` for a cache, or a layer of one, that holds anything else.
    """
    from transformers import DynamicCache

    if any(type(cache) is not DynamicCache for cache in caches):
        raise TypeError("Only dynamic caches can be joined.")
    for layers in zip(*(cache.layers for cache in caches), strict=True):
        _join(layers)
    return caches[0]


def _join(layers: Sequence[Any]) -> None:
    """Put what all rows hold of a layer into the first row's."""
    from transformers import cache_utils

    first = layers[0]
    if type(first) not in (
        cache_utils.DynamicLayer,
        cache_utils.DynamicSlidingWindowLayer,
        cache_utils.LinearAttentionLayer,
        cache_utils.LinearAttentionAndFullAttentionLayer,
    ):
        raise TypeError(f"A {type(first).__name__} cannot be joined.")
    if isinstance(first, cache_utils.DynamicLayer):
        first.keys, first.values = (_padded([getattr(one, name) for one in layers]) for name in ("keys", "values"))
    if isinstance(first, cache_utils.DynamicSlidingWindowLayer):
        first.cumulative_length = max(one.cumulative_length for one in layers)
    for name in ("conv_states", "recurrent_states"):
        states = [getattr(one, name, {}) for one in layers]
        for place in states[0]:
            if states[0][place] is not None:
                states[0][place] = torch.cat([of[place] for of in states])


def _padded(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """Tensors of shape (1, heads, positions, width) as one batch, zeros before the shorter ones."""
    longest = max(row.shape[-2] for row in rows)
    return torch.cat([torch.nn.functional.pad(row, (0, 0, longest - row.shape[-2], 0)) for row in rows])
