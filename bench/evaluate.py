"""Every study in its small preset: `make bench-evaluate`, or python -m bench.evaluate [--only NAME ...] [--write].

Each runs on the sample worlds with the embedded model, in a process and a data folder of its own, and has a section of
its own in bench/RESULTS.md with the tables as `evaluate` prints them. One that fails, dies or takes too long is named
and the others go on; its earlier section stays. Figures of a small preset show that a study runs and what its tables
look like; n is far too small to say which method is better.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from bench.results import conditions, write_section

LARGER = ("_small", "_capable", "_paper")  # presets that take an hour and more
LONG = ("similarities_by_question",)  # tables with a block a question: they are in the run's folder


@dataclass(frozen=True)
class Ran:
    """How a study ended; `problem` is empty where it has a section."""

    name: str
    section: str
    problem: str
    seconds: float
    processor: float


def main() -> None:
    """Run, print, and with --write keep; exit 1 where a study has no section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=None, metavar="PRESET", help="these presets alone")
    parser.add_argument("--out", type=Path, default=None, help="keep the runs' folders here")
    parser.add_argument("--limit", type=float, default=1800, help="seconds that a study may take")
    parser.add_argument("--write", action="store_true", help="write the sections of bench/RESULTS.md")
    parser.add_argument("--section", default="", help=argparse.SUPPRESS)  # the child's: print one section
    given = parser.parse_args()
    if given.section:
        print(section(given.section, given.out))
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GROUNDWORK_HOME"] = folder
        found = [
            ran(name, (given.out or Path(folder)) / name, given.limit, given.write) for name in given.only or small()
        ]
    text = summary(found)
    print(text)
    if given.write:
        write_section("evaluate", text)
    if any(one.problem for one in found):
        sys.exit(1)


def ran(name: str, folder: Path, limit: float, write: bool) -> Ran:
    """Run one study in a process of its own; print and keep its section at once."""
    command = [sys.executable, "-m", "bench.evaluate", "--section", name, "--out", str(folder)]
    start, spent = time.perf_counter(), processor()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=limit)
        problem = f"ended with {done.returncode}, see above" if done.returncode else ""
        text = "" if problem else done.stdout
    except subprocess.TimeoutExpired:
        text, problem = "", f"took longer than {limit:.0f} s"
    print(text or f"{name} {problem}.", flush=True)
    if text and write:
        write_section(f"evaluate {name}", text)
    return Ran(name, text, problem, time.perf_counter() - start, processor() - spent)


def processor() -> float:
    """Seconds of processor time of the children that have ended."""
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def summary(found: list[Ran]) -> str:
    """A line a study: how it ended and what it took, starting and loading included."""
    lines = [f"| {r.name} | {r.problem or 'done'} | {r.seconds:.0f} | {r.processor:.0f} |" for r in found]
    total = f"| together | | {sum(r.seconds for r in found):.0f} | {sum(r.processor for r in found):.0f} |"
    head = ["## Evaluate: the small presets", "", conditions(model="embedded"), ""]
    columns = ["| preset | | seconds by the clock | seconds of processor time |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *columns, *lines, total])


def small() -> list[str]:
    """The presets of minutes: a study's own name."""
    from engine.studies.config import presets

    return [name for name in presets() if name != "seconds" and not name.endswith(LARGER)]


def section(name: str, folder: Path) -> str:
    """One study: what ran, how long it took, its tables."""
    from engine.studies.config import CONFIGS
    from engine.studies.evaluate import evaluate, report_head
    from engine.studies.tables import to_markdown

    start, spent = time.perf_counter(), time.process_time()
    found = evaluate((CONFIGS / f"{name}.toml").read_text(encoding="utf-8"), folder, resume=folder.exists())
    took = f"{time.perf_counter() - start:.0f} s by the clock, {time.process_time() - spent:.0f} s of processor time"
    tables = [to_markdown(table) for table in found.results.tables if table.name not in LONG]
    head = report_head(found).replace("# ", "## Evaluate: ", 1)
    return "\n".join([head, f"{conditions(model=found.config.model)} {took}.", "", *tables])


if __name__ == "__main__":
    main()
