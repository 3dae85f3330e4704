"""Backtracking (ARE, section 4.3): an edited fact goes back to its place in its own clause; all other characters stay.

A change is placed where every character that it replaces is a copy from the answer (`Fact.pieces`), so that the same
word elsewhere is never touched. What cannot be placed exactly, meets another edit, or makes its clause fail against the
evidence is a suggestion: shown, never put in by itself. The paper does not say how the place is found: this way is
ours. Left out: nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from engine.answer.citations import blanked, cited_sentences
from engine.core.progress import Watch
from engine.methods.are.decompose import plain
from engine.methods.are.values import Change, Clause, Decomposition, Evidence, Fact, FactRecord, Placed
from engine.models.protocols import Entailment


def place(change: Change, fact: Fact, clause: Clause, answer: str) -> tuple[int, int] | None:
    """[start, end) of the answer that the change of the fact is about; None where that is not certain.

    >>> from engine.methods.are.decompose import decompose
    >>> found = decompose("Ann won in 1990 and lost in 1990.").clauses[0]
    >>> place(Change(start=12, end=16, old="1990", new="1991"), found.facts[1], found, found.text)
    (28, 32)
    """
    origin = {p.fact + i: p.answer + i for p in fact.pieces for i in range(p.length)}
    lead = len(change.old) - len(change.old.lstrip())
    old = change.old.strip()
    start = change.start + lead
    if not old:
        return _between(change.start, change.end, origin, answer)
    if start not in origin or start + len(old) - 1 not in origin:
        return None
    first, last = origin[start], origin[start + len(old) - 1] + 1
    same = " ".join(answer[first:last].split()) == " ".join(old.split())
    return (first, last) if same and clause.start <= first < last <= clause.end else None


def _between(start: int, end: int, origin: dict[int, int], answer: str) -> tuple[int, int] | None:
    """Where something is put in between two characters: both copied, and nothing but white space between them."""
    before = next((origin[i] + 1 for i in range(start - 1, start - 3, -1) if i in origin), None)
    after = next((origin[i] for i in range(end, end + 2) if i in origin), None)
    if before is None or (after is not None and (after < before or answer[before:after].strip())):
        return None
    return before, before


def proposals(answer: str, found: Decomposition, records: Sequence[FactRecord]) -> list[Placed]:
    """Every change of every edited fact, placed where that is certain; equal ones of two facts once, a placed one."""
    result: list[Placed] = []
    for number, record in enumerate(records):
        edit, evidence = record.edit, record.evidence
        if edit is None or evidence is None:
            continue
        clause = found.clauses[record.clause]
        spots = [place(change, record.fact, clause, answer) for change in edit.changes]
        certain = all(spot is not None for spot in spots)
        for change, spot in zip(edit.changes, spots, strict=True):
            start, end = spot or (clause.start, clause.end)
            old, new = (answer[start:end], change.new.strip()) if spot else (change.old, change.new)
            if spot and start == end and new[:1].isalnum():
                new = f" {new}"  # put in between two words
            result.append(
                Placed(
                    id="",
                    clause=record.clause,
                    fact=number,
                    start=start,
                    end=end,
                    old=old,
                    new=new,
                    status="placed" if certain else "suggestion",
                    why=edit.why if certain else f"{edit.why}; its position in the clause is uncertain",
                    evidence=evidence,
                    ruling=edit.ruling,
                )
            )
    unique: dict[tuple[int, int, str, str], Placed] = {}
    for one in sorted(without_overlaps(result), key=lambda e: (e.start, e.end, e.status != "placed")):
        unique.setdefault((one.start, one.end, one.old, one.new), one)
    return [replace(edit, id=str(number)) for number, edit in enumerate(unique.values(), start=1)]


def without_overlaps(found: list[Placed]) -> list[Placed]:
    """Of edits that share characters the first stays placed, later ones become suggestions with all of their fact."""
    meeting: set[int] = set()
    for place, edit in enumerate(found):
        earlier = [other for other in found[:place] if other.status == "placed" and other.fact not in meeting]
        if edit.status == "placed" and any(_meet(edit, other) for other in earlier):
            meeting.add(edit.fact)
    return [_suggestion(edit, "it overlaps another edit") if edit.fact in meeting else edit for edit in found]


def _meet(one: Placed, other: Placed) -> bool:
    """Do two edits change the same characters, each to something else."""
    if (one.start, one.end) == (other.start, other.end):
        return one.new != other.new
    return one.start < other.end and other.start < one.end


def _suggestion(edit: Placed, why: str) -> Placed:
    return replace(edit, status="suggestion", why=f"{edit.why}; {why}") if edit.status == "placed" else edit


def clause_evidence(records: Sequence[FactRecord], clause: int) -> tuple[Evidence, ...]:
    """The evidence of the last round of each of a clause's facts, each passage once: E_i before it is joined."""
    found: dict[str, Evidence] = {}
    for record in records:
        done = record.last
        if record.clause == clause and done is not None and (evidence := done.evidence) is not None:
            found.setdefault(" ".join(evidence.text.split()), evidence)
    return tuple(found.values())


