"""A run that is asked to stop when it has come to a certain place, and what it yielded before."""

from __future__ import annotations

import pytest

from engine.core.errors import Cancelled
from engine.core.progress import Watch


def stop_at(done: int, stage: str = "") -> Watch:
    """A watch that asks to stop as soon as a stage whose name begins with `stage` has done `done`."""

    def report(name: str, reached: int, total: int) -> None:
        if name.startswith(stage) and reached >= done:
            watch.cancel.set()

    watch = Watch(report=report)
    return watch


def before_the_stop(growing):
    """The values that a run yields before it is stopped, in order."""
    found = []
    with pytest.raises(Cancelled):
        for value in growing:
            found.append(value)
    return found
