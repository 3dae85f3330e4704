"""Damaged files into the loaders, in a process of its own under 10 s a file and 1 GB: always a typed error."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

QUICK, LONG = 120, 4_000


def fuzz(trials: int, seed: int) -> dict:
    """The fuzzer's summary; the process ends by itself, or by the limit of a file."""
    command = [sys.executable, "-m", "tests.trust.fuzz", "--trials", str(trials), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def check(summary: dict, trials: int) -> None:
    assert summary["failures"] == []
    assert summary["files"] == trials
    assert summary["refused"] > trials / 10  # the damage is damage
    assert summary["read"] > trials / 10  # and not all of it at the first byte
    assert summary["slowest_s"] < 10
    assert summary["peak_mb"] < 1024


@pytest.mark.slow
def test_damaged_files_are_read_or_refused():
    check(fuzz(QUICK, 1337), QUICK)


@pytest.mark.long
def test_thousands_of_damaged_files_are_read_or_refused():
    check(fuzz(LONG, 2024), LONG)
