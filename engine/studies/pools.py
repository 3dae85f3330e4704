"""Where units run: threads of this process, processes of this machine, or a Ray cluster, behind one small protocol.

A pool holds at most `size` tasks. `give` hands one over, `take` waits for the next that ended. A worker that dies
comes out as `Lost` and is replaced; what to do about its unit is the run's business.
"""

from __future__ import annotations

import queue
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Protocol

from engine.core.progress import Watch
from engine.models.registry import SERVED
from engine.studies.config import Config, Limit
from engine.studies.example import Example
from engine.studies.perform import Done, Outcome, Performer, Stopped, UnitTask
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
    """Units in this process: `concurrency` at a time with a served model, `batch` with a local one that can.

    A local model writes what units ask for at the same time in one batch (together.py); one that cannot, and units that
    ask for no text (`writes`), run one at a time.
    """

    def __init__(
        self, config: Config, watch: Watch, left: Limit, tools: StudyTools | None = None, writes: bool = False
    ) -> None:
        self._performer = Performer(config, tools)
        self._performer.tools.allow(left)  # one budget for all threads, and for the whole run
        self.size = max(1, config.concurrency) if config.model.startswith(SERVED) else 1
        local = writes and config.batch > 1 and self.size == 1 and not self._performer.tools.reads
        if local and self._performer.tools.write_together(config.batch):
            self.size = config.batch
        self._watch = watch
        self._ended: queue.SimpleQueue[Future[Done | Stopped]] = queue.SimpleQueue()
        self._threads = ThreadPoolExecutor(self.size, thread_name_prefix="evaluate")

    def give(self, unit: Unit, example: Example, left: Limit) -> None:
        """Start a unit in a free thread."""
        task = UnitTask(unit=unit, example=example)
        perform = partial(self._performer.perform, task, self._watch)
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
