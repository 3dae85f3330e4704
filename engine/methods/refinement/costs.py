"""The cost of a condition (grounded refinement, section 4.7.1), counted at the model, and its time limit.

The paper estimates in units of one answer's forward pass; here passes, token positions and seconds are counted. Left
out: an estimate for a model that cannot be counted, for example a served one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from engine.methods.refinement.values import Cost
from engine.models.hooks import ForwardCount, count_forwards


class Meter:
    """Holds the cost of a metered block once the block has ended, however it ended."""

    cost = Cost()


@contextmanager
def metered(model: Any) -> Iterator[Meter]:
    """Count forwards and token positions of `model` and seconds inside the block.

    Known for a model that torch runs and one with its own count, not for a served one or where llama.cpp writes.
    """
    meter, start = Meter(), time.perf_counter()
    hooked = hasattr(getattr(model, "module", model), "register_forward_pre_hook")
    countable = (hooked or hasattr(model, "forwards")) and getattr(model, "llama_cpp", None) is None
    counter: AbstractContextManager[ForwardCount | None] = count_forwards(model) if countable else nullcontext()
    count: ForwardCount | None = None
    try:
        with counter as count:
            yield meter
    finally:
        meter.cost = Cost(
            forwards=count.forwards if count else None,
            tokens=count.tokens if count else None,
            seconds=time.perf_counter() - start + (count.seconds if count else 0.0),
        )


class Deadline(threading.Event):
    """Set when the user cancels, and by itself after `seconds`; `expired` tells the two apart."""

    def __init__(self, parent: threading.Event, seconds: float, clock: Callable[[], float]) -> None:
        super().__init__()
        self._parent, self._clock, self._end = parent, clock, clock() + seconds

    def is_set(self) -> bool:
        """Whether to stop."""
        return self._parent.is_set() or self.expired

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the user's cancel, no longer than until the time is up."""
        left = max(0.0, self._end - self._clock())
        self._parent.wait(left if timeout is None else min(timeout, left))
        return self.is_set()

    @property
    def expired(self) -> bool:
        """Whether the time is up and the user did not cancel."""
        return not self._parent.is_set() and self._clock() >= self._end
