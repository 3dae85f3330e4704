"""What ARE is compared with (appendix C.2), each with the chosen model: DRQA, RARR, CCVER, an EFEC-style editor.

DRQA: one search with question and answer, no edit. RARR: sub-questions about the answer, evidence for each, an
agreement gate, an edit of the whole answer. CCVER: the same gate and edit with yes/no questions. EFEC-style: one edit
of the whole answer by all evidence. Left out: EFEC's trained T5 (not shipped), CCVER's summaries of web pages.
Without a language model sub-questions are made of the facts by rule, gate and edit are the verifier's; it is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from engine.core.errors import InputError
from engine.core.metrics import (
    ENTAILED,
    attribution_precision_unpaired,
    attribution_recall,
    harmonic_mean,
    preservation,
)
from engine.core.progress import Watch
from engine.core.settings import Decoding, Verification
from engine.core.values import Value
from engine.methods.are.decompose import decompose, plain
from engine.methods.are.edit import asked_edit, smallest_edit
from engine.methods.are.entropy import yes_no_question
from engine.methods.are.evidence import Sources, find_evidence
from engine.methods.are.facts import Decomposition
from engine.methods.are.report import entailment_matrix
from engine.methods.are.values import Evidence, Measures
from engine.methods.are.verdict import ask_verdict, judge
from engine.models.protocols import Entailment, Writer
from engine.models.replies import lines
from engine.prompts import ask

NAMES = ("drqa", "rarr", "ccver", "efec-style")


class Baseline(Value, frozen=True):
    """A baseline's run: queries, the evidence of each, the revised answer, its measures.

    `measures` are unpaired (appendix E): each evidence counts if it entails one whole clause; `aggregated` pairs the
    evidence of the questions made of a clause with that clause (Table 5), where there is such a pairing. `before` are
    the unpaired measures of the answer as it was, by the same evidence (Table 3).
    """

    name: str
    queries: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    revised: str
    measures: Measures
    aggregated: Measures | None = None
    before: Measures | None = None
    notes: tuple[str, ...] = ()


class _Run:
    """What every baseline is given."""

    def __init__(
        self,
        question: str,
        answer: str,
        sources: Sources,
        verifier: Entailment,
        settings: Verification,
        writer: Writer | None,
        watch: Watch,
    ) -> None:
        self.question, self.answer, self.verifier, self.writer = question, answer, verifier, writer
        self.sources, self.settings, self.watch = sources.chosen(settings), settings, watch
        self.found: Decomposition = decompose(answer)
        self.notes: list[str] = []

    def best(self, queries: Sequence[str]) -> list[Evidence | None]:
        """The evidence most similar to each query."""
        found = find_evidence(queries, [(query,) for query in queries], self.sources, self.settings, self.watch)
        return [max(seen, key=lambda one: one.score) if seen else None for seen in found]


def run_baseline(
    name: str,
    question: str,
    answer: str,
    sources: Sources,
    verifier: Entailment,
    settings: Verification | None = None,
    writer: Writer | None = None,
    watch: Watch | None = None,
) -> Baseline:
    """One of `NAMES` on an answer; the measures are the verifier's."""
    if name not in METHODS:
        raise InputError(f"There is no baseline {name!r}. Choose of: {', '.join(NAMES)}.")
    run = _Run(question, answer, sources, verifier, settings or Verification(), writer, watch or Watch())
    return METHODS[name](run)


def drqa(run: _Run) -> Baseline:
    """Retrieval alone: question and answer as one query."""
    query = f"{run.question} {plain(run.answer)}".strip()
    found = run.best([query])
    return _result(run, "drqa", [query], found, run.answer, [None])


def rarr(run: _Run) -> Baseline:
    """Sub-questions, agreement gate, edit (Gao et al. 2023)."""
    return _research_and_revise(run, "rarr", _sub_questions(run))


def ccver(run: _Run) -> Baseline:
    """Yes/no sub-questions with RARR's gate and edit (Chen et al. 2024)."""
    return _research_and_revise(run, "ccver", _yes_no_questions(run))


def efec_style(run: _Run) -> Baseline:
    """All evidence, then one edit of the whole answer (after Thorne and Vlachos 2021; their T5 is not shipped)."""
    asked = _sub_questions(run)
    found = run.best([query for query, _ in asked])
    kept = list(dict.fromkeys(one.text for one in found if one is not None))
    revised_answer = _edited(run, run.answer, "\n".join(kept)) if kept else run.answer
    run.notes.append("EFEC's own editor is a trained T5 that is not shipped; the chosen model edits in its place.")
    return _result(run, "efec-style", [q for q, _ in asked], found, revised_answer, [clause for _, clause in asked])


