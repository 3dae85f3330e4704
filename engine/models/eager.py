"""Eager attention: it shows the attention weights, and it sums in another order than the fused kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from engine.models.memory import free_memory

SHARE = 0.25  # of the free memory that the weights of one layer may take


@contextmanager
def eager_attention(module: Any) -> Iterator[None]:
    """Attention weights can be had from the eager implementation only; put the old one back afterwards."""
    before = module.config._attn_implementation
    module.set_attn_implementation("eager")
    try:
        yield
    finally:
        module.set_attn_implementation(before)


@contextmanager
def summed_otherwise(model: Any, tokens: int, *, graph: bool = False) -> Iterator[None]:
    """The same quantities by another order of sums, for rows of up to `tokens`: what differs is rounding.

    A model without a module, or without the memory for a layer's attention weights, stays as it is. `graph`: the
    weights of every layer are kept, for gradients.
    """
    if not hasattr(model, "module"):
        yield
        return
    with model.hold() as module:
        layers = int(module.config.get_text_config().num_hidden_layers) if graph else 1
        if layers * weight_bytes(module.config, tokens) > SHARE * free_memory(module.device.type):
            yield
            return
        with eager_attention(module):
            yield


def weight_bytes(config: Any, tokens: int) -> int:
    """Bytes of one layer's attention weights for a row of `tokens`, and of the float32 softmax they come from."""
    return 12 * int(config.get_text_config().num_attention_heads) * tokens**2
