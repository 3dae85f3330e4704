"""A run that is asked to stop when it has come to a certain place."""

from __future__ import annotations

from engine.core.progress import Watch


def stop_at(done: int, stage: str = "") -> Watch:
    """A watch that asks to stop as soon as a stage whose name begins with `stage` has done `done`."""

    def report(name: str, reached: int, total: int) -> None:
        if name.startswith(stage) and reached >= done:
            watch.cancel.set()

    watch = Watch(report=report)
    return watch
