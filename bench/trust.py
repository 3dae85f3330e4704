"""Run the trust suites and report their figures: `make bench-trust`.

    python -m bench.trust                          the fast suites
    python -m bench.trust --long                   the long ones as well, the load of 20 sessions, the first paint
    python -m bench.trust --long --suites load     one suite
    python -m bench.trust --write                  into bench/RESULTS.md, one section per suite, as soon as it ends

A suite is a set of test files, and its figures are what its tests report. The fuzzer, the load and the first paint
report their own figures. Each section gives the load average before the run, since a busy machine distorts figures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import parse

from bench.results import arguments, conditions, publish, table

ROOT = Path(__file__).resolve().parent.parent
SUITES = {
    "hostile text": ("tests/browser/test_hostile_text.py", "tests/trust/test_plain_text.py"),
    "bad files and inputs": ("tests/trust/test_bad_input.py", "tests/trust/test_fuzz_loaders.py"),
    "model replies": ("tests/trust/test_fuzz_replies.py", "tests/trust/test_hostile_models.py"),
    "load": ("tests/trust/test_load.py",),
    "faults": (
        *("tests/trust/test_faults.py", "tests/trust/test_home.py", "tests/trust/test_kills.py"),
        "tests/engine/corpus/test_kill.py",
    ),
    "search index": ("tests/engine/corpus/test_index.py",),
    "access": ("tests/trust/test_access.py", "tests/browser/test_login.py", "tests/engine/test_offline.py"),
    "supply chain": ("tests/trust/test_supply_chain.py",),
}
TRIALS, LONG_TRIALS = 1_000, 20_000
REPLIES, LONG_REPLIES = 11_000, 1_000_000


@dataclass(frozen=True)
class Outcome:
    """The results of a suite's tests; `busy` is the load average before it.

    `faults`: (fault, trials, trials that held) as the tests record them, for the longest form of each test.
    """

    suite: str
    passed: int
    failed: int
    skipped: int
    seconds: float
    busy: float
    faults: tuple[tuple[str, int, int], ...] = ()


def run_suite(name: str, files: tuple[str, ...], long: bool) -> Outcome:
    """Run the suite's files and read their report."""
    busy = os.getloadavg()[0]
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        marked = [] if long else ["-m", "not long"]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report.name}", *marked]
        subprocess.run([*command, *files], cwd=ROOT, stdout=sys.stderr, check=False)
        cases = list(parse(report.name).iter("testcase"))
    failed = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    seconds = sum(float(case.get("time") or 0) for case in cases)
    told = ({p.get("name"): p.get("value", "") for p in case.iter("property")} for case in cases)
    counted = [(found["fault"], int(found["trials"]), int(found["held"])) for found in told if "fault" in found]
    most = {fault: (fault, trials, held) for fault, trials, held in sorted(counted, key=lambda row: row[1])}
    return Outcome(name, len(cases) - failed - skipped, failed, skipped, seconds, busy, tuple(most.values()))


def figures(module: str, *arguments: str) -> dict[str, Any]:
    """The JSON line that a part prints."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def fuzz_line(found: dict[str, Any]) -> str:
    """The fuzzer's figures in a sentence."""
    return (
        f"- Fuzzer: {found['files']:,} damaged files of twelve kinds, {found['read']:,} read, {found['refused']:,}"
        f" refused with a typed error, {len(found['failures'])} other outcomes; slowest file {found['slowest_s']:.2f} s"
        f" (limit 10), peak memory {found['peak_mb']:,} MB (limit: 1 GB over the imports)."
    )


def reply_line(found: dict[str, Any]) -> str:
    """The figures of the fuzzer of replies in a sentence."""
    return (
        f"- Fuzzer of replies: {found['inputs']:,} made-up replies and files into every parser in turn (seed"
        f" {found['seed']}), {found['read']:,} read, {found['refused']:,} refused with a typed error,"
        f" {found['failed']:,} other outcomes; slowest input {found['slowest_s']:.2f} s of processor time (limit 10)."
    )


def load_line(found: dict[str, Any]) -> str:
    """The load's figures in a sentence."""
    return (
        f"- Load: {found['sessions']} sessions, {found['seconds'] / 60:.0f} minutes, written by {found['model']},"
        f" {found['runs']} runs, {len(found['errors'])} errors, {len(found['mixed'])} mixed results; a question is"
        f" answered at most {found['displaced']} places later than it was asked. Median and 95th percentile in seconds:"
        f" {found['views']} views {found['view_p50_s']} and {found['view_p95_s']} (aim: under 1, queueing included),"
        f" questions {found['question_p50_s']} and {found['question_p95_s']}, leave-one-out {found['analysis_p50_s']}"
        f" and {found['analysis_p95_s']}, with the wait for all others. Memory {found['memory_early_mb']} MB early,"
        f" {found['memory_late_mb']} MB late."
    )


def paint_line(found: dict[str, Any]) -> str:
    """The first paint's figures in a sentence."""

    def both(name: str) -> str:
        return f"{found['median'][name]} s (slowest {found['slowest'][name]})"

    return (
        f"- First paint, warm server, {found['loads']} loads over all pages in Chromium, median: {both('paint, fresh')}"
        f" with nothing stored, {both('paint, again')} on a reload (aim: under 2). The title, or the Question box on"
        f" Ask, appears after {both('there, fresh')} and {both('there, again')}."
    )


def measured(suite: str, long: bool) -> list[str]:
    """The figures that a suite reports in addition to its tests."""
    if suite == "bad files and inputs":
        return [fuzz_line(figures("tests.trust.fuzz", "--trials", str(LONG_TRIALS if long else TRIALS)))]
    if suite == "model replies":
        inputs = str(LONG_REPLIES if long else REPLIES)
        return [reply_line(figures("tests.trust.fuzz_replies", "--inputs", inputs))]
    if suite == "load":
        real = ("--model", "embedded", "--minutes", "20", "--rounds", "1000") if long else ()
        return [load_line(figures("tests.trust.load", *real)), paint_line(figures("tests.trust.first_paint"))]
    return []


def report(outcome: Outcome, lines: list[str], long: bool) -> Iterator[str]:
    """The lines of a suite's section of RESULTS.md."""
    which = "with the long ones" if long else "without the long ones"
    counts = f"{outcome.passed} passed, {outcome.failed} failed, {outcome.skipped} skipped"
    yield from (f"- Tests ({which}): {counts}; {outcome.seconds:.0f} s.", *lines)
    if outcome.faults:
        yield ""
        rows = ((fault, f"{held} of {trials}") for fault, trials, held in outcome.faults)
        yield from table("fault | held", rows, " --- ")


def main() -> None:
    """Run the requested suites and print or save their results."""
    asked = arguments(
        __doc__,
        long=(False, "the long suites, too"),
        suites={"nargs": "*", "choices": SUITES, "default": list(SUITES), "help": "only these suites"},
    )
    for name in asked.suites:
        if name == "load" and not asked.long:
            continue
        # The load's long test is the load itself, whose figures come below.
        outcome = run_suite(name, SUITES[name], asked.long and name != "load")
        told = conditions(**{"load average before": f"{outcome.busy:.1f}"})
        lines = report(outcome, measured(name, asked.long), asked.long)
        publish(asked, f"trust: {name}", f"Trust: {name}", told, lines)


if __name__ == "__main__":
    main()
