"""Where units run: threads of this process, processes of this machine, or a Ray cluster, each with the same methods.

A unit comes in with its example and out as the row and the case file that the run will write. A pool holds at most
`size` units. `give` hands one over, with what the whole run may still take of served models, in equal shares for the
workers. `take` waits for the next that ended, None where none did in time. `close` ends the workers. A worker that dies
comes out as `Lost` and is replaced; what to do about its unit is the run's business.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from engine.cases.case_file import write_case_file
from engine.core.errors import BudgetSpent, Cancelled, GroundworkError, ServerError
from engine.core.progress import Watch
from engine.core.values import Value
from engine.models.cluster import Cluster
from engine.models.memory import is_out_of_memory
from engine.studies.catalogue import study_of
from engine.studies.config import Config, Limit
from engine.studies.example import Example
from engine.studies.tools import StudyTools
from engine.studies.values import OUT_OF_MEMORY, Failure, Found, Row, Unit

STOPS = (Cancelled, ServerError, BudgetSpent)  # the unit is not at fault: it is run again when the run goes on


class Done(Value, frozen=True):
    """A unit that ended, well or badly: its row and the text of its case file (empty: it has none)."""

    row: Row
    case: str = ""

    @property
    def unit(self) -> Unit:
        """The row's."""
        return self.row.unit


class Stopped(Value, frozen=True):
    """A unit that did not end for a reason that is not its own; `kind` is the error's type."""

    unit: Unit
    kind: str
    message: str


class Lost(Value, frozen=True):
    """A unit whose worker went away."""

    unit: Unit


Outcome = Done | Stopped | Lost


class Performer:
    """Runs the units of one config in this process, with the models loaded once."""

    def __init__(self, config: Config, tools: StudyTools | None = None) -> None:
        self.study = study_of(config.study)
        self.tools = tools or StudyTools(config)

    def within_allowance(self, unit: Unit, example: Example, allowance: Limit) -> Done | Stopped:
        """Run a unit that has a budget of its own: what it may take of served models."""
        self.tools.allow(allowance)
        return self.perform(unit, example, Watch())

    def perform(self, unit: Unit, example: Example, watch: Watch) -> Done | Stopped:
        """Run a unit. An error of the unit's own is its row; one that is not stops it."""
        before = self.tools.budget.mine
        try:
            done = self._done(unit, self.study.run(self.tools, unit, example, watch))
        except STOPS as error:
            return Stopped(unit=unit, kind=type(error).__name__, message=str(error))
        except Exception as error:  # one example must not end a run of hours: it is shown and counted as failed
            known = isinstance(error, GroundworkError)
            kind = OUT_OF_MEMORY if is_out_of_memory(error) else type(error).__name__
            failure = Failure(type=kind, message=str(error) if known else f"Unexpected: {error}")
            done = Done(row=Row(unit=unit, state="failed", failure=failure))
        return replace(done, row=replace(done.row, served=self.tools.budget.mine - before))

    def _done(self, unit: Unit, found: Found) -> Done:
        """A unit with its row and case file; raises what `write_case_file` does, such as for a score that is NaN."""
        name = f"{self.study.name}-{unit.key}"
        case = replace(found.case, id=name, tags=(*found.case.tags, self.study.name)) if found.case else None
        kept = {field: getattr(found, field) for field in ("values", "missing", "cost", "unparsed")}
        row = Row(unit=unit, state="done", case=name if case else "", **kept)
        return Done(row=row, case=write_case_file(case).decode() if case else "")


def at_once(config: Config, writes: bool) -> int:
    """Units at a time in one process: `concurrency` with a served model, `batch` with a local one that `writes`."""
    if config.served:
        return max(1, config.concurrency)
    return max(1, config.batch) if writes and not config.reads else 1


class Threads:
    """Units in this process.

    A local model writes what units ask for at the same time in one batch (together.py); one that cannot, and units that
    ask for no text (`writes`), run one at a time.
    """

    def __init__(
        self, config: Config, watch: Watch, left: Limit, tools: StudyTools | None = None, writes: bool = False
    ) -> None:
        self._performer = Performer(config, tools)
        self._performer.tools.allow(left)  # one budget for all threads, and for the whole run
        self.size = at_once(config, writes)
        local = self.size > 1 and not config.served
        if local and not self._performer.tools.write_together(self.size):
            self.size = 1
        self._watch = watch
        self._ended: queue.SimpleQueue[Future[Done | Stopped]] = queue.SimpleQueue()
        self._threads = ThreadPoolExecutor(self.size, thread_name_prefix="evaluate")

    def give(self, unit: Unit, example: Example, left: Limit) -> None:
        """Start a unit in a free thread."""
        started = self._threads.submit(self._performer.perform, unit, example, self._watch)
        started.add_done_callback(self._ended.put)

    def take(self, seconds: float) -> Outcome | None:
        """The next that ended; raises what a unit must not swallow."""
        try:
            return self._ended.get(timeout=seconds).result()
        except queue.Empty:
            return None

    def close(self) -> None:
        """Wait for what runs: it looks at the watch, and stops soon where the user asked to."""
        self._threads.shutdown(wait=True, cancel_futures=True)


