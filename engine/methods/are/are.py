"""ARE: atomic fact decomposition, evidence retrieval, verdicts and edits of an answer (figure 2 and section 4).

    answer -> clauses -> facts -> [evidence -> verdict -> supportive: done
                                                       -> editing required: edit, check again, done
                                                       -> irrelevant: expand, search again]  at most max_iterations
           -> edits back into their clauses -> attribution report

Every round stays in the record; facts shown = facts extracted. Left out: writing the answer (section 4.1.1), which a
case brings along; web search.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from engine.answer.citations import cited_sentences, style_of, without_markers
from engine.core.metrics import ENTAILED, attribution_precision, attribution_recall, harmonic_mean, preservation
from engine.core.progress import Watch, whole
from engine.core.settings import Verification
from engine.english.language import other_language
from engine.english.parser import absence
from engine.methods.are.anchor import Anchor, Others, anchors, others
from engine.methods.are.anchored_edit import anchored_edit
from engine.methods.are.backtrack import clause_evidence, edited, hold_clauses, offered, proposals, revised
from engine.methods.are.decompose import RULES, decompose, plain
from engine.methods.are.edit import asked_edit
from engine.methods.are.event_order import dated_parts
from engine.methods.are.evidence import cited_numbers, expand, find_evidence
from engine.methods.are.guards import Read, rulings_on, speaks
from engine.methods.are.outline import is_on_documents
from engine.methods.are.tools import Task
from engine.methods.are.values import (
    AreRecord,
    Check,
    Clause,
    ClauseReport,
    Decomposition,
    Edit,
    Evidence,
    Exchange,
    FactRecord,
    Iteration,
    Measures,
    Outcome,
    Placed,
    Report,
    Ruling,
    note_of,
)
from engine.methods.are.verdict import ask_verdict, judge
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
        language=other_language(task.answer),
        notes=tuple(filter(None, notes)),
    )


# One round on the facts that are open: search, verdicts, then an edit or another (sections 4.2 and 4.3). All facts of a
# round are searched and judged together. Of a source `keep` passages are checked (the paper: one), and the surest
# verdict on the most relevant of them decides. Irrelevant facts are searched again, as in the paper; contradicted ones
# only for a passage that gives an edit: no later passage undoes a contradiction.

EDITED_FROM = 2  # passages that ask for an edit from which one is tried


@dataclass(frozen=True)
class _Work:
    """A fact in a round: its place among the records, what is asked and found for it, and the passages to check.

    `said` is the answer's sentence; `near` are the anchors of the passages considered, the best first.
    """

    place: int
    record: FactRecord
    clause: str
    said: str
    queries: tuple[str, ...]
    exchange: Exchange | None
    considered: tuple[Evidence, ...]
    near: Sequence[Anchor]
    chosen: tuple[int, ...]

    @property
    def fact(self) -> str:
        """The fact's text."""
        return self.record.fact.text

    @cached_property
    def dated(self) -> tuple[str, ...]:
        """The parts of all passages considered that name a day."""
        return tuple(part for one in self.considered for part in dated_parts(one.text, one.title))


def one_round(
    task: Task, found: Decomposition, records: list[FactRecord], number: int, watch: Watch
) -> Iterator[FactRecord]:
    """One round on the facts that are open, each as it is settled and put into `records`."""
    checked = found.text or task.answer
    open_ones = [(place, record) for place, record in enumerate(records) if _open(record, number, task.settings)]
    if not open_ones:
        return
    clauses = [found.clauses[record.clause] for _, record in open_ones]
    facts, cited = [record.fact.text for _, record in open_ones], [cited_numbers(checked, one) for one in clauses]
    asked = [_queries(task, record, one, number, watch) for (_, record), one in zip(open_ones, clauses, strict=True)]
    reader, searched = task.reader if task.tools.measured else None, [queries for queries, _ in asked]
    considered = find_evidence(facts, searched, task.sources, task.settings, watch, cited, reader)
    works = []
    for n, ((place, record), clause, evidence) in enumerate(zip(open_ones, clauses, considered, strict=True)):
        near = anchors(facts[n], evidence, cited[n])
        chosen = _not_tried(record, evidence, near, task.settings)
        said = _sentence(checked, clause)
        works.append(_Work(place, record, clause.text, said, *asked[n], evidence, near, chosen))
    for done, (work, (checks, exchanges)) in enumerate(zip(works, _checks(task, works, watch), strict=True)):
        watch.step("verdicts and edits", done, len(works))
        iteration = Iteration(
            queries=work.queries,
            considered=work.considered,
            checks=checks,
            decided=deciding(checks, work.considered),
            exchanges=(*([work.exchange] if work.exchange else []), *exchanges),
        )
        records[work.place] = _settled(task, work, iteration, watch)
        yield records[work.place]


