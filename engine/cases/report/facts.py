"""Atomic facts: tracked changes, every fact with its verdict and evidence, the attribution report before and after.

A reviewer's verdict on a fact and the decision on an edit stand beside the machine's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from engine.cases.places import decisions, numbered, verdict_of
from engine.cases.report.blocks import (
    Block,
    Cell,
    Code,
    Facts,
    Fold,
    Notice,
    Section,
    Table,
    cells,
    plain,
)
from engine.cases.report.edits import tracked_changes
from engine.cases.report.review import decided_by
from engine.cases.report.text import name_of
from engine.cases.review import Mark, Review
from engine.core.values import Analysis, Case
from engine.methods.are.facts import Exchange
from engine.methods.are.values import (
    MEANING,
    AreRecord,
    Evidence,
    FactRecord,
    Iteration,
    Measures,
    Report,
)
from engine.models.closed import listed

MEASURES = (
    ("Attr_r", "attr_r", "mean over clauses of the best evidence's probability to bear the clause out"),
    ("Attr_p", "attr_p", "share of clauses that their own evidence bears out whole"),
    ("Pres", "pres", "share of the characters that editing left as they were"),
    ("F1_RP", "f1_rp", "harmonic mean of Attr_r and Pres"),
    ("F1_PP", "f1_pp", "harmonic mean of Attr_p and Pres"),
)
"""Name, field and meaning of what the attribution report measures."""


def facts_section(case: Case, analysis: Analysis, review: Review) -> list[Block]:
    """The whole check of the answer."""
    record = AreRecord.from_dict(analysis.result)
    decided = decisions(record, review)
    facts = numbered(record)
    notes = [*record.notes, *([] if record.finished else ["The check was stopped; this is what was finished."])]
    blocks: list[Block] = [Facts(_made(record)), *(Notice(note) for note in notes)]
    blocks.append(_section("The answer with its edits", tracked_changes(record, decided, review)))
    blocks.append(_section("Facts and verdicts", _verdicts(case, record, facts, review)))
    blocks.append(_section("Evidence", _evidence(case, facts)))
    if record.report is not None:
        blocks.append(_section("Attribution report", _report(case, record, record.report)))
    exchanges = [*record.decomposition.exchanges, *_exchanges(facts.values())]
    if exchanges:
        blocks.append(Fold(f"What the language model was asked and replied ({len(exchanges)})", _asked(exchanges)))
    return blocks


def _section(title: str, blocks: Iterable[Block]) -> Section:
    return Section(title, tuple(blocks), level=4)


def _made(record: AreRecord) -> tuple[tuple[str, str], ...]:
    sources = {"both": "the case's passages and its corpus", "case": "the case's passages", "corpus": "the corpus"}
    came: dict[str, int] = {}
    for fact in record.facts:
        came[fact.outcome] = came.get(fact.outcome, 0) + 1
    return (
        ("Facts", f"{len(record.facts)} in {len(record.decomposition.clauses)} clauses"),
        ("What came of them", ", ".join(f"{count} {outcome}" for outcome, count in came.items()) or "nothing to check"),
        ("Decomposed by", record.decomposer),
        ("Verdicts by", record.verifier),
        ("Edits by", record.editor),
        ("Evidence from", sources[record.evidence_from]),
        ("Rounds at most", str(record.max_iterations)),
        ("Cost", f"{record.seconds:.1f} s"),
    )


# Verdicts and evidence


def _verdicts(case: Case, record: AreRecord, facts: dict[str, FactRecord], review: Review) -> list[Block]:
    if not facts:
        return [plain("The answer says nothing that could be checked.")]
    # What a verdict is worth is said once where it is the same for several facts.
    counts = Counter(fact.ruling.note for fact in facts.values() if fact.ruling)
    shared = {note for note, count in counts.items() if count > 1}
    blocks: list[Block] = [plain(f"{note}.", "note") for note in dict.fromkeys((record.measured, *shared)) if note]
    for number, clause in enumerate(record.decomposition.clauses):
        own = {name: fact for name, fact in facts.items() if fact.clause == number}
        rows = tuple(
            _fact_row(case, name, fact, review.overrides.get(f"fact:{name}"), shared) for name, fact in own.items()
        )
        columns = ("Fact", "Text", "Machine's verdict", "p", "Evidence", "Reviewer's verdict")
        caption = f"Clause {number + 1}: {' '.join(clause.text.split())}"
        blocks.append(Table(caption, columns, rows, numeric=frozenset({3})))
    return blocks


def _fact_row(case: Case, name: str, fact: FactRecord, mark: Mark | None, shared: set[str]) -> tuple[Cell, ...]:
    ruling = fact.ruling
    unsure = ", unsure" if ruling is not None and ruling.unsure else ""
    sure = ruling.scores.get(ruling.verdict) if ruling else None
    own = ruling.note if ruling and ruling.note not in shared else ""
    note = "; ".join(filter(None, (MEANING[fact.outcome], own)))
    return (
        Cell(name),
        Cell(fact.fact.text, note=_split_by(fact)),
        Cell(verdict_of(fact).replace("_", " ") + unsure, note=note),
        Cell("" if sure is None else f"{sure:.2f}"),
        _source(case, fact.evidence) if fact.evidence else Cell("none"),
        Cell(mark.value, note=decided_by(mark)) if mark else Cell("none"),
    )


def _split_by(fact: FactRecord) -> str:
    return "split by rules, because a reply could not be parsed" if fact.fact.fallback else ""


def _source(case: Case, evidence: Evidence) -> Cell:
    similar = f"similarity to the fact {evidence.score:.2f}"
    if evidence.number is not None:
        return Cell(f"passage {name_of(case, evidence.number)}", note=similar, link=_link(case, evidence.number))
    return Cell(f"corpus: {evidence.title or evidence.document}", note=similar)


def _link(case: Case, number: int) -> str:
    return f"passage-{number}" if 1 <= number <= len(case.passages) else ""


def _evidence(case: Case, facts: dict[str, FactRecord]) -> list[Block]:
    """The words of each passage that an outcome rests on, once; then every round."""
    resting: dict[str, list[str]] = {}
    held: dict[str, Evidence] = {}
    for name, fact in facts.items():
        if fact.evidence is not None:
            held.setdefault(fact.evidence.text, fact.evidence)
            resting.setdefault(fact.evidence.text, []).append(name)
    rows = tuple((_source(case, held[text]), Cell(text), Cell(", ".join(names))) for text, names in resting.items())
    blocks: list[Block] = []
    if rows:
        title = f"The passages that outcomes rest on ({len(rows)})"
        table = Table("Each passage once, with the facts that rest on it", ("Source", "Text", "Facts"), rows)
        blocks.append(Fold(title, (table,)))
    rounds = [_round_row(name, n, done) for name, fact in facts.items() for n, done in enumerate(fact.iterations, 1)]
    columns = ("Fact", "Round", "Searched with", "Considered", "Verdicts on those checked", "Edit")
    table = Table("What was searched, considered and checked", columns, tuple(rounds), numeric=frozenset({1, 3}))
    return [*blocks, *([Fold(f"Every round of every fact ({len(rounds)})", (table,))] if rounds else [])]


def _round_row(name: str, number: int, done: Iteration) -> tuple[Cell, ...]:
    said = []
    for place, check in enumerate(done.checks):
        seen = done.considered[check.evidence]
        source = f"passage {seen.number}" if seen.number is not None else f"corpus: {seen.title or seen.document}"
        decides = ", decides" if place == done.decided else ""
        said.append(f"{source}: {check.ruling.verdict.replace('_', ' ')}{_sure(check.ruling.scores)}{decides}")
    edit = f"{done.edit.before} becomes {done.edit.after}" if done.edit else ""
    return cells(name, str(number), " | ".join(done.queries), str(len(done.considered)), "; ".join(said), edit)


def _sure(scores: dict[str, float]) -> str:
    listed = ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in scores.items())
    return f" ({listed})" if listed else ""


def _exchanges(facts: Iterable[FactRecord]) -> list[Exchange]:
    return [exchange for fact in facts for done in fact.iterations for exchange in done.exchanges]


def _asked(exchanges: Iterable[Exchange]) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for exchange in exchanges:
        state = "" if exchange.parsed else ", which could not be parsed"
        asked, reply = (
            Code(exchange.prompt, f"Prompt: {exchange.step}"),
            Code(exchange.reply or listed(exchange.probabilities), f"Reply: {exchange.step}"),
        )
        blocks += [plain(f"{exchange.step}: the prompt, then the reply{state}", "note"), asked, reply]
    return tuple(blocks)


# The attribution report


def _report(case: Case, record: AreRecord, report: Report) -> list[Block]:
    before, after = report.before, report.after
    table = Table(
        f"Measures over {after.clauses} clauses, by {after.by}; all in 0 to 1",
        ("Measure", "Before editing", "After editing"),
        tuple(_measure_row(f"{name}: {what}", key, before, after) for name, key, what in MEASURES),
        numeric=frozenset({1, 2}),
    )
    rows = tuple(
        (
            Cell(str(clause.clause + 1)),
            Cell(clause.text),
            Cell("; ".join(_source(case, one).text for one in clause.evidence) or "none"),
            Cell(f"{clause.entails:.2f}"),
            Cell(f"{clause.best:.2f}"),
        )
        for clause in report.clauses
    )
    columns = ("Clause", "After editing", "Its evidence", "Entailed by it", "By the best of all")
    clauses = Table("What each clause rests on", columns, rows, numeric=frozenset({3, 4}))
    revised: list[Block] = []
    if record.revised != record.answer:
        revised = [Fold("The answer with every placed edit put in", (plain(record.revised, "answer"),))]
    return [table, clauses, *revised]


def _measure_row(name: str, key: str, before: Measures, after: Measures) -> tuple[Cell, ...]:
    return cells(name, f"{getattr(before, key):.3f}", f"{getattr(after, key):.3f}")