# Worker processes on this machine: each has its own models, takes one unit at a time, and may die without harm.

IDLE_DEATHS = 3  # workers in a row that die without having finished anything: then it is not the units' fault
SPAWN = multiprocessing.get_context("spawn")  # a fork would copy locks that other threads hold


@dataclass
class Worker:
    """A process, the connection to it, and the unit that it has."""

    process: BaseProcess
    connection: Connection
    unit: Unit | None = None


def work(config: Config, tasks: Connection, threads: int, log: Path) -> None:
    """Run units until the other end is gone, even if it was killed; whatever this process prints goes to `log`."""
    os.environ["OMP_NUM_THREADS"] = str(threads)  # read when torch is imported
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    performer = Performer(config)
    with contextlib.suppress(EOFError):
        while True:
            tasks.send(performer.within_allowance(*tasks.recv()))


class Processes:
    """A pool of worker processes. Their messages go to workers.log in the run's folder."""

    def __init__(self, config: Config, size: int, folder: Path) -> None:
        self.size = size
        self._config, self._log = config, folder / "workers.log"
        self._idle_deaths = 0
        self._workers = [self._start() for _ in range(size)]

    def _start(self) -> Worker:
        ours, theirs = SPAWN.Pipe()
        threads = max(1, (os.cpu_count() or 1) // self.size)
        process = SPAWN.Process(target=work, args=(self._config, theirs, threads, self._log), daemon=True)
        process.start()
        theirs.close()
        return Worker(process, ours)

    def give(self, unit: Unit, example: Example, left: Limit) -> None:
        """Hand a unit to a free worker."""
        worker = next(worker for worker in self._workers if worker.unit is None)
        worker.unit = unit
        with contextlib.suppress(OSError):  # it is dead: `take` finds its connection closed
            worker.connection.send((unit, example, left.share(self.size)))

    def take(self, seconds: float) -> Outcome | None:
        """The next that ended; a dead worker is replaced at once."""
        for connection in wait([worker.connection for worker in self._workers], seconds)[:1]:
            place, worker = next((i, w) for i, w in enumerate(self._workers) if w.connection is connection)
            try:
                outcome: Outcome = worker.connection.recv()
            except (EOFError, OSError):
                self._idle_deaths += 1
                if self._idle_deaths > IDLE_DEATHS * self.size:
                    raise GroundworkError(
                        "Worker processes die before they finish anything. "
                        f"Read {self._log}, correct the cause, then resume."
                    ) from None
                self._workers[place] = self._start()
                return Lost(unit=worker.unit) if worker.unit else None
            worker.unit, self._idle_deaths = None, 0
            return outcome
        return None

    def close(self) -> None:
        """End all workers at once; their units run again when the run resumes."""
        for worker in self._workers:
            worker.process.kill()
            worker.process.join()
            worker.connection.close()


# A Ray cluster (`evaluate --on ray`; engine/models/cluster.py says what each node needs). Rows and case files come back
# to the process that started the run, which alone writes.


class RayPool:
    """A pool of Ray actors; one that dies is replaced, on whatever node has room. `free` are those without a unit."""

    def __init__(self, config: Config, size: int) -> None:
        self.size, self._cluster = size, Cluster(size)
        self._start = partial(self._cluster.start, Performer, config)
        self.free = [self._start() for _ in range(size)]
        self._running: dict[Any, tuple[Any, Unit]] = {}

    def give(self, unit: Unit, example: Example, left: Limit) -> None:
        """Hand a unit to a free actor."""
        actor = self.free.pop()
        self._running[actor.within_allowance.remote(unit, example, left.share(self.size))] = (actor, unit)

    def take(self, seconds: float) -> Outcome | None:
        """The next that ended; a dead actor is replaced at once."""
        ray = self._cluster.ray
        if not self._running:  # Ray waits for something, never for nothing: the run is paused
            time.sleep(seconds)
            return None
        ended, _ = ray.wait(list(self._running), timeout=seconds)
        if not ended:
            return None
        actor, unit = self._running.pop(ended[0])
        try:
            said: Done | Stopped = ray.get(ended[0])
        except ray.exceptions.RayActorError:
            self.free.append(self._start())
            return Lost(unit=unit)
        self.free.append(actor)
        return said

    def close(self) -> None:
        """Let the actors go, and the cluster too where it was started here."""
        self._cluster.close([*self.free, *(actor for actor, _ in self._running.values())])


Pool = Threads | Processes | RayPool
