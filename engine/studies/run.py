"""A run: units handed to a pool, each row written as its unit ends, results drawn from the rows.

    DIR/config.toml    what was asked, word for word      DIR/cases/*.json   every unit as a case file
    DIR/run.json       what it ran on                     DIR/tables/        CSV, JSON, LaTeX, Markdown
    DIR/units.jsonl    a row a unit                       DIR/figures/       JSON

A run that was killed, cancelled or stopped for want of a server goes on with `resume`: what has a row is not done
again, and the results are those of a run that nothing disturbed.
"""

from __future__ import annotations

import lzma
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from engine.core.errors import BudgetSpent, Cancelled, GroundworkError, InputError, ServerError, raised_as
from engine.core.files import replace_file
from engine.core.progress import Watch
from engine.core.values import Value, decoded
from engine.models.server import Spent
from engine.studies.plan import Plan, sampling
from engine.studies.pools import Done, Lost, Pool, Stopped
from engine.studies.values import OUT_OF_MEMORY, Failure, Row, Unit

# units.jsonl: a row is appended and synced when its unit has ended. A last line without its line break was cut off: it
# is dropped, and its unit runs again.


class Journal:
    """The rows of a run on the disk. One process writes; anyone may read. Those of a shipped run are packed by xz."""

    def __init__(self, folder: Path) -> None:
        self.path, self.packed = folder / "units.jsonl", folder / "units.jsonl.xz"

    def rows(self) -> list[Row]:
        """The last complete row of each unit; raise `InputError` for a damaged line."""
        found: dict[Unit, Row] = {}
        whole, _, _ = self._read().rpartition(b"\n")
        for number, line in enumerate(whole.splitlines(), start=1):
            strange = f"Line {number} of {self.path} is not a row of this version"
            with raised_as(InputError, strange, "Start again in a new folder.", msgspec.MsgspecError):
                row = decoded(line, Row)
            found[row.unit] = row
        return list(found.values())

    def _read(self) -> bytes:
        if self.packed.exists():
            return lzma.decompress(self.packed.read_bytes())
        return self.path.read_bytes() if self.path.exists() else b""

    def mend(self) -> None:
        """Cut off a torn last line; before the first append."""
        data = self._read()
        torn = data.rpartition(b"\n")[2]
        if torn:
            with self.path.open("r+b") as file:
                file.truncate(len(data) - len(torn))
                os.fsync(file.fileno())

    def append(self, row: Row) -> None:
        """Write a row so that it is on the disk when this returns; raise `OSError` where it cannot be."""
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(row) + b"\n")
            file.flush()
            os.fsync(file.fileno())


