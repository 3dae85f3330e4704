"""ARE: atomic fact decomposition, evidence retrieval, verdicts and edits of an answer (figure 2 and section 4).

    answer -> clauses -> facts -> [evidence -> verdict -> supportive: done
                                                       -> editing required: edit, check again, done
                                                       -> irrelevant: expand, search again]  at most max_iterations
           -> edits back into their clauses -> attribution report

A round is in `rounds.py`. Every round stays in the record; facts shown = facts extracted. Left out: writing the answer
(section 4.1.1), which a case brings along.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from engine.core.metrics import ENTAILED, attribution_precision, attribution_recall, harmonic_mean, preservation
from engine.core.progress import Watch, whole
from engine.english.parser import absence
from engine.methods.are.backtrack import clause_evidence, edited, hold_clauses, offered, proposals, revised
from engine.methods.are.decompose import RULES, decompose, plain
from engine.methods.are.rounds import one_round
from engine.methods.are.tools import Task
from engine.methods.are.values import (
    AreRecord,
    ClauseReport,
    Decomposition,
    FactRecord,
    Measures,
    Placed,
    Report,
    note_of,
)
from engine.models.protocols import Entailment, Judged

_SURE = Judged("supportive", {"supportive": 1.0, "editing_required": 0.0, "irrelevant": 0.0})


def checking(task: Task, watch: Watch = Watch()) -> Iterator[AreRecord]:
    """The record of an answer as it grows: after the decomposition, after each fact of each round, and whole."""
    settings, tools = task.settings, task.tools
    task = dataclasses.replace(task.remembering(), sources=task.sources.chosen(settings))
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
    bare = _unfinished(task, found)

    def so_far() -> AreRecord:
        return replace(bare, facts=tuple(records), seconds=time.perf_counter() - started)

    yield so_far()
    for round_number in range(settings.max_iterations):
        worked = False
        for _ in one_round(task, found, records, round_number, watch):
            worked = True
            yield so_far()
        if not worked:
            break
    watch.step("edits into clauses")
    checked = found.text or task.answer
    edits = proposals(checked, found, records)
    if task.tools.measured:  # a language model that judges alone is not overruled
        edits = hold_clauses(found, records, edits, task.reader, watch)
    edits = [*edits, *offered(checked, found, records, len(edits) + 1)]
    text = revised(checked, edits)
    watch.step("report")
    report = attribution_report(task, text, found, records, edits, watch)
    yield replace(so_far(), revised=text, edits=tuple(edits), report=report, finished=True)


check_answer = whole(checking)


def _unfinished(task: Task, found: Decomposition) -> AreRecord:
    """The record before facts are checked, with the notes needed to read it."""
    tools = task.tools
    judged_by = tools.judge.name if tools.judge and not tools.both else tools.verifier.name
    both = f", with {tools.judge.name}" if tools.judge and tools.both else ""
    nowhere = "The answer has no evidence to check against. Choose a corpus, or use a case with passages."
    joined = (
        "Without clauses the revised answer is the facts joined; Pres compares it with the answer less its markers."
    )
    unparsed = f"{found.fallbacks} replies were unparsable; rules split the text there."
    several = f"Checks the {task.settings.keep} best passages per source (ARE checks 1)."
    notes = (
        nowhere if not task.sources.case and task.sources.collection is None else "",
        absence() if found.made_by == RULES else "",
        joined if found.text else "",
        unparsed if found.fallbacks else "",
        several if task.settings.keep != 1 else "",
    )
    return AreRecord(
        question=task.question,
        answer=task.answer,
        revised=found.text or task.answer,
        decomposition=found,
        facts=(),
        edits=(),
        report=None,
        verifier=judged_by + both,
        editor=tools.editor.name if tools.editor else f"substitution checked by {tools.verifier.name}",
        decomposer=found.made_by,
        evidence_from=task.settings.evidence_from,
        max_iterations=task.settings.max_iterations,
        finished=False,
        measured=note_of(_SURE, tools.verifier),
        notes=tuple(filter(None, notes)),
    )


# The attribution report and its measures before and after editing (sections 4.3 and 5.1). E_i is the evidence of clause
# i's facts, duplicates removed, joined. Attr_r = mean over clauses of the highest NLI(E, clause) over all E of the
# report; Attr_p = share of clauses that their own E_i entails whole; Pres in characters. NLI is the verifier's
# p(supportive) over windows of its own length, TRUE's p("1") with that model.


def attribution_report(
    task: Task, text: str, found: Decomposition, records: Sequence[FactRecord], edits: Sequence[Placed], watch: Watch
) -> Report:
    """E_i of each clause, and the measures of the answer and of `text`, the revised one."""
    answer, verifier = plain(task.answer) if found.text else task.answer, task.reader  # facts have no markers to keep
    sets = [clause_evidence(records, number) for number in range(len(found.clauses))]
    joined = ["\n".join(one.text for one in evidence) for evidence in sets]
    before = [plain(clause.text) for clause in found.clauses]
    after = [plain(edited(clause, [e for e in edits if e.clause == n])) for n, clause in enumerate(found.clauses)]
    matrices = [entailment_matrix(joined, texts, verifier, watch) for texts in (before, after)]
    report = tuple(
        ClauseReport(
            clause=number,
            text=after[number],
            evidence=sets[number],
            joined=joined[number],
            entails=float(matrices[1][number, number]),
            best=float(matrices[1][:, number].max()),
        )
        for number in range(len(found.clauses))
    )
    return Report(
        clauses=report,
        before=measures(matrices[0], answer, answer, verifier.name),
        after=measures(matrices[1], answer, text, verifier.name),
    )


def entailment_matrix(
    evidence: Sequence[str], clauses: Sequence[str], verifier: Entailment, watch: Watch
) -> NDArray[np.float64]:
    """NLI(E, clause), shape (evidence, clauses), 0 where E is empty."""
    pairs = list(dict.fromkeys((c, e) for e in evidence for c in clauses if e and c))
    known = dict(zip(pairs, map(float, verifier.entailment(pairs, watch) if pairs else ()), strict=True))
    rows = [[known.get((clause, e), 0.0) for clause in clauses] for e in evidence]
    return np.array(rows, dtype=np.float64).reshape(len(evidence), len(clauses))


def measures(matrix: NDArray[np.float64], answer: str, revised_answer: str, by: str) -> Measures:
    """Attr_r, Attr_p, Pres and their harmonic means from NLI(E_i, clause j)."""
    precision = attribution_precision([bool(v > ENTAILED) for v in np.diag(matrix)])
    return measured(attribution_recall(matrix), precision, answer, revised_answer, by, matrix.shape[1])


def measured(recall: float, precision: float, answer: str, revised_answer: str, by: str, clauses: int) -> Measures:
    """Attr_r and Attr_p with Pres and the harmonic means of each with it."""
    kept = preservation(answer, revised_answer)
    return Measures(
        attr_r=recall,
        attr_p=precision,
        pres=kept,
        f1_rp=harmonic_mean(recall, kept),
        f1_pp=harmonic_mean(precision, kept),
        by=by,
        clauses=clauses,
    )
