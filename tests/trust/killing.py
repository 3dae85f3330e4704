"""Work that is killed with SIGKILL in the middle, and the count of trials that a test reports.

The work runs in a process forked from a server that has the imports behind it, so that twenty trials cost seconds.
`bench.trust` reads the counts from the tests' report and lists them in bench/RESULTS.md.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any

Say = Callable[[Any], None]
Record = Callable[[str, object], None]
TRIES = 200  # draws of a moment to kill at; one after the work has ended is drawn again
IMPORTED = ("torch", "transformers", "sentence_transformers", "gguf", "chromadb", "engine.workbench")


def killed(work: Callable[..., None], confirmed: int, seconds: float, *words: str) -> tuple[list[Any], bool]:
    """Let `work(say, *words)` confirm so many things, wait `seconds`, kill its process.

    Returns what it confirmed, and whether it was killed before its end.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*IMPORTED, work.__module__])
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(work, theirs, words, dict(os.environ)))
    with _empty_main():
        child.start()
    theirs.close()
    found = [said for _ in range(confirmed) for said in _next(ours)]
    threading.Event().wait(seconds)
    child.kill()
    child.join()
    while said := _next(ours):
        found += said
    assert child.exitcode in (0, -signal.SIGKILL), "the work failed by itself"
    return found, child.exitcode == -signal.SIGKILL


@contextlib.contextmanager
def _empty_main() -> Iterator[None]:
    """A child runs the main module's file first, and a page's test leaves its own script there."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _work(work: Callable[..., None], out: Connection, words: tuple[str, ...], environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    work(out.send, *words)


def _next(connection: Connection) -> list[Any]:
    """The next thing said, or nothing where the process has ended or was cut off in the middle of it."""
    try:
        return [connection.recv()]
    except (EOFError, OSError):
        return []


def kill_often(work: str, trials: int, record: Record, trial: Callable[[random.Random], bool]) -> None:
    """Run `trial` until it has killed `trials` times; it asserts what must hold, and says whether it killed in time.

    Records how many were asked for and how many held, also where one fails.
    """
    rng, held = random.Random(work), 0
    record("fault", f"kill -9 in {work}")
    record("trials", trials)
    try:
        for _ in range(TRIES):
            if held == trials:
                break
            held += trial(rng)
        assert held == trials, f"{held} of {trials} were killed before their end"
    finally:
        record("held", held)
