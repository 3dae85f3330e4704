"""Make the bundled audited example: an answer with planted errors, checked, edited and signed off.

    GROUNDWORK_HOME=$(mktemp -d) python -m bench.audited_example

checks the answer of assets/audits, contrasts the wrong figures with the right ones, accepts the edits that restore the
source's words, adds the reviewer's verdicts, and signs off. The planted errors are listed here. The results are stored
unchanged.
"""

from __future__ import annotations

import gzip
import sys

from msgspec.structs import replace

from engine.analyses.case_verdict import by_machine
from engine.analyses.contrast import ContrastOptions
from engine.analyses.facts import record_of
from engine.analyses.kind import FACTS
from engine.cases.bundled import AUDITED, audit_example, file_of
from engine.cases.case_file import write_case_file
from engine.cases.places import numbered, verdict_of
from engine.cases.review import MarkDraft, sign_off
from engine.core.files import EMBEDDED
from engine.core.values import Case
from engine.methods.are.backtrack import proposed
from engine.methods.contrast import METHOD as CONTRAST
from engine.workbench import Workbench

REVIEWER = "Example reviewer"
PLANTED = {"89,000": "98,000", "2022": "2023"}  # what the answer says wrongly, what the sources have
SUPPORTED = {  # what the sources say: the reviewer decides where the verifier is wrong or unsure
    "eleven lodgements": "source 1 gives this count and this sum",
    "made in Cork": "source 1: five of the eleven were made in Cork",
    "EUR 47,200": "source 1 gives this sum for Cork",
    "received EUR 1,240,000": "source 2 names the sum, the payer and the day",
    "paid EUR 640,000": "source 2 names the sum, the payee and the day",
}
CONCLUDED = "every sentence was read against its source; two figures are corrected, one claim is taken out"
UNSUPPORTED = "closed the account"  # what no source speaks of


def make(bench: Workbench) -> Case:
    """Audit, decide and sign off. The marks go into the case's history."""
    found = bench.audit(audit_example())
    bench.cases.delete(found.id)
    case = replace(found, id=AUDITED, tags=("worked example",))
    bench.cases.save(case)
    record = record_of(bench.analyse(AUDITED, FACTS))
    assert record is not None
    for wrong, right in PLANTED.items():
        bench.analyse(AUDITED, CONTRAST, ContrastOptions(model=EMBEDDED, written=wrong, instead=right))
    for edit in record.edits:
        accepted = any(wrong in edit.old and right in edit.new for wrong, right in PLANTED.items())
        accepted = accepted or (UNSUPPORTED in edit.old and not edit.new)
        reason = "as the source has it" if accepted else "the words agree with the source"
        _mark(bench, f"edit:{edit.id}", "accepted" if accepted else "rejected", reason, proposed(edit))
    for name, fact in numbered(record).items():
        reason = next((why for words, why in SUPPORTED.items() if words in fact.fact.text), "")
        if reason and (fact.outcome != "supported" or (fact.ruling and fact.ruling.unsure)):
            _mark(bench, f"fact:{name}", "borne out", reason, verdict_of(fact))
    sign(bench)
    return bench.cases.load(AUDITED)


def sign(bench: Workbench) -> None:
    """Sign off the example's text with its accepted edits."""
    machine = by_machine(bench.cases.load(AUDITED))
    assert machine is not None
    bench.cases.add_marks(AUDITED, sign_off(REVIEWER, "stands as edited", CONCLUDED, machine.headline))


def _mark(bench: Workbench, target: str, value: str, reason: str, machine: str) -> None:
    bench.cases.add_mark(
        AUDITED, MarkDraft(kind="override", author=REVIEWER, value=value, target=target, reason=reason, machine=machine)
    )


def main() -> None:
    """Write the file."""
    bench = Workbench()
    case = make(bench)
    path = file_of(AUDITED)
    path.write_bytes(gzip.compress(write_case_file(case, bench.cases.history(AUDITED)), mtime=0))
    print(f"{path}: {path.stat().st_size:,} bytes, {len(bench.cases.history(AUDITED))} marks", file=sys.stderr)


if __name__ == "__main__":
    main()