def revised(answer: str, edits: Sequence[Placed], accepted: Collection[str] | None = None) -> str:
    """The answer with what `put_in` gives; a deleted span takes a blank next to it along."""
    for edit in reversed(put_in(answer, edits, accepted)):
        start, end = edit.start, edit.end
        follows = answer[end : end + 1]
        if not edit.new and start and answer[start - 1] == " " and follows in ("", " ", ".", ","):
            start -= 1
        elif not edit.new and not start and follows == " ":
            end += 1
        answer = answer[:start] + edit.new + answer[end:]
    return answer


def in_order(edits: Iterable[Placed]) -> list[Placed]:
    """By place; of those that begin at one, what is only inserted comes first, and the longest next."""
    return sorted(edits, key=lambda edit: (edit.start, edit.end > edit.start, -edit.end))


def put_in(answer: str, edits: Sequence[Placed], accepted: Collection[str] | None = None) -> list[Placed]:
    """Those of the accepted edits (None: all placed ones) that the text takes, in its order.

    Each names its place exactly, and none before it has changed it.
    """
    wanted = [e for e in edits if (e.status == "placed" if accepted is None else e.id in accepted)]
    result: list[Placed] = []
    for edit in in_order(wanted):
        if exact(edit, answer) and (not result or edit.start >= result[-1].end):
            result.append(edit)
    return result


def exact(edit: Placed, answer: str) -> bool:
    """Does the edit name its place exactly, so that it can be put in."""
    return answer[edit.start : edit.end] == edit.old


def hold_clauses(
    found: Decomposition, records: Sequence[FactRecord], edits: Sequence[Placed], verifier: Entailment, watch: Watch
) -> list[Placed]:
    """Check each edited clause against its own evidence E_i; edits that make their clause fail become suggestions.

    All changes of one fact are judged together; a table's row is left out, since no verifier reads it as a sentence.
    The clause fails where the verifier calls it contradicted and did not before, with a probability that the edit
    raised.
    """
    by_fact: dict[int, list[Placed]] = {}
    for edit in edits:
        if edit.status == "placed" and "|" not in found.clauses[edit.clause].text:
            by_fact.setdefault(edit.fact, []).append(edit)
    pairs = []
    for mine in by_fact.values():
        clause = found.clauses[mine[0].clause]
        evidence = "\n".join(one.text for one in clause_evidence(records, mine[0].clause))
        pairs += [(plain(clause.text), evidence), (plain(edited(clause, mine)), evidence)]
    judged = verifier.judge(pairs, watch) if pairs else []
    failing = {
        fact
        for fact, before, after in zip(by_fact, judged[::2], judged[1::2], strict=True)
        if after.verdict == "editing_required" != before.verdict
        and after.scores["editing_required"] > before.scores["editing_required"]
    }
    return [
        _suggestion(e, "with this edit the whole clause disagrees with its evidence") if e.fact in failing else e
        for e in edits
    ]


def edited(clause: Clause, edits: Sequence[Placed]) -> str:
    """The clause's text with those of the edits that were placed in it."""
    text = clause.text
    for edit in sorted((e for e in edits if e.status == "placed"), key=lambda e: -e.start):
        text = text[: edit.start - clause.start] + edit.new + text[edit.end - clause.start :]
    return text


