"""The worked example: one case with every analysis already run, kept with the project (made by evaluate).

Its numbers carry the stamps of the runs that made them, and replay scores them again as those of any other case.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from engine.cases.case_file import read_case_file
from engine.cases.store import CaseStore
from engine.home import ASSETS

EXAMPLE = "worked-example"
FILE = ASSETS / "cases" / "worked_example.json.gz"


def take_in(cases: CaseStore, path: Path = FILE) -> str:
    """Put the worked example into a library, unless it is there (it may be in the bin); return its id."""
    if not cases.has(EXAMPLE):
        found = read_case_file(gzip.decompress(path.read_bytes()))
        cases.put(found.case, found.history)
    return EXAMPLE