def _queries(
    task: Task, record: FactRecord, clause: Clause, number: int, watch: Watch
) -> tuple[tuple[str, ...], Exchange | None]:
    """The searches for the fact in this round, itself or, after the first one, its expansions; and the exchange."""
    fact, expander = record.fact.text, task.tools.expander
    if number == 0:
        return (fact,), None
    last = record.iterations[-1]
    if number > 1 and expander is not None and any(one.step == "expand" and one.parsed for one in last.exchanges):
        return last.queries, None  # asked again, the model would say the same
    context, row_words = without_markers(clause.text) if number > 1 else "", task.settings.row_words
    return expand(fact, task.question, expander, context, watch, row_words=row_words)


def _sentence(text: str, clause: Clause) -> str:
    """The sentence of the text in which the clause begins, without citation markers."""
    spans = cited_sentences(text, style_of(text))
    return next((without_markers(text[a:b]) for a, b in spans if a <= clause.start < b), clause.text)


def _open(record: FactRecord, number: int, settings: Verification) -> bool:
    """Is the fact still to be worked on in this round; one that is contradicted is, for an edit.

    A statement about the documents themselves is not checked: no passage can bear it out.
    """
    if is_on_documents(record.fact.text):
        return False
    again = ("unsettled", "no evidence", *(("contradicted",) if settings.edit else ()))
    return number == 0 or (settings.re_retrieval and record.outcome in again)


def _not_tried(
    record: FactRecord, evidence: Sequence[Evidence], near: Sequence[Anchor], settings: Verification
) -> tuple[int, ...]:
    """The `keep` most relevant passages of each source that no earlier round checked, and that of the best anchor."""
    tried = {done.considered[check.evidence].text for done in record.iterations for check in done.checks}
    places: dict[str, list[int]] = {"case": [], "corpus": []}
    for place, one in enumerate(evidence):
        if one.text not in tried and len(places[one.source]) < settings.keep:
            places[one.source].append(place)
    chosen = (*places["case"], *places["corpus"])
    best = [a.evidence for a in near[:1] if settings.anchored and evidence[a.evidence].text not in tried]
    return (*chosen, *(place for place in best if place not in chosen))


def _checks(
    task: Task, works: Sequence[_Work], watch: Watch
) -> Iterator[tuple[tuple[Check, ...], tuple[Exchange, ...]]]:
    """The rulings on each fact's chosen passages, judged together by the verifier, one by one by a language model."""
    tools, shown = task.tools, task.settings.demonstrations
    rows = [(work, i) for work in works for i in work.chosen]
    pairs = [(work.fact, work.considered[i].text) for work, i in rows]
    said: list[tuple[Ruling, Exchange]] = []
    if tools.judge is not None:
        for done, (fact, text) in enumerate(pairs):
            watch.step("verdicts", done, len(pairs))
            said.append(ask_verdict(fact, text, task.answer, tools.judge, watch, demonstrations=shown))
    own: list[Ruling] = []
    if tools.measured and pairs:
        read = [
            Read(work.fact, work.said, work.considered[i], next(a for a in work.near if a.evidence == i), work.dated)
            for work, i in rows
        ]
        own = rulings_on(read, task.reader, task.sources.embedder, task.settings, watch)
    rulings, asked = iter(own), iter(said)
    for work in works:
        checks, exchanges = [], []
        for place in work.chosen:
            ruling, (second, exchange) = next(rulings, None), next(asked, (None, None))
            exchanges += [exchange] if exchange else []
            first = ruling or second
            assert first is not None  # the verifier or a language model judges
            checks.append(Check(evidence=place, ruling=first, second=second if ruling else None))
        yield tuple(checks), tuple(exchanges)


def deciding(checks: Sequence[Check], considered: Sequence[Evidence]) -> int | None:
    """The check that decides, of those that speak for or against the fact; None of none.

    The probability of its verdict times the relevance of its passage is the largest; lowered ones come last, those on
    something else than the fact's name behind the others. Of two alike, as those without scores are, a supportive one
    comes first.
    """

    def weight(check: Check) -> tuple[bool, bool, bool, float, bool]:
        ruling = check.ruling
        foreign = ruling.lowered and bool(ruling.lacking)
        speaks = ruling.verdict in ("supportive", "editing_required")
        sure = ruling.scores.get(ruling.verdict, 1.0) if speaks else float(ruling.verdict == "irrelevant")
        worth = sure * considered[check.evidence].relevance
        return speaks, not foreign, not ruling.lowered, worth, ruling.verdict == "supportive"

    return max(range(len(checks)), key=lambda place: weight(checks[place]), default=None)


