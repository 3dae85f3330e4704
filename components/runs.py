"""Long work in worker threads: what it reports, how it is stopped, what came of it, who waits for whom.

A page starts a run in a lane, keeps it in the session, and polls it from a fragment; the thread never touches
Streamlit.
"""

from __future__ import annotations

import heapq
import logging
import statistics
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from engine.core.errors import Cancelled, GroundworkError
from engine.core.progress import Watch
from engine.core.text import about
from engine.core.values import Case

T = TypeVar("T")
_TOLD_AFTER = 10.0  # seconds in a stage, before which its pace says little


@dataclass(eq=False)
class Run(Generic[T]):
    """One piece of long work. The worker writes, the page reads; each field is replaced whole, never edited.

    `entered` is when the stage began, by the clock that only runs forward, and what was done then.

    `running` changes at any moment; `ended` only where a page begins to be drawn (`see`). A page goes by `ended`: what
    ends while the page is drawn would else be running for its first half and over for its second, and what it wrote
    would be looked for in a case that was read too early. What polls goes by `running`.
    """

    label: str = ""
    stage: str = ""
    done: int = 0
    total: int = 0
    text: str = ""
    case: Case | None = None
    watch: Watch = field(default_factory=Watch)
    future: Future[T] | None = None
    lane: Lane | None = None
    begun: float | None = None
    entered: tuple[float, int] | None = None
    ended: bool = False

    @property
    def running(self) -> bool:
        """Whether the worker is still at it, or waits for a thread."""
        return self.future is not None and not self.future.done()

    def see(self) -> None:
        """Note whether it has ended; called before a page reads anything that runs write."""
        self.ended = self.future is not None and self.future.done()

    @property
    def share(self) -> float:
        """How much is done, 0 to 1; 0 where nobody has counted yet."""
        return min(1.0, self.done / self.total) if self.total else 0.0

    def place(self, before: str) -> str:
        """The place among those that wait, or the stage with its counts; `before` is said until there is a stage.

        >>> Run(stage="reading", done=1200, total=3000).place("starting"), Run().place("starting")
        ('reading 1,200 of 3,000', 'starting')
        """
        stage = self.waiting or self.stage or before
        left = self.left(time.monotonic())
        more = f", about {about(left)} left" if left else ""
        return f"{stage} {self.done:,} of {self.total:,}{more}" if self.total else stage

    def left(self, now: float) -> float | None:
        """The seconds that the stage may still take at its pace so far; None until that can be told.

        >>> Run(done=30, total=90, entered=(0.0, 0)).left(60.0), Run(done=2, total=90, entered=(0.0, 0)).left(4.0)
        (120.0, None)
        """
        if self.entered is None:
            return None
        gone, done = now - self.entered[0], self.done - self.entered[1]
        return gone / done * (self.total - self.done) if done > 0 and gone >= _TOLD_AFTER else None

    @property
    def waiting(self) -> str:
        """The place in the lane and the expected wait, in words; empty once the work has begun."""
        return self.lane.said_of(self) if self.lane is not None and self.begun is None and self.running else ""

    @property
    def cancelling(self) -> bool:
        """Whether the user has asked it to stop."""
        return self.watch.cancel.is_set()

    @property
    def problem(self) -> str | None:
        """The message for a run that ended without a result."""
        if self.future is None or self.running:
            return None
        if self.future.cancelled():
            return "Stopped before it began."
        error = self.future.exception()
        if error is None:
            return None
        if isinstance(error, GroundworkError):
            return str(error)
        return (
            f"An unexpected error stopped this run ({type(error).__name__}). Finished parts are kept. See the app's "
            f"terminal for details."
        )

    @property
    def was_cancelled(self) -> bool:
        """Whether it ended because the user stopped it."""
        if self.future is None or not self.future.done():
            return False
        return self.future.cancelled() or isinstance(self.future.exception(), Cancelled)

    def stop(self) -> None:
        """Ask the worker to stop at its next batch; what still waits for its turn is over at once."""
        self.watch.cancel.set()
        if self.future is not None:
            self.future.cancel()


class Shared:
    """A run that another session began: all is the run's own but `ended`, since each session draws its page by itself.

    A session that was loaded anew is another one, too.
    """

    def __init__(self, run: Run[Any]) -> None:
        self._run, self.ended = run, False

    def see(self) -> None:
        """Note whether it has ended; called before a page reads anything that runs write."""
        self.ended = not self._run.running

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)


class Lane:
    """Threads that take runs in the order in which they were asked for, and how long runs have taken.

    Short work has a lane of its own, so that it does not wait behind long work.
    """

    def __init__(self, name: str, threads: int = 1) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._size = threads
        self._runs: tuple[Run[Any], ...] = ()
        self._order = threading.Lock()  # sessions start runs at the same time
        self._took: dict[str, deque[float]] = defaultdict(partial(deque, maxlen=9))

    def start(self, work: Callable[[Run[T]], T], label: str = "") -> Run[T]:
        """Begin `work` when its turn comes; it is given the run to report to. Runs of one label take about as long."""
        run: Run[T] = Run(label=label, lane=self)

        def report(stage: str, done: int, total: int) -> None:
            if stage != run.stage or run.entered is None:
                run.entered = time.monotonic(), done
            run.stage, run.done, run.total = stage, done, total

        def written(text: str) -> None:
            run.text = text

        def saved(case: Case) -> None:
            run.case = case

        run.watch = Watch(report=report, text=written, case=saved)
        with self._order:
            run.future = self._threads.submit(self._timed, work, run)
            self._runs = (*(one for one in self._runs if one.running), run)
        return run

    def said_of(self, run: Run[Any]) -> str:
        """How many wait before a run that waits, and how long it may take until its turn comes.

        The wait is known once a run with the label of each run before it has ended: their median time is expected.
        """
        runs = [one for one in self._runs if one.running]
        before = runs[: runs.index(run)] if run in runs else runs
        ahead = sum(one.begun is None for one in before)
        place = f"{ahead} before it" if ahead else "next"
        left = [self._left(one) for one in before]
        known = [seconds for seconds in left if seconds is not None]
        wait = f", about {about(wait_behind(known, self._size))}" if len(known) == len(left) else ""
        return f"waiting for its turn: {place}{wait}"

    def _left(self, run: Run[Any]) -> float | None:
        """The seconds that a run may still take; None where no run of its label has ended."""
        took = self._took.get(run.label)
        if not took:
            return None
        gone = time.monotonic() - run.begun if run.begun is not None else 0.0
        return max(0.0, statistics.median(took) - gone)

    def _timed(self, work: Callable[[Run[T]], T], run: Run[T]) -> T:
        run.begun = time.monotonic()
        try:
            result = work(run)
        except GroundworkError:
            raise
        except Exception:
            logging.getLogger("groundwork").exception("unexpected error in %s", run.label or "a run")
            raise
        self._took[run.label].append(time.monotonic() - run.begun)
        return result


def wait_behind(seconds: Sequence[float], threads: int) -> float:
    """The seconds until a thread is free for one more, behind work of these lengths in this order.

    >>> wait_behind([30, 5, 5], 1), wait_behind([30, 5, 5], 2), wait_behind([30], 2)
    (40.0, 10.0, 0.0)
    """
    free = [0.0] * threads
    for one in seconds:
        heapq.heapreplace(free, free[0] + one)
    return free[0]
