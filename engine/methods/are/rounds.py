"""One round of ARE on the facts that are open: search, verdicts, then an edit or another (ARE, sections 4.2 and 4.3).

All facts of a round are searched and judged together. Of a source `keep` passages are checked (the paper: one), and the
surest verdict on the most relevant of them decides. Irrelevant facts are searched again, as in the paper; contradicted
ones only for a passage that gives an edit: no later passage undoes a contradiction. Left out: web search.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from msgspec.structs import replace

from engine.answer.citations import cited_sentences, style_of, without_markers
from engine.core.progress import Watch
from engine.core.settings import Verification
from engine.methods.are.anchor import Anchor, Others, anchors, others
from engine.methods.are.anchored_edit import anchored_edit
from engine.methods.are.edit import asked_edit
from engine.methods.are.event_order import dated_parts
from engine.methods.are.evidence import cited_numbers, expand, find_evidence
from engine.methods.are.guards import Read, rulings_on, speaks
from engine.methods.are.outline import is_on_documents
from engine.methods.are.tools import Task
from engine.methods.are.values import (
    Check,
    Clause,
    Decomposition,
    Edit,
    Evidence,
    Exchange,
    FactRecord,
    Iteration,
    Outcome,
    Ruling,
)
from engine.methods.are.verdict import ask_verdict, judge

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
    considered: tuple[Evidence, ...] = ()
    near: Sequence[Anchor] = ()
    chosen: tuple[int, ...] = ()

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
    works, checked = [], found.text or task.answer
    for place, record in enumerate(records):
        if _open(record, number, task.settings):
            clause, fact = found.clauses[record.clause], record.fact.text
            queries: tuple[str, ...] = (fact,)
            exchange: Exchange | None = None
            if number > 1 and task.tools.expander is not None and _was_read(record.iterations[-1]):
                queries = record.iterations[-1].queries  # asked again, the model would say the same
            elif number:  # its expansions after the first round
                context = without_markers(clause.text) if number > 1 else ""
                queries, exchange = expand(fact, task.question, task.tools.expander, context, watch)
            said = _sentence(checked, clause)
            works.append(_Work(place, record, clause.text, said, queries, exchange))
    if not works:
        return
    cited = [cited_numbers(checked, found.clauses[work.record.clause]) for work in works]
    reader = task.reader if task.tools.measured else None
    facts, searched = [work.fact for work in works], [work.queries for work in works]
    considered = find_evidence(facts, searched, task.sources, task.settings, watch, cited, reader)
    for n, (work, evidence) in enumerate(zip(works, considered, strict=True)):
        near = anchors(work.fact, evidence, cited[n])
        chosen = _not_tried(work.record, evidence, near, task.settings)
        works[n] = dataclasses.replace(work, considered=evidence, near=near, chosen=chosen)
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


def _was_read(done: Iteration) -> bool:
    """Whether the reply of the expander could be parsed in that round."""
    return any(exchange.step == "expand" and exchange.parsed for exchange in done.exchanges)


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

    The probability of its verdict times the relevance of its passage is the largest; lowered ones come last. Of two
    alike, as those without scores are, a supportive one comes first.
    """

    def weight(check: Check) -> tuple[bool, bool, float, bool]:
        ruling = check.ruling
        speaks = ruling.verdict in ("supportive", "editing_required")
        sure = ruling.scores.get(ruling.verdict, 1.0) if speaks else float(ruling.verdict == "irrelevant")
        return speaks, not ruling.lowered, sure * considered[check.evidence].relevance, ruling.verdict == "supportive"

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
    by_case = _supported(iteration, lambda one: one.source == "case")
    by_corpus = _supported(iteration, lambda one: one.source == "corpus" or one.in_corpus)
    return replace(
        record,
        iterations=(*record.iterations, iteration),
        outcome=outcome,
        supported_by_case=_either(record.supported_by_case, by_case),
        supported_by_corpus=_either(record.supported_by_corpus, by_corpus),
    )


def _supported(iteration: Iteration, wanted: Callable[[Evidence], bool]) -> bool | None:
    """Did a wanted passage bear the fact out; None where none was checked."""
    checks = [check for check in iteration.checks if wanted(iteration.considered[check.evidence])]
    return any(check.ruling.verdict == "supportive" for check in checks) if checks else None


def _either(first: bool | None, second: bool | None) -> bool | None:
    return second if first is None else first or bool(second)


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
