"""The cases that are kept with the project.

The worked example is one case with every analysis already run; the solved example is a problem of the science primer
with a run of RAISE (both by `bench.worked_example`); the audited example is an answer with planted errors that was
checked, edited and signed off (`bench.audited_example`). A second pass that adds an unsupported claim is one of the
kinds of bench/refinement_kinds.py (`bench.refinement`, which can add the others), with its seed. Numbers carry the
stamps of the runs that made them; replay says where the revision that scored them is not installed.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from engine.cases.case_file import read_case_file
from engine.cases.store import CaseStore
from engine.core.files import ASSETS
from engine.core.values import AuditRecord, decoded

EXAMPLE = "worked-example"
AUDITED = "audited-example"
SOLVED = "solved-example"
SELF_REFINED = "self-refine-adds-an-unsupported-claim"
FOLDER = ASSETS / "cases"
ENDING = ".json.gz"
AUDIT = ASSETS / "audits" / "cash_lodgements.jsonl"


def bundled() -> dict[str, Path]:
    """The file of every case that is kept with the project, by the case's id."""
    return {path.name.removesuffix(ENDING).replace("_", "-"): path for path in sorted(FOLDER.glob(f"*{ENDING}"))}


def file_of(case_id: str, folder: Path = FOLDER) -> Path:
    """Where a case of that id is kept."""
    return folder / (case_id.replace("-", "_") + ENDING)


def audit_example() -> AuditRecord:
    """A question, three sources and an answer with planted errors, to try an audit with."""
    return decoded(AUDIT.read_bytes(), AuditRecord)


def take_in(cases: CaseStore, only: str = "") -> None:
    """Put into a library those that are not there (they may be in its bin), or `only` that one."""
    for case_id, path in bundled().items():
        if only in ("", case_id) and not cases.has(case_id):
            found = read_case_file(gzip.decompress(path.read_bytes()))
            cases.put(found.case, found.history)
