"""Long work in a worker thread: what it reports, how it is stopped, what came of it.

A page starts a run, keeps it in the session, and polls it from a fragment; the thread never touches Streamlit.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from engine.core.errors import Cancelled, GroundworkError
from engine.core.progress import Watch
from engine.core.values import Case

T = TypeVar("T")


@dataclass
class Run(Generic[T]):
    """One piece of long work. The worker writes, the page reads; each field is replaced whole, never edited.

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
        """The stage with its counts; `before` is said until there is a stage.

        >>> Run(stage="reading", done=1200, total=3000).place("starting"), Run().place("starting")
        ('reading 1,200 of 3,000', 'starting')
        """
        stage = self.stage or before
        return f"{stage} {self.done:,} of {self.total:,}" if self.total else stage

    @property
    def cancelling(self) -> bool:
        """Whether the user has asked it to stop."""
        return self.watch.cancel.is_set()

    @property
    def problem(self) -> str | None:
        """The message for a run that ended without a result."""
        error = None if self.running or self.future is None else self.future.exception()
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
        return self.future is not None and self.future.done() and isinstance(self.future.exception(), Cancelled)

    def stop(self) -> None:
        """Ask the worker to stop at its next batch."""
        self.watch.cancel.set()


def start(executor: Executor, work: Callable[[Run[T]], T], label: str = "") -> Run[T]:
    """Begin `work` on a worker thread; it is given the run to report to."""
    run: Run[T] = Run(label=label)

    def report(stage: str, done: int, total: int) -> None:
        run.stage, run.done, run.total = stage, done, total

    def written(text: str) -> None:
        run.text = text

    def saved(case: Case) -> None:
        run.case = case

    run.watch = Watch(report=report, text=written, case=saved)
    run.future = executor.submit(_logged, work, run)
    return run


def _logged(work: Callable[[Run[Any]], T], run: Run[T]) -> T:
    try:
        return work(run)
    except GroundworkError:
        raise
    except Exception:
        import logging

        logging.getLogger("groundwork").exception("unexpected error in %s", run.label or "a run")
        raise
