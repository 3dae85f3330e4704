"""One round of ARE on the facts that are open: search, verdicts, then an edit or another (ARE, sections 4.2 and 4.3).

All facts of a round are searched and judged together. Of a source `keep` passages are checked (the paper: one): a fact
that one of them bears out is not edited by another.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from engine.core.progress import Watch
from engine.core.settings import Verification
from engine.methods.are.anchor import Anchor, Others, anchors, others
from engine.methods.are.anchored_edit import anchored_edit
from engine.methods.are.edit import asked_edit
from engine.methods.are.event_order import dated_parts
from engine.methods.are.evidence import cited_numbers, expand, find_evidence
from engine.methods.are.guards import doubted, guarded, speaks
from engine.methods.are.tools import Task
from engine.methods.are.values import (
    Check,
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
FAR = 0.3  # shares of words by which another sentence says less of the fact


def one_round(
    task: Task, found: Decomposition, records: list[FactRecord], number: int, watch: Watch
) -> Iterator[FactRecord]:
    """One round on the facts that are open, each as it is settled and put into `records`."""
    wanted = [i for i, record in enumerate(records) if _open(record, number, task.settings)]
    if not wanted:
        return
    facts = [records[i].fact.text for i in wanted]
    asked = [_queries(task, found, records[i], number, watch) for i in wanted]
    cited = [cited_numbers(task.answer, found.clauses[records[i].clause]) for i in wanted]
    reader = task.tools.verifier if task.tools.measured else None
    searched = [queries for queries, _ in asked]
    considered = find_evidence(facts, searched, task.sources, task.settings, watch, cited, reader)
    clauses = [found.clauses[records[i].clause].text for i in wanted]
    sentences: list[Sequence[Anchor]] = [anchors(*each) for each in zip(facts, considered, cited, strict=True)]
    chosen = [
        _not_tried(records[i], evidence, near, task.settings)
        for i, evidence, near in zip(wanted, considered, sentences, strict=True)
    ]
    checked = _checks(task, facts, considered, chosen, sentences, watch)
    for done, i in enumerate(wanted):
        watch.step("verdicts and edits", done, len(wanted))
        queries, exchange = asked[done]
        checks, said = checked[done]
        iteration = Iteration(
            queries=tuple(queries),
            considered=considered[done],
            checks=checks,
            decided=deciding(checks, considered[done], sentences[done]),
            exchanges=(*([exchange] if exchange else []), *said),
        )
        records[i] = _settled(task, records[i], clauses[done], iteration, sentences[done], watch)
        yield records[i]


def _open(record: FactRecord, number: int, settings: Verification) -> bool:
    """Is the fact still to be worked on in this round."""
    return number == 0 or (settings.re_retrieval and record.outcome in ("unsettled", "contradicted", "no evidence"))


def _queries(
    task: Task, found: Decomposition, record: FactRecord, number: int, watch: Watch
) -> tuple[tuple[str, ...], Exchange | None]:
    """The fact itself in the first round, its expansions after that."""
    if number == 0:
        return (record.fact.text,), None
    context = found.clauses[record.clause].text if number > 1 else ""
    return expand(record.fact.text, task.question, task.tools.expander, context, watch)


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
    task: Task,
    facts: Sequence[str],
    considered: Sequence[Sequence[Evidence]],
    chosen: Sequence[Sequence[int]],
    sentences: Sequence[Sequence[Anchor]],
    watch: Watch,
) -> list[tuple[tuple[Check, ...], tuple[Exchange, ...]]]:
    """The rulings on every chosen passage, facts judged together by the verifier, one by one by a language model."""
    pairs = [(fact, seen[i].text) for fact, seen, places in zip(facts, considered, chosen, strict=True) for i in places]
    tools, exchanges = task.tools, []
    asked: list[Ruling] = []
    if tools.judge is not None:
        for done, (fact, text) in enumerate(pairs):
            watch.step("verdicts", done, len(pairs))
            ruling, exchange = ask_verdict(
                fact, text, task.answer, tools.judge, watch, demonstrations=tools.demonstrations
            )
            asked.append(ruling)
            exchanges.append(exchange)
    own = judge(pairs, tools.verifier, watch) if tools.measured else []
    if own:
        spots = [
            ({a.evidence: a for a in near}[i], _dated(seen))
            for near, seen, places in zip(sentences, considered, chosen, strict=True)
            for i in places
        ]
        own = [
            guarded(ruling, fact, text, anchor, task.settings, dated)
            for ruling, (fact, text), (anchor, dated) in zip(own, pairs, spots, strict=True)
        ]
        read = [(f, seen[i]) for f, seen, places in zip(facts, considered, chosen, strict=True) for i in places]
        own = doubted(own, read, task.sources.embedder, task.settings)
    result = []
    at = 0
    for places in chosen:
        rows = range(at, at + len(places))
        checks = tuple(
            Check(evidence=place, ruling=own[row] if own else asked[row], second=asked[row] if own and asked else None)
            for place, row in zip(places, rows, strict=True)
        )
        result.append((checks, tuple(exchanges[row] for row in rows) if exchanges else ()))
        at += len(places)
    return result


def _dated(considered: Sequence[Evidence]) -> tuple[str, ...]:
    """The parts of all passages considered that name a day."""
    return tuple(part for one in considered for part in dated_parts(one.text, one.title))


def deciding(checks: Sequence[Check], considered: Sequence[Evidence] = (), near: Sequence[Anchor] = ()) -> int | None:
    """The check that decides: a supportive one before one that asks for an edit before the rest.

    Of several supportive ones the surest decides, of several that ask for an edit the one whose passage is most like
    the fact: a passage about something else contradicts it surely, too; one that a guard lowered comes last. A
    supportive passage whose sentences say far less of the fact (`near`) than one that asks for an edit and lacks a
    number or name of it does not come first.
    """
    rank = {"supportive": 3, "editing_required": 2, "irrelevant": 1, "unparsed": 0}
    worths = {anchor.evidence: anchor.worth for anchor in near}
    lacking = {anchor.evidence for anchor in near if anchor.lacking}
    asking = [c for c in checks if c.ruling.verdict == "editing_required" and c.evidence in lacking]
    closest = max((worths[check.evidence] for check in asking), default=0.0)

    def worth(place: int) -> tuple[float, float]:
        check = checks[place]
        ruling = check.ruling
        sure = ruling.scores.get(ruling.verdict, 0.0) if ruling.verdict != "irrelevant" else 0.0
        alike = considered[check.evidence].score if considered and ruling.verdict == "editing_required" else sure
        far = ruling.verdict == "supportive" and worths.get(check.evidence, closest) < closest - FAR
        return rank[ruling.verdict] - 2 * far - 0.5 * ruling.lowered, alike

    return max(range(len(checks)), key=lambda place: (*worth(place), -place)) if checks else None


def _settled(
    task: Task, record: FactRecord, clause: str, iteration: Iteration, near: Sequence[Anchor], watch: Watch
) -> FactRecord:
    """The record with the round, its edit where one is asked for, and the outcome so far."""
    check = iteration.check
    outcome: Outcome = "no evidence"
    if check is not None and iteration.evidence is not None:
        verdict = check.ruling.verdict
        outcome = {"supportive": "supported", "unparsed": "unparsed"}.get(verdict, "unsettled")  # type: ignore[assignment]
        if verdict == "editing_required":
            iteration = _edited(task, record.fact.text, clause, iteration, near, watch)
            outcome = "edited" if iteration.edit else "contradicted"
    elif record.iterations:
        outcome = record.outcome  # nothing new was found: what stood before stands
    if outcome == "unsettled" and record.outcome == "contradicted":
        outcome = "contradicted"
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


def _edited(
    task: Task, fact: str, clause: str, iteration: Iteration, near: Sequence[Anchor], watch: Watch
) -> Iteration:
    """The round with an edit by a passage that asks for one and speaks of the fact; that passage then decides.

    The best anchor comes first, but after one whose edit the verifier calls supportive itself.
    """
    asking = {c.evidence: n for n, c in enumerate(iteration.checks) if c.ruling.verdict == "editing_required"}
    read = {a: iteration.considered[a.evidence].text[a.start : a.end] for a in near if a.evidence in asking}
    asked = [anchor for anchor, text in read.items() if speaks(fact, text, anchor, task.settings)]
    for anchor in asked[:EDITED_FROM]:
        evidence = iteration.considered[anchor.evidence]
        beside = dataclasses.replace(
            others(anchor, near),
            dated=_dated(iteration.considered) if task.settings.event_order else (),
            texts=tuple(f"{one.title}\n{one.text}" for one in iteration.considered),
            clause=clause,
        )
        edit, exchange = _edit(task, fact, evidence, anchor, beside, watch)
        said = (*iteration.exchanges, *([exchange] if exchange else []))
        iteration = replace(iteration, exchanges=said)
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
) -> tuple[Edit | None, Exchange | None]:
    """An edit that was checked again and agrees with the passage; none where editing is switched off."""
    tools = task.tools
    if not task.settings.edit:
        return None, None
    if tools.editor is None:
        return anchored_edit(fact, evidence, anchor, beside, tools.verifier, watch), None
    shown = tools.demonstrations
    edit, exchange = asked_edit(fact, evidence.text, tools.editor, watch, demonstrations=shown)
    if edit is None:
        return None, exchange
    if tools.judge is not None and not tools.measured:
        ruling = ask_verdict(edit.after, evidence.text, task.answer, tools.judge, watch, demonstrations=shown)[0]
    else:
        ruling = judge([(edit.after, evidence.text)], tools.verifier, watch)[0]
    return (replace(edit, ruling=ruling) if ruling.verdict == "supportive" else None), exchange