def write_whole(path: Path, data: bytes) -> None:
    """Put a file of a run's folder in place whole (`replace_file`); raise `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, data)


TRIES = 3  # of a unit that loses its worker or its server; then it counts as failed
POLL = 0.2  # seconds between two looks at whether the user asked to pause or stop
# Failures that are not the unit's own: a resumed run tries these units again.
PASSING = ("WorkerLost", "ServerError", OUT_OF_MEMORY)
STOPPED: dict[str, type[GroundworkError]] = {"ServerError": ServerError, "BudgetSpent": BudgetSpent}


class Progress(Value, frozen=True):
    """How far a run is. `seconds` are of this session; `remaining` is None until a unit has ended in it."""

    done: int
    failed: int
    total: int
    seconds: float = 0.0
    remaining: float | None = None
    served: Spent = Spent()
    paused: bool = False


@dataclass(frozen=True)
class Control:
    """The controls of a run from another thread: `watch.cancel` stops it, `pause` holds back what has not begun."""

    watch: Watch = field(default_factory=Watch)
    pause: threading.Event = field(default_factory=threading.Event)
    tell: Callable[[Progress], None] = lambda progress: None


class Run:
    """The units that are left, and what became of those handed out."""

    def __init__(self, planned: Plan, folder: Path, control: Control) -> None:
        self.plan, self.folder, self.control = planned, folder, control
        self.journal = Journal(folder)
        self.journal.mend()
        known = set(planned.units)
        self.rows = {
            row.unit: row
            for row in self.journal.rows()
            if row.unit in known and (row.failure is None or row.failure.type not in PASSING)
        }
        self.waiting = deque(unit for unit in sampling(planned.units) if unit not in self.rows)
        self._running: set[Unit] = set()
        self._tries: Counter[Unit] = Counter()
        self._unserved: list[Unit] = []  # units that met a server error since the last one that ended
        self._stop: Stopped | None = None
        self._start, self._ended = time.monotonic(), set[Unit]()

    @property
    def served(self) -> Spent:
        """The use of served models by all rows, including earlier sessions."""
        return sum((row.served for row in self.rows.values()), Spent())

    def go(self, pool: Pool) -> list[Row]:
        """Run what is left; the rows of all units in the plan's order.

        Raises `Cancelled`, `ServerError`, `BudgetSpent`: what has a row is kept, and the run can be resumed. Units that
        are under way when the server or the budget ends are waited for, so that what they cost is not lost.
        """
        self._tell()
        while self._running or (self.waiting and self._stop is None):
            self.control.watch.step("units", len(self.rows), len(self.plan.units))
            if self._stop is None:
                self._hand_out(pool)
            outcome = pool.take(POLL)
            if outcome is not None:
                self._running.discard(outcome.unit)
            match outcome:
                case Done():
                    self._unserved.clear()
                    self._keep(outcome)
                case Lost(unit=unit):
                    self._again(unit, Failure(type="WorkerLost", message=f"Its worker process died {TRIES} times."))
                case Stopped():
                    self._stopped(outcome)
            self._tell()
        if self._stop is not None:
            kept = f"{len(self.rows)} of {len(self.plan.units)} units are saved."
            raise STOPPED[self._stop.kind](f"{self._stop.message} {kept}")
        return [self.rows[unit] for unit in self.plan.units]

    def _hand_out(self, pool: Pool) -> None:
        while self.waiting and len(self._running) < pool.size and not self.control.pause.is_set():
            unit = self.waiting.popleft()
            pool.give(unit, self.plan.examples[unit.example], self.plan.config.budget.less(self.served))
            self._running.add(unit)

    def _keep(self, done: Done) -> None:
        """The case file first: a row never names a case that is not there."""
        if done.case:
            write_whole(self.folder / "cases" / f"{done.row.case}.json", done.case.encode())
        self.journal.append(done.row)
        self.rows[done.unit] = done.row
        self._ended.add(done.unit)

    def _again(self, unit: Unit, failure: Failure) -> None:
        """Put a unit back at the end, or give it up."""
        self._tries[unit] += 1
        if self._tries[unit] < TRIES:
            self.waiting.append(unit)
        else:
            self._keep(Done(row=Row(unit=unit, state="failed", failure=failure)))

    def _stopped(self, outcome: Stopped) -> None:
        """A unit that did not end: the user's cancel, an empty budget, or a server that may come back."""
        if outcome.kind == "Cancelled":
            self.waiting.appendleft(outcome.unit)
            raise Cancelled(outcome.message)
        self._unserved.append(outcome.unit)
        gone = len(self._unserved) >= TRIES and (len(set(self._unserved)) > 1 or not self._ended)
        if outcome.kind == "BudgetSpent" or gone or self._stop is not None:
            self._stop = self._stop or outcome
            return
        self._again(outcome.unit, Failure(type=outcome.kind, message=outcome.message))

    def _tell(self) -> None:
        seconds = time.monotonic() - self._start
        self.control.tell(
            Progress(
                done=len(self.rows),
                failed=sum(row.state == "failed" for row in self.rows.values()),
                total=len(self.plan.units),
                seconds=seconds,
                remaining=remaining(seconds, self._ended, self.rows, self.plan.units),
                served=self.served,
                paused=self.control.pause.is_set(),
            )
        )


def remaining(seconds: float, ended: Collection[Unit], rows: Mapping[Unit, Row], units: Sequence[Unit]) -> float | None:
    """Seconds that the units without a row will take, from those that `ended` in so many; None where none has.

    A unit weighs what its method's units have taken so far: methods differ by far more than questions.
    """
    if not ended:
        return None
    taken: dict[str, list[float]] = {}
    for row in rows.values():
        taken.setdefault(row.unit.method, []).append(row.cost.seconds)
    means = {method: sum(found) / len(found) for method, found in taken.items()}
    usual = sum(means.values()) / len(means)
    weigh = sum(means.get(unit.method, usual) for unit in ended)
    left = [unit for unit in units if unit not in rows]
    if not weigh:
        return seconds / len(ended) * len(left)
    return seconds * sum(means.get(unit.method, usual) for unit in left) / weigh


def check_folder(folder: Path, resume: bool) -> None:
    """Refuse to mix two runs; raise `InputError` saying what to do."""
    begun = (folder / "run.json").exists()
    if begun and not resume:
        raise InputError(f"{folder} already contains a run. Resume it with --resume, or choose another folder.")
    if resume and not begun:
        raise InputError(f"{folder} does not contain a run to resume. Leave out --resume.")
