"""Progress and cancellation of one run, passed down to whatever takes long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.core.errors import Cancelled

Report = Callable[[str, int, int], None]


def _silent(stage: str, done: int, total: int) -> None:
    """The report of a run that nobody watches."""


@dataclass(frozen=True)
class Watch:
    """What a long computation reports to, and asks whether to go on.

    `report(stage, done, total)` is called between batches; `cancel` is set from another thread.
    """

    report: Report = _silent
    cancel: threading.Event = field(default_factory=threading.Event)

    def step(self, stage: str, done: int = 0, total: int = 0) -> None:
        """Report, then raise `Cancelled` if the user asked to stop."""
        self.report(stage, done, total)
        if self.cancel.is_set():
            raise Cancelled(f"Stopped during {stage}. What was finished is kept.")
