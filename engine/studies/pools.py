"""Where units run: threads of this process, processes of this machine, or a Ray cluster, behind one small protocol.

A pool holds at most `size` tasks. `give` hands one over, `take` waits for the next that ended. A worker that dies
comes out as `Lost` and is replaced; what to do about its unit is the run's business.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO, Protocol

import msgspec

from engine.core.errors import GroundworkError
from engine.core.files import ROOT
from engine.core.progress import Watch
from engine.core.values import decoded
from engine.models.registry import SERVED
from engine.studies.config import Config, Limit
from engine.studies.example import Example
from engine.studies.perform import Done, Lost, Outcome, Performer, Stopped, UnitTask
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


# Worker processes on this machine: each has its own models, takes one task at a time, and may die without harm.

IDLE_DEATHS = 3  # workers in a row that die without having finished anything: then it is not the units' fault


class Worker:
    """One process and the task that it has. Its messages go into `said`, None when it has ended."""

    def __init__(self, config: Config, threads: int, log: IO[bytes], said: queue.SimpleQueue[tuple[Worker, Said]]):
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "engine.studies.perform"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": path},
        )
        self.task: UnitTask | None = None
        self._said = said
        self._write(config)
        threading.Thread(target=self._read, daemon=True).start()

    def give(self, task: UnitTask) -> None:
        """Hand over a task."""
        self.task = task
        self._write(task)

    def _write(self, value: Config | UnitTask) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # it is dead: the reading side says so
            self.process.stdin.write(msgspec.json.encode(value) + b"\n")
            self.process.stdin.flush()

    def _read(self) -> None:
        """Pass on what it says until it ends; a line that its death cut off says nothing."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith(b"\n"):
                self._said.put((self, line))
        self._said.put((self, None))

    def end(self) -> None:
        """Kill it and wait until it is gone."""
        self.process.kill()
        self.process.wait()


Said = bytes | None


class Processes:
    """A pool of worker processes; `pids` are those that live. Their messages go to workers.log in the run's folder."""

    def __init__(self, config: Config, size: int, folder: Path) -> None:
        self.size = size
        self._config = config
        self._said: queue.SimpleQueue[tuple[Worker, Said]] = queue.SimpleQueue()
        self._log = (folder / "workers.log").open("ab")
        self._idle_deaths = 0
        self._workers = [self._start() for _ in range(size)]

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes of the workers."""
        return tuple(worker.process.pid for worker in self._workers)

    def _start(self) -> Worker:
        return Worker(self._config, max(1, (os.cpu_count() or 1) // self.size), self._log, self._said)

    def give(self, unit: Unit, example: Example, left: Limit) -> None:
        """Hand a unit to a free worker."""
        worker = next(worker for worker in self._workers if worker.task is None)
        worker.give(task_of(unit, example, left, self.size))

    def take(self, seconds: float) -> Outcome | None:
        """The next that ended; a dead worker is replaced at once."""
        try:
            worker, said = self._said.get(timeout=seconds)
        except queue.Empty:
            return None
        task, worker.task = worker.task, None
        if said is not None:
            self._idle_deaths = 0
            return decoded(said, Done | Stopped)
        self._workers[self._workers.index(worker)] = self._replaced()
        return Lost(unit=task.unit) if task is not None else None

    def _replaced(self) -> Worker:
        self._idle_deaths += 1
        if self._idle_deaths > IDLE_DEATHS * self.size:
            raise GroundworkError(
                f"Worker processes die before they finish anything. Read {Path(self._log.name)}, correct the cause, "
                f"then resume."
            )
        return self._start()

    def close(self) -> None:
        """End all workers at once; their units run again when the run resumes."""
        for worker in self._workers:
            worker.end()
        self._log.close()
