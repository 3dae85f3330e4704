"""The attribution report of an answer and its measures before and after editing (ARE, sections 4.3 and 5.1).

E_i is the evidence of clause i's facts, duplicates removed, joined. Attr_r = mean over clauses of the highest
NLI(E, clause) over all E of the report; Attr_p = share of clauses that their own E_i entails whole; Pres in characters.
NLI is the verifier's p(supportive) over windows of its own length, TRUE's p("1") with that model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.core.metrics import ENTAILED, attribution_precision, attribution_recall, harmonic_mean, preservation
from engine.core.progress import Watch
from engine.methods.are.backtrack import clause_evidence, edited
from engine.methods.are.decompose import plain
from engine.methods.are.values import ClauseReport, Decomposition, FactRecord, Measures, Placed, Report
from engine.models.protocols import Entailment


def attribution_report(
    answer: str,
    revised_answer: str,
    found: Decomposition,
    records: Sequence[FactRecord],
    edits: Sequence[Placed],
    verifier: Entailment,
    watch: Watch | None = None,
) -> Report:
    """E_i of each clause, and the measures of the answer and of the revised one."""
    sets = [clause_evidence(records, number) for number in range(len(found.clauses))]
    joined = ["\n".join(one.text for one in evidence) for evidence in sets]
    before = [plain(clause.text) for clause in found.clauses]
    after = [plain(edited(clause, [e for e in edits if e.clause == n])) for n, clause in enumerate(found.clauses)]
    known: dict[tuple[str, str], float] = {}
    matrices = [entailment_matrix(joined, texts, verifier, known, watch) for texts in (before, after)]
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
        after=measures(matrices[1], answer, revised_answer, verifier.name),
    )


def entailment_matrix(
    evidence: Sequence[str],
    clauses: Sequence[str],
    verifier: Entailment,
    known: dict[tuple[str, str], float],
    watch: Watch | None = None,
) -> NDArray[np.float64]:
    """NLI(E, clause), shape (evidence, clauses), 0 where E is empty; `known` keeps what was asked already."""
    pairs = list(dict.fromkeys((c, e) for e in evidence for c in clauses if e and c and (c, e) not in known))
    for pair, score in zip(pairs, verifier.entailment(pairs, watch) if pairs else (), strict=True):
        known[pair] = float(score)
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