def _settled(task: Task, work: _Work, iteration: Iteration, watch: Watch) -> FactRecord:
    """The record with the round, its edit where one is asked for, and the outcome so far."""
    check, record = iteration.check, work.record
    outcome: Outcome = "no evidence"
    if check is not None:
        verdict = check.ruling.verdict
        outcome = {"supportive": "supported", "unparsed": "unparsed"}.get(verdict, "unsettled")  # type: ignore[assignment]
        if verdict == "editing_required":
            iteration = _edited(task, work, iteration, watch)
            outcome = "edited" if iteration.edit else "contradicted"
    elif record.iterations:
        outcome = record.outcome  # nothing new was found: what stood before stands
    if record.outcome == "contradicted" and outcome != "edited":
        outcome, iteration = "contradicted", replace(iteration, decided=None)  # the earlier passage decides
    by_case = _supported(record.supported_by_case, iteration, lambda one: one.source == "case")
    by_corpus = _supported(record.supported_by_corpus, iteration, lambda one: one.source == "corpus" or one.in_corpus)
    return replace(
        record,
        iterations=(*record.iterations, iteration),
        outcome=outcome,
        supported_by_case=by_case,
        supported_by_corpus=by_corpus,
    )


def _supported(before: bool | None, iteration: Iteration, wanted: Callable[[Evidence], bool]) -> bool | None:
    """Did a wanted passage bear the fact out, in this round or before; None where none was checked."""
    checks = [check for check in iteration.checks if wanted(iteration.considered[check.evidence])]
    return bool(before) or any(check.ruling.verdict == "supportive" for check in checks) if checks else before


def _edited(task: Task, work: _Work, iteration: Iteration, watch: Watch) -> Iteration:
    """The round with an edit by a passage that asks for one and speaks of the fact; that passage then decides.

    The best anchor comes first, but after one whose edit the verifier calls supportive itself.
    """
    asking = {c.evidence: n for n, c in enumerate(iteration.checks) if c.ruling.verdict == "editing_required"}
    near = [(anchor, work.considered[anchor.evidence]) for anchor in work.near if anchor.evidence in asking]
    asked = [(anchor, one) for anchor, one in near if speaks(work.fact, one.text, anchor, task.settings)]
    texts = tuple(f"{one.title}\n{one.text}" for one in work.considered)
    dated = work.dated if task.settings.event_order else ()
    for anchor, one in asked[:EDITED_FROM]:
        beside = others(anchor, work.near, texts, work.clause, dated)
        edit, exchanges = _edit(task, work.fact, one, anchor, beside, watch)
        iteration = replace(iteration, exchanges=(*iteration.exchanges, *exchanges))
        if edit is not None and (iteration.edit is None or _by_itself(edit)):
            iteration = replace(iteration, edit=edit, decided=asking[anchor.evidence])
        if edit is not None and _by_itself(edit):
            break
    return iteration


def _by_itself(edit: Edit) -> bool:
    """Does the verifier itself call the edited fact supportive, not only words, numbers or dates?"""
    scores = edit.ruling.scores if edit.ruling else {}
    return not scores or scores["supportive"] >= max(scores.values())


def _edit(
    task: Task, fact: str, evidence: Evidence, anchor: Anchor, beside: Others, watch: Watch
) -> tuple[Edit | None, tuple[Exchange, ...]]:
    """An edit that was checked again and agrees with the passage; none where editing is switched off."""
    tools = task.tools
    if not task.settings.edit:
        return None, ()
    if tools.editor is None:
        return anchored_edit(fact, evidence, anchor, beside, task.reader, watch), ()
    shown = task.settings.demonstrations
    edit, *exchanges = asked_edit(fact, evidence.text, tools.editor, watch, demonstrations=shown)
    if edit is None:
        return None, tuple(exchanges)
    if tools.judge is not None and not tools.measured:
        ruling, again = ask_verdict(edit.after, evidence.text, task.answer, tools.judge, watch, demonstrations=shown)
        exchanges.append(again)
    else:
        ruling = judge([(edit.after, evidence.text)], task.reader, watch)[0]
    return (replace(edit, ruling=ruling) if ruling.verdict == "supportive" else None), tuple(exchanges)


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


def measures(
    matrix: NDArray[np.float64], answer: str, revised_answer: str, by: str, precision: float | None = None
) -> Measures:
    """Attr_r, Attr_p (of pairs, unless it is given), Pres and their harmonic means from NLI(E_i, clause j)."""
    if precision is None:
        precision = attribution_precision([bool(v > ENTAILED) for v in np.diag(matrix)])
    recall, kept = attribution_recall(matrix), preservation(answer, revised_answer)
    return Measures(
        attr_r=recall,
        attr_p=precision,
        pres=kept,
        f1_rp=harmonic_mean(recall, kept),
        f1_pp=harmonic_mean(precision, kept),
        by=by,
        clauses=matrix.shape[1],
    )
