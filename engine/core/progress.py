"""Progress and cancellation of one run, passed down to whatever takes long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from engine.core.errors import Cancelled

Report = Callable[[str, int, int], None]
Tell = Callable[[Any], None]
OnText = Callable[[str], None]  # gets a text as it grows, from its beginning
T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True)
class Watch:
    """The receiver of a long computation's progress; it also says whether to continue.

    `report(stage, done, total)` is called between batches, `text` with what is being written so far (None: nobody
    reads along), `case` with the case as it was just saved, or as it would be saved by a stop; `cancel` is set from
    another thread.
    """

    report: Report = lambda stage, done, total: None
    cancel: threading.Event = field(default_factory=threading.Event)
    text: OnText | None = None
    case: Tell = lambda case: None

    def step(self, stage: str, done: int = 0, total: int = 0) -> None:
        """Report, then raise `Cancelled` if the user asked to stop."""
        self.report(stage, done, total)
        if self.cancel.is_set():
            raise Cancelled(f"Stopped during {stage}. Finished parts are kept.")

    def part(self, before: int, total: int) -> Watch:
        """A watch that reports a part's progress as that of the whole, `before` being what was done before it."""
        told = self.report
        return Watch(lambda stage, done, most: told(stage, before + done, max(total, before + most)), self.cancel)


def whole(grow: Callable[P, Iterable[T]]) -> Callable[P, T]:
    """The same computation without its growth: a function that returns the last value."""

    @wraps(grow)
    def ended(*args: P.args, **options: P.kwargs) -> T:
        return last(grow(*args, **options))

    return ended


def last(growing: Iterable[T]) -> T:
    """The whole value of a computation that yields its value as it grows; at least one must come.

    >>> last(iter(["one", "one two"]))
    'one two'
    """
    *_, value = growing
    return value
