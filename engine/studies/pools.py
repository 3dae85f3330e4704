"""Where units run: threads of this process, processes of this machine, or a Ray cluster, behind one small protocol.

A pool holds at most `size` tasks. `give` hands one over, `take` waits for the next that ended. A worker that dies
comes out as `Lost` and is replaced; what to do about its unit is the run's business.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Protocol

from engine.core.progress import Watch
from engine.models.registry import SERVED
from engine.studies.ahead import LOOK, Todo
from engine.studies.config import Config, Limit
from engine.studies.example import Example
from engine.studies.perform import (
    Done,
    Outcome,
    Performer,
    Stopped,
    UnitTask,
)
from engine.studies.tools import StudyTools
from engine.studies.values import Unit


class Pool(Protocol):
    """Runs tasks, at most `size` at a time."""

    size: int

    def give(self, unit: Unit, example: Example, left: Limit) -> None:
        """Start a unit; `left` is what the whole run may still take of served models."""
        ...

    def take(self, seconds: float) -> Outcome | None:
        """The next that ended, None where none did in time."""
        ...

    def close(self) -> None:
        """End the workers; what they have not finished is lost."""
        ...


class Threads:
    """Units in this process: one at a time with a local model, `concurrency` at a time with a served one.

    `following` names the units that come next: a local model writes some of their answers together.
    """

    def __init__(
        self,
        config: Config,
        watch: Watch,
        left: Limit,
        tools: StudyTools | None = None,
        following: Callable[[int], Sequence[Todo]] = lambda count: (),
    ) -> None:
        served = config.model.startswith(SERVED)
        self.size = max(1, config.concurrency) if served else 1
        self._looks = LOOK * config.batch if config.batch > 1 and not served else 0
        self._following = following
        self._performer = Performer(config, tools)
        self._performer.tools.allow(left)  # one budget for all threads, and for the whole run
        self._watch = watch
        self._ended: queue.SimpleQueue[Future[Done | Stopped]] = queue.SimpleQueue()
        self._threads = ThreadPoolExecutor(self.size, thread_name_prefix="evaluate")

    def give(self, unit: Unit, example: Example, left: Limit) -> None:
        """Start a unit in a free thread."""
        task = UnitTask(unit=unit, example=example)
        perform = partial(self._performer.perform, task, self._watch, self._following(self._looks))
        self._threads.submit(perform).add_done_callback(lambda ended: self._ended.put(ended))

    def take(self, seconds: float) -> Outcome | None:
        """The next that ended; raises what a unit must not swallow."""
        try:
            return self._ended.get(timeout=seconds).result()
        except queue.Empty:
            return None

    def close(self) -> None:
        """Wait for what runs: it looks at the watch, and stops soon where the user asked to."""
        self._threads.shutdown(wait=True, cancel_futures=True)


def task_of(unit: Unit, example: Example, left: Limit, size: int) -> UnitTask:
    """A task for a worker with a budget of its own: an equal share of what is left."""
    return UnitTask(unit=unit, example=example, allowance=left.share(size))