# What a reviewer decided on edits, by their ids; a mark in the case's history names the edit by its text.
Decision = Literal["accepted", "rejected"]
_PROPOSAL = re.compile(r"\d+-\d+: (?P<old>.*?) -> (?P<new>.*)", re.DOTALL)


def accepted_ids(decisions: Mapping[str, Decision]) -> set[str]:
    """The ids of the edits that were accepted."""
    return {key for key, value in decisions.items() if value == "accepted"}


def proposed(edit: Placed) -> str:
    """An edit as a mark's machine side says it, so that a decision on another check's edit can be told apart."""
    return f"{edit.start}-{edit.end}: {edit.old} -> {edit.new}"


def change_said(proposal: str) -> str:
    """The text of an edit as `proposed` wrote it, without its offsets.

    >>> change_said("142-148: 89,000 -> 98,000"), change_said("9-12: So. -> ")
    ('89,000 → 98,000', 'So. → taken out')
    """
    found = _PROPOSAL.fullmatch(proposal)
    return f"{found['old'] or 'nothing'} → {found['new'] or 'taken out'}" if found else proposal


# Sentences and asides that no passage bears out or surely contradicts, offered for deletion.
#
# ARE leaves such text as it is (4.3) and so does a run here: the verdict is "nothing found that settles it", in every
# denominator. What a run can do is to offer it to the reader; it goes only where somebody accepts that.

WHY = "no passage bears it out: take {} out, or name its source"
_OPENS = re.compile(r",\s+(?:(?:and|who|whom|whose|which|where|when)\s+)?$")
_CLOSES = re.compile(r"\s*(?:[.,;:]|$)")


def offered(answer: str, found: Decomposition, records: Sequence[FactRecord], first: int) -> list[Placed]:
    """A suggestion, numbered from `first` on, for each whole sentence and each aside with nothing settled in it."""
    whole = {span for style in ("alce", "garage") for span in cited_sentences(answer, style)}
    result: list[Placed] = []
    for number, clause in enumerate(found.clauses):
        mine = [place for place, record in enumerate(records) if record.clause == number]
        open_ones = [place for place in mine if is_open(records[place])]
        done = records[open_ones[0]].last if open_ones else None
        if done is None or (evidence := done.evidence) is None:
            continue
        sentence = open_ones == mine and (clause.start, clause.end) in whole
        span = (clause.start, clause.end) if sentence else _aside(answer, [records[i] for i in mine])
        if span is None:
            continue
        result.append(
            Placed(
                id=str(first + len(result)),
                clause=number,
                fact=open_ones[0],
                start=span[0],
                end=span[1],
                old=answer[slice(*span)],
                new="",
                status="suggestion",
                why=WHY.format("the sentence" if sentence else "the aside"),
                evidence=evidence,
            )
        )
    return result


def is_open(record: FactRecord) -> bool:
    """Did nothing settle the fact, or only a contradiction that a guard lowered."""
    lowered = record.outcome == "contradicted" and record.ruling is not None and record.ruling.lowered
    return record.outcome == "unsettled" or lowered


def _aside(answer: str, records: Sequence[FactRecord]) -> tuple[int, int] | None:
    """The part said only by unsettled facts of a clause, if commas enclose it as one piece; with its commas.

    "Ann, who sold it in 2019, left": the part from the first comma up to the second, where that Ann left is settled.
    """
    said = [{p.answer + i for p in r.fact.pieces for i in range(p.length)} for r in records]
    settled = set().union(*(c for c, r in zip(said, records, strict=True) if not is_open(r)))
    own = sorted(set().union(*(c for c, r in zip(said, records, strict=True) if is_open(r))) - settled)
    if not own or not settled:
        return None
    start, end = own[0], own[-1] + 1
    opens, closes = _OPENS.search(answer, 0, start), _CLOSES.match(blanked(answer), end)
    left = re.sub(r"\W+", "", "".join(answer[i] for i in range(start, end) if i not in set(own)))
    if not opens or not closes or left:
        return None
    return opens.start(), end + (answer[end : end + 1] == ",")
