"""A model's numbers without its own rounding: the same weights in float64."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from engine.models.eager import SHARE, summed_otherwise
from engine.models.memory import free_memory


@contextmanager
def computed_otherwise(model: Any, tokens: int) -> Iterator[Any]:
    """The model in another arithmetic, for rows of up to `tokens`: what its numbers differ by is rounding.

    In float64 where there is memory for it, else by another order of sums, gradients included; a model without a
    module as it is.
    """
    twin = in_double(model)
    if twin is not None:
        yield twin
        return
    with summed_otherwise(model, tokens, graph=True):
        yield model


def in_double(model: Any) -> Any | None:
    """A copy of the model in float64; None without a module, or where the copy has no place.

    Its distance from the model's own numbers is their rounding, whatever processor they come from.
    """
    if not hasattr(model, "module"):
        return None
    with model.hold() as module:
        place = module.device.type
        size = 8 * sum(parameter.numel() for parameter in module.parameters())
        fixed = place == "mps" or getattr(module, "is_quantized", False)  # neither goes into float64
        if fixed or size > SHARE * free_memory(place):
            return None
        twin = copy.copy(model)
        twin.module = copy.deepcopy(module).double()
    return twin