def _research_and_revise(run: _Run, name: str, asked: Sequence[tuple[str, int]]) -> Baseline:
    """For each question: evidence, gate (does it disagree with the answer so far), edit."""
    found = run.best([query for query, _ in asked])
    text = run.answer
    for done, one in enumerate(found):
        run.watch.step(name, done, len(found))
        if one is not None and _disagrees(run, text, one.text):
            text = _edited(run, text, one.text)
    return _result(run, name, [query for query, _ in asked], found, text, [clause for _, clause in asked])


def _disagrees(run: _Run, text: str, evidence: str) -> bool:
    """The agreement gate: does the evidence ask for an edit."""
    if run.writer is not None:
        return ask_verdict(text, evidence, text, run.writer, run.watch)[0].verdict == "editing_required"
    return judge([(plain(text), evidence)], run.verifier, run.watch)[0].verdict == "editing_required"


def _edited(run: _Run, text: str, evidence: str) -> str:
    if run.writer is not None:
        edit = asked_edit(text, evidence, run.writer, run.watch)[0]
    else:
        edit = smallest_edit(text, evidence, run.verifier, watch=run.watch)
    return edit.after if edit else text


def _sub_questions(run: _Run) -> list[tuple[str, int]]:
    """Questions about each clause with the clause's number; by the language model, else the clauses themselves."""
    asked: list[tuple[str, int]] = []
    for number, clause in enumerate(run.found.clauses):
        queries = _asked_questions(run, plain(clause.text)) if run.writer else []
        asked += [(query, number) for query in queries or [plain(clause.text)]]
    if run.writer is None:
        run.notes.append("No language model was chosen: each clause is its own query.")
    return asked


def _asked_questions(run: _Run, clause: str) -> list[str]:
    assert run.writer is not None
    prompt = ask("sub_questions", problem=clause)
    reply = run.writer.generate(prompt, Decoding(max_new_tokens=200), None, run.watch).text
    return [line.partition("|")[0].strip() for line in lines(reply) if "?" in line]


def _yes_no_questions(run: _Run) -> list[tuple[str, int]]:
    """A yes/no question for each fact."""
    run.notes.append("Yes/no questions are made of the facts by rule.")
    return [
        (yes_no_question(fact.text), number) for number, clause in enumerate(run.found.clauses) for fact in clause.facts
    ]


def _result(
    run: _Run,
    name: str,
    queries: Sequence[str],
    found: Sequence[Evidence | None],
    revised_answer: str,
    clauses: Sequence[int | None],
) -> Baseline:
    """Measures of the revised answer: unpaired, and aggregated by clause where questions belong to clauses."""
    texts = [plain(clause.text) for clause in decompose(revised_answer).clauses]
    unique = {one.text: one for one in found if one is not None}
    known: dict[tuple[str, str], float] = {}
    before = [plain(clause.text) for clause in run.found.clauses]
    aggregated = None
    if len(texts) == len(run.found.clauses) and None not in clauses:
        joined = [_joined(found, clauses, number) for number in range(len(texts))]
        paired = entailment_matrix(joined, texts, run.verifier, known, run.watch)
        aggregated = _measures(
            run, attribution_recall(paired), float((np.diag(paired) > ENTAILED).mean()), revised_answer
        )
    return Baseline(
        name=name,
        queries=tuple(queries),
        evidence=tuple(unique.values()),
        revised=revised_answer,
        measures=_unpaired(run, list(unique), texts, known, revised_answer),
        aggregated=aggregated if texts else None,
        before=_unpaired(run, list(unique), before, known, run.answer),
        notes=tuple(run.notes),
    )


def _unpaired(
    run: _Run, evidence: Sequence[str], clauses: Sequence[str], known: dict[tuple[str, str], float], text: str
) -> Measures:
    """Measures of `text`, whose clauses these are; what was asked already is in `known`."""
    matrix = entailment_matrix(evidence, clauses, run.verifier, known, run.watch)
    return _measures(run, attribution_recall(matrix), attribution_precision_unpaired(matrix > ENTAILED), text)


def _joined(found: Sequence[Evidence | None], clauses: Sequence[int | None], number: int) -> str:
    texts = [one.text for one, clause in zip(found, clauses, strict=True) if one is not None and clause == number]
    return "\n".join(dict.fromkeys(texts))


def _measures(run: _Run, recall: float, precision: float, revised_answer: str) -> Measures:
    kept = preservation(run.answer, revised_answer)
    return Measures(
        attr_r=recall,
        attr_p=precision,
        pres=kept,
        f1_rp=harmonic_mean(recall, kept),
        f1_pp=harmonic_mean(precision, kept),
        by=run.verifier.name,
        clauses=len(run.found.clauses),
    )


METHODS: Mapping[str, Callable[[_Run], Baseline]] = {
    "drqa": drqa,
    "rarr": rarr,
    "ccver": ccver,
    "efec-style": efec_style,
}
