"""The places of a case that a mark can be about, with what the machine says there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

from engine.cases.review import SENTENCE, Mark, MarkDraft, Review
from engine.core.errors import RecordError
from engine.core.values import Analysis, Answer, Case, Value
from engine.methods.are.backtrack import Decision, accepted_ids, exact, proposed, put_in
from engine.methods.are.values import AreRecord, Evidence, FactRecord, Placed


class MarkTarget(Value, frozen=True):
    """`target` is how a mark names the place, `label` how people read it, `machine` the verdict stored there."""

    target: str
    label: str
    machine: str = ""


def places(case: Case) -> list[MarkTarget]:
    """The case, its answer, its passages, its analyses, and every stored verdict."""
    found = [MarkTarget(target="case", label="The case"), MarkTarget(target="answer", label="The answer")]
    found += [
        MarkTarget(target=f"passage:{number}", label=f"Passage {number}: {passage.label}")
        for number, passage in enumerate(case.passages, start=1)
    ]
    found += [MarkTarget(target=f"analysis:{a.id}", label=f"Analysis: {a.id}") for a in case.analyses]
    return [*found, *(place for analysis in case.analyses for place in verdicts(analysis))]


def verdicts(analysis: Analysis) -> Iterator[MarkTarget]:
    """Every verdict in an analysis, labelled by the claim or fact that it is about; proposed edits too."""
    record = _record(analysis)
    if record is None:
        yield from _walk(analysis.stored(), f"analysis:{analysis.id}")
        return
    for name, fact in numbered(record).items():
        yield MarkTarget(target=f"fact:{name}", label=fact.fact.text, machine=verdict_of(fact))
    for edit in record.edits:
        label = f'Edit {edit.id}: "{edit.old}" becomes "{edit.new}"'
        yield MarkTarget(target=f"edit:{edit.id}", label=label, machine=proposed(edit))


def numbered(record: AreRecord) -> dict[str, FactRecord]:
    """The facts by the numbers that people read: "2.1" is the first fact of the second clause."""
    places = defaultdict[int, Iterator[int]](lambda: count(1))
    return {f"{fact.clause + 1}.{next(places[fact.clause])}": fact for fact in record.facts}


def verdict_of(fact: FactRecord) -> str:
    """The machine's verdict on a fact in the answer, or without one its outcome; "unsure" where it is in doubt."""
    if fact.ruling is None:
        return fact.outcome
    doubted = fact.ruling.unsure and fact.ruling.verdict in ("supportive", "editing_required")
    return "unsure" if doubted else fact.ruling.verdict


def decisions(record: AreRecord, review: Review) -> dict[str, Decision]:
    """The last decision on each edit of this check; one on another check's edit does not count."""
    found: dict[str, Decision] = {}
    for edit in record.edits:
        mark = review.overrides.get(f"edit:{edit.id}")
        if mark is not None and mark.machine == proposed(edit) and mark.value in ("accepted", "rejected"):
            found[edit.id] = "accepted" if mark.value == "accepted" else "rejected"
    return found


def rewritten(answer: Answer, review: Review) -> dict[int, Mark]:
    """The sentences that a reviewer wrote anew, by their numbers from 1; one of another text does not count."""
    found = {}
    for number, (start, end) in enumerate(answer.sentences, start=1):
        mark = review.overrides.get(f"{SENTENCE}{number}")
        if mark is not None and mark.machine == answer.text[start:end]:
            found[number] = mark
    return found


def rewrite(answer: Answer, number: int, text: str, author: str, reason: str) -> MarkDraft:
    """The mark that puts `text` in place of sentence `number`."""
    start, end = answer.sentences[number - 1]
    old = answer.text[start:end]
    target = f"{SENTENCE}{number}"
    return MarkDraft(kind="override", author=author, target=target, value=text, reason=reason, machine=old)


def revision(record: AreRecord, answer: Answer, review: Review) -> tuple[tuple[Placed, ...], dict[str, Decision]]:
    """The edits of a check, and the reviewers' own sentences as accepted edits in place of those they cover."""
    decided = decisions(record, review)
    own = []
    for number, mark in rewritten(answer, review).items() if record.checked == answer.text else ():
        start, end = answer.sentences[number - 1]
        own.append(
            Placed(
                id=f"s{number}",
                clause=-1,
                fact=-1,
                start=start,
                end=end,
                old=mark.machine,
                new=mark.value,
                status="placed",
                why=mark.reason,
                evidence=Evidence(text="", source="case"),
            )
        )
    edits = [e for e in record.edits if not any(o.start < e.end and e.start < o.end for o in own)]
    decided = {edit.id: decided[edit.id] for edit in edits if edit.id in decided}
    return (*edits, *own), decided | {edit.id: "accepted" for edit in own}


def edit_decisions(record: AreRecord, answer: Answer, review: Review) -> dict[str, str]:
    """The decision on each edit that has one, and why the text does not take one that was accepted."""
    known, decided = revision(record, answer, review)
    ids, taken = ({e.id for e in some} for some in (known, put_in(record.checked, known, accepted_ids(decided))))
    result: dict[str, str] = dict(decisions(record, review))
    for edit in record.edits:
        if result.get(edit.id) != "accepted" or edit.id in taken:
            continue
        why = "another edit changes it" if edit.id in ids else "a reviewer wrote the sentence anew"
        if not exact(edit, record.checked):
            why = "its place in the text is not known"
        result[edit.id] = f"accepted, not applied: {why}"
    return result


def leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """Every plain value in a JSON value with its path.

    >>> leaves({"a": [1, {"b": None}]})
    [('a[0]', 1), ('a[1].b', None)]
    """
    if isinstance(value, dict):
        return [leaf for key, part in value.items() for leaf in leaves(part, f"{path}.{key}" if path else str(key))]
    if isinstance(value, list | tuple):
        return [leaf for index, part in enumerate(value) for leaf in leaves(part, f"{path}[{index}]")]
    return [(path, value)]


def _record(analysis: Analysis) -> AreRecord | None:
    """The check of an answer that an analysis holds, if it is one that can be read."""
    with suppress(RecordError):
        return AreRecord.from_dict(analysis.result) if analysis.kind == "facts" else None
    return None


def _walk(value: Any, path: str) -> Iterator[MarkTarget]:
    if isinstance(value, dict):
        verdict = value.get("verdict")
        if isinstance(verdict, str):
            named = (str(value[name]) for name in ("text", "fact", "claim") if isinstance(value.get(name), str))
            yield MarkTarget(target=path, label=next(named, path), machine=verdict)
        for name, part in value.items():
            if isinstance(part, (dict, list)):
                yield from _walk(part, f"{path}.{name}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            if isinstance(part, (dict, list)):  # a token map has a hundred thousand numbers
                yield from _walk(part, f"{path}[{index}]")
