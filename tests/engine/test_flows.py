"""How many files a question and an occlusion pass: calls entered, counted by a profiler.

A file counts where one of its functions is entered. The leaves (core, prompts, english) and what a model does inside
(models) are left out: they serve every step and forward nothing.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path

from engine.analyses.kind import OCCLUSION
from engine.analyses.registry import kind_named
from engine.cases.review import Review
from engine.core.files import home
from engine.core.values import AuditRecord
from engine.corpus.samples import SAMPLES
from engine.models.choices import READER
from engine.report.build import analysis_blocks
from engine.workbench import Workbench
from tests.test_imports import LEAVES
from tests.tiny import save_tiny

ENGINE = Path(__file__).resolve().parents[2] / "engine"


@contextmanager
def entered():
    """The stages' files entered inside the block, each with the names of its functions."""
    found = {}

    def note(frame, event, _):
        path, name = Path(frame.f_code.co_filename), frame.f_code.co_name
        if event == "call" and name != "<module>" and path.is_relative_to(ENGINE):
            place = path.relative_to(ENGINE)
            if place.parts[0] not in LEAVES | {"models"}:
                found.setdefault(str(place), set()).add(name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(before)


def test_a_question_passes_at_most_12_files_until_its_case_is_kept():
    bench, sample = Workbench(), SAMPLES[0]
    bench.ingest(sample.documents[:2], sample.name)
    with entered() as found:
        case = bench.ask("Why is the filtrate hot?", sample.name, model=READER)
    assert bench.cases.load(case.id).answer.text
    assert {"workbench.py", "answer/quoting_reader.py", "cases/store.py"} <= found.keys()
    assert len(found) <= 12, sorted(found)


def test_an_occlusion_passes_at_most_15_files_until_what_is_drawn_of_it():
    save_tiny(home() / "models" / "scorer")
    bench = Workbench()
    passages = ("Ice melts at 0 degrees. It floats.", "Tin bends.")
    asked = bench.audit(AuditRecord(question="Why?", passages=passages, answer="Ice melts. [cite_1] It floats."))
    options = kind_named(OCCLUSION).options(model="scorer")
    with entered() as found:
        case = bench.analyse(asked.id, OCCLUSION, options)
        blocks = analysis_blocks(case, case.analyses[-1], Review())
    assert any(type(block).__name__ == "Table" for block in blocks)
    assert {"workbench.py", "methods/occlusion.py", "analyses/occlusion.py"} <= found.keys()
    assert len(found) <= 15, sorted(found)
