"""ARE: atomic fact decomposition, evidence retrieval, verdicts and edits of an answer (figure 2 and section 4).

    answer -> clauses -> facts -> [evidence -> verdict -> supportive: done
                                                       -> editing required: edit, check again, done
                                                       -> irrelevant: expand, search again]  at most max_iterations
           -> edits back into their clauses -> attribution report

A round is in `rounds.py`. Every round stays in the record; facts shown = facts extracted.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from engine.core.progress import Watch, whole
from engine.english.parser import absence
from engine.methods.are.backtrack import hold_clauses, offered, proposals, revised
from engine.methods.are.decompose import RULES, decompose
from engine.methods.are.report import attribution_report
from engine.methods.are.rounds import one_round
from engine.methods.are.tools import Task
from engine.methods.are.values import AreRecord, Decomposition, FactRecord, note_of
from engine.models.protocols import Judged

_SURE = Judged("supportive", {"supportive": 1.0, "editing_required": 0.0, "irrelevant": 0.0})


def checking(task: Task, watch: Watch | None = None) -> Iterator[AreRecord]:
    """The record of an answer as it grows: after the decomposition, after each fact of each round, and whole."""
    settings, tools, watch = task.settings, task.tools, watch or Watch()
    task = dataclasses.replace(task, sources=task.sources.chosen(settings))
    started = time.perf_counter()
    found = decompose(
        task.answer,
        tools.decomposer,
        watch,
        atomic=settings.atomic,
        molecular=settings.molecular,
        demonstrations=settings.demonstrations,
    )
    records = [
        FactRecord(clause=number, fact=fact) for number, clause in enumerate(found.clauses) for fact in clause.facts
    ]
    yield _unfinished(task, found, records, started)
    for round_number in range(settings.max_iterations):
        worked = False
        for _ in one_round(task, found, records, round_number, watch):
            worked = True
            yield _unfinished(task, found, records, started)
        if not worked:
            break
    watch.step("edits into clauses")
    checked = found.text or task.answer
    edits = hold_clauses(found, records, proposals(checked, found, records), tools.verifier, watch)
    edits = [*edits, *offered(checked, found, records, len(edits) + 1)]
    text = revised(checked, edits)
    watch.step("report")
    report = attribution_report(task.answer, text, found, records, edits, tools.verifier, watch)
    bare = _unfinished(task, found, records, started)
    yield replace(bare, revised=text, edits=tuple(edits), report=report, finished=True)


check_answer = whole(checking)


def _unfinished(task: Task, found: Decomposition, records: Sequence[FactRecord], started: float) -> AreRecord:
    """The record before edits are placed."""
    tools = task.tools
    judged_by = tools.judge.name if tools.judge and not tools.both else tools.verifier.name
    both = f", with {tools.judge.name}" if tools.judge and tools.both else ""
    return AreRecord(
        question=task.question,
        answer=task.answer,
        revised=found.text or task.answer,
        decomposition=found,
        facts=tuple(records),
        edits=(),
        report=None,
        verifier=judged_by + both,
        editor=tools.editor.name if tools.editor else f"substitution checked by {tools.verifier.name}",
        decomposer=found.made_by,
        evidence_from=task.settings.evidence_from,
        max_iterations=task.settings.max_iterations,
        finished=False,
        seconds=time.perf_counter() - started,
        measured=note_of(_SURE, tools.verifier),
        notes=_notes(task, found),
    )


def _notes(task: Task, found: Decomposition) -> tuple[str, ...]:
    """The notes needed to read the record."""
    notes = []
    if not task.sources.case and task.sources.collection is None:
        notes.append("There is no evidence to check against. Choose a corpus, or use a case with passages.")
    if found.made_by == RULES and absence():
        notes.append(absence())
    if found.text:
        notes.append(
            "Without clauses the revised answer consists of the joined facts; Pres compares it with the answer."
        )
    if found.fallbacks:
        notes.append(f"{found.fallbacks} replies were unparsable; rules split the text there.")
    if task.settings.keep != 1:
        notes.append(f"Checks the {task.settings.keep} best passages per source (ARE checks 1).")
    return tuple(notes)
