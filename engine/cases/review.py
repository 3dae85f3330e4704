"""Human marks: notes, relevance labels, verdict overrides, status and ratings, in an append-only hash-chained history.

Each entry holds the hash of the entry before it and of the case as it was. The chain detects an entry that was changed,
taken out of the middle or put in. It does not detect a history that was rewritten as a whole or cut at its end: against
these there are the head hash, which the report prints to be kept elsewhere, and signatures. A machine's verdict is
never replaced: an override is kept next to it, with its reason.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from msgspec.structs import replace

from engine.core.canonical import content_hash, digest
from engine.core.errors import FileError, InputError, raised_as
from engine.core.values import Case, Value
from engine.methods.judge import LEVELS
from engine.methods.raise_.relevance import Rating, Ratings, question_hash
from engine.methods.raise_.values import Solution

# Signatures: HMAC-SHA256 under the key file that `GROUNDWORK_SIGNING_KEY` names, kept outside the library. Whoever has
# only the library can neither verify nor sign.

VARIABLE = "GROUNDWORK_SIGNING_KEY"
SHORTEST = 16  # bytes; a shorter key could be guessed


def signing_key() -> bytes | None:
    """The key, or None where no file is named; raise `FileError` for a file that is absent, unreadable or too short."""
    path = os.environ.get(VARIABLE)
    if not path:
        return None
    way_out = f"Correct the path, or unset {VARIABLE} to review without signatures."
    with raised_as(FileError, f"The signing key file that {VARIABLE} names cannot be read", way_out, OSError):
        key = Path(path).read_bytes().strip()
    if len(key) < SHORTEST:
        raise FileError(
            f"The signing key has {len(key)} bytes; at least {SHORTEST} are needed. Write a longer one, for example"
            " with: openssl rand -hex 32."
        )
    return key


def key_name(key: bytes) -> str:
    """A public name of a key: it tells two keys apart and gives neither away."""
    return hmac.new(key, b"groundwork: name of this key", hashlib.sha256).hexdigest()[:12]


def sign(key: bytes, digest: str) -> str:
    """The signature of a hash, hex."""
    return hmac.new(key, digest.encode("ascii"), hashlib.sha256).hexdigest()


Kind = Literal["note", "relevance", "override", "status", "withdrawal", "version"]
STATUSES = ("open", "in review", "signed off")
RELEVANCE = ("relevant", "not relevant")
MARKED = {True: "relevant", False: "not relevant", None: "not marked"}
"""A passage's label in words."""
Conclusion = Literal["stands", "stands as edited", "partly stands", "does not stand"]
CONCLUSIONS: tuple[Conclusion, ...] = get_args(Conclusion)
"""The reviewer's conclusion on the whole answer at sign-off; stored as their verdict on "answer".

"partly stands" excepts the sentences that are not borne out and still in the text.
"""
ABSENT = "not in these documents"
"""The reviewer's verdict on "answer" where the documents do not answer the question."""
WITHDRAWABLE: tuple[Kind, ...] = ("note", "relevance", "override")
SENTENCE = "sentence:"  # the place of a sentence, by its number from 1
LONGEST = 20_000  # characters of a note or a reason


class MarkDraft(Value, frozen=True):
    """A mark that a reviewer wants to add.

    `target` is "case", "answer", "passage:3", "fact:1.2", "edit:4", "analysis:ID" or, for a withdrawal, "entry:5".
    `value` is the note's text, "relevant" or "not relevant", the verdict, or the status; `machine` is what the
    machine says at the same place, kept beside an override. An override of "sentence:3" is the sentence as the reviewer
    writes it, empty to take it out; its `machine` is the sentence as it was. A decision on an edit needs no `reason`.
    """

    kind: Kind
    author: str
    value: str = ""
    target: str = "case"
    reason: str = ""
    machine: str = ""
    source: str = ""

    @property
    def place(self) -> str:
        """The target as people read it: "fact 1.2"."""
        return self.target.replace(":", " ", 1)


class Mark(MarkDraft, frozen=True, kw_only=True):
    """An entry of the history. `content` is the hash of the case as it stood; `source` the entry it was taken from."""

    case: str
    number: int
    time: str
    content: str
    previous: str = ""
    hash: str = ""
    key: str = ""
    signature: str = ""


class Review(Value, frozen=True):
    """The result of the history: the current marks and the status."""

    status: str = "open"
    reviewer: str = ""
    time: str = ""
    notes: tuple[Mark, ...] = ()
    labels: dict[int, Mark] = {}
    overrides: dict[str, Mark] = {}
    head: str = ""

    @property
    def conclusion(self) -> Mark | None:
        """The conclusion of the sign-off; None before it, or if it was signed off without a conclusion."""
        mark = self.overrides.get("answer")
        return mark if mark and mark.value in CONCLUSIONS and self.status == "signed off" else None

    @property
    def absent(self) -> Mark | None:
        """The reviewer's verdict that the documents do not answer the question."""
        mark = self.overrides.get("answer")
        return mark if mark and mark.value == ABSENT else None


@dataclass(frozen=True)
class Chain:
    """The check of a history: `problem` is empty where it holds; `path` names the entry that does not fit."""

    head: str = ""
    entries: int = 0
    signed: int = 0
    verified: int = 0
    problem: str = ""
    path: str = ""

    @property
    def protection(self) -> str:
        """In words: what a change of this history would be detected by."""
        if self.problem:
            return self.problem
        if not self.entries:
            return "There are no review entries yet."
        tail = "Store the head hash elsewhere: only it reveals entries removed from the end."
        if not self.signed:
            return (
                "The history is hash-chained but not signed. It detects accidental or partial changes. Anyone who "
                f"can write to the library could replace the whole history. {tail}"
            )
        if self.verified == self.entries:
            return f"Every entry is signed and verified: changing one requires the key. {tail}"
        if self.verified:
            return f"{self.verified} of {self.entries} entries are signed and verified, the others are not. {tail}"
        return f"{self.signed} of {self.entries} entries are not verified: their signing key is missing. {tail}"


def status_name(status: str) -> str:
    """A status in words.

    >>> status_name("open"), status_name("in review")
    ('not reviewed', 'in review')
    """
    return "not reviewed" if status == "open" else status


def sign_off(author: str, conclusion: Conclusion, reason: str, machine: str = "") -> tuple[MarkDraft, MarkDraft]:
    """The marks of a sign-off: the conclusion, next to the check's result (`machine`), then the status."""
    said = MarkDraft(
        kind="override",
        author=author,
        target="answer",
        value=conclusion,
        reason=reason,
        machine=machine or "not checked",
    )
    return said, MarkDraft(kind="status", author=author, value="signed off")


def append(case: Case, history: Sequence[Mark], draft: MarkDraft, time: str, key: bytes | None = None) -> Mark:
    """The next entry of a case's history; raise `InputError` for a draft that says nothing or not enough.

    A sign-off comes after the conclusion (`sign_off` makes both); older histories have some without one.
    """
    check_draft(draft, len(case.passages), history)
    if draft.kind == "withdrawal":  # asked of new entries only: an old history stays readable
        entry = next(mark for mark in history if draft.target == f"entry:{mark.number}")
        if entry.kind not in WITHDRAWABLE:
            raise InputError(
                f"Entry {entry.number} is a {entry.kind}, which stays. You can withdraw notes, labels and overrides."
            )
    if (draft.kind, draft.value) == ("status", "signed off"):
        said = review_of(history).overrides.get("answer")
        if said is None or said.value not in CONCLUSIONS:
            listed = ", ".join(CONCLUSIONS)
            raise InputError(f"A sign-off needs your conclusion on the answer, with a reason. Write one of: {listed}.")
    mark = Mark(
        **draft.to_dict(),
        case=case.id,
        number=len(history) + 1,
        time=time,
        content=content_hash(case),
        previous=history[-1].hash if history else "",
        key=key_name(key) if key else "",
    )
    sealed = replace(mark, hash=entry_hash(mark))
    return replace(sealed, signature=sign(key, sealed.hash)) if key else sealed


def entry_hash(mark: Mark) -> str:
    """Hash of an entry without its own hash and signature."""
    return digest({k: v for k, v in mark.to_dict().items() if k not in ("hash", "signature")})


def check_draft(draft: MarkDraft, passages: int, history: Sequence[Mark]) -> None:
    """Raise `InputError` where a draft lacks what its kind needs."""
    if not draft.author.strip():
        raise InputError("The reviewer's name is missing. Enter one so that others know who made this mark.")
    texts = (draft.author, draft.value, draft.target, draft.reason, draft.machine)
    if any("\ud800" <= character <= "\udfff" for text in texts for character in text):
        raise InputError("The text is not valid UTF-8. Set the terminal to UTF-8 and write it again.")
    if max(len(draft.value), len(draft.reason), len(draft.machine)) > LONGEST:
        raise InputError(f"The text is longer than {LONGEST:,} characters. Shorten it, or split it into several notes.")
    if draft.kind == "note" and not draft.value.strip():
        raise InputError("The note is empty. Write what you found.")
    if draft.kind == "status" and draft.value not in STATUSES:
        raise InputError(f"{draft.value!r} is not a status. Choose one of: {', '.join(STATUSES)}.")
    said = draft.value.strip() or draft.target.startswith(SENTENCE)
    given = draft.reason.strip() or draft.target.startswith("edit:")  # the edit says why; a click decides on it
    if draft.kind == "override" and not said:
        raise InputError("Enter your verdict. The machine's verdict stays visible next to it.")
    if draft.kind == "override" and not given:
        raise InputError("Give a reason. The history keeps it with the verdict.")
    if draft.kind == "relevance" and draft.value not in RELEVANCE:
        raise InputError(f"{draft.value!r} is not a label. Choose one of: {', '.join(RELEVANCE)}.")
    if draft.kind == "relevance" and draft.target not in {f"passage:{number}" for number in range(1, passages + 1)}:
        raise InputError(
            f"{draft.target!r} is not a passage of this case. Write passage: and a number from 1 to {passages}."
        )
    if draft.kind == "withdrawal" and draft.target not in {f"entry:{mark.number}" for mark in history}:
        raise InputError(f"There is no {draft.target!r} to withdraw. Write entry: and its number.")


def check_chain(history: Sequence[Mark], case_id: str, key: bytes | None = None) -> Chain:
    """Walk the history; the first entry that does not fit is named."""
    previous, signed, verified = "", 0, 0
    for index, mark in enumerate(history):
        problem = _misfit(mark, case_id, index + 1, previous)
        if not problem and key is not None and mark.signature and mark.key == key_name(key):
            verified += 1
            if not hmac.compare_digest(sign(key, mark.hash), mark.signature):
                problem = "its signature does not match the key it names"
        if problem:
            return Chain(
                head=history[-1].hash,
                entries=len(history),
                problem=f"The history was altered: entry {index + 1} was changed or moved ({problem}).",
                path=f"$.history[{index}]",
            )
        signed += bool(mark.signature)
        previous = mark.hash
    return Chain(head=previous, entries=len(history), signed=signed, verified=verified)


def _misfit(mark: Mark, case_id: str, number: int, previous: str) -> str:
    if mark.case != case_id:
        return "it belongs to another case"
    if mark.number != number:
        return f"it has the number {mark.number}"
    if mark.previous != previous:
        return "it does not follow the previous entry"
    return "" if mark.hash == entry_hash(mark) else "its content does not match its hash"


def review_of(history: Sequence[Mark]) -> Review:
    """The marks that stand: the last label and override of each place, all notes, the last status; none withdrawn."""
    withdrawn = {mark.target for mark in history if mark.kind == "withdrawal"}
    standing = [mark for mark in history if f"entry:{mark.number}" not in withdrawn]
    status = next((mark for mark in reversed(history) if mark.kind == "status"), None)
    labels = {number: mark for mark in standing if (number := _passage_of(mark)) is not None}
    return Review(
        status=status.value if status else "open",
        reviewer=status.author if status else "",
        time=status.time if status else "",
        notes=tuple(mark for mark in standing if mark.kind == "note"),
        labels=labels,
        overrides={mark.target: mark for mark in standing if mark.kind == "override"},
        head=history[-1].hash if history else "",
    )


def withdrawals(history: Sequence[Mark], kind: Kind, target: str, author: str) -> tuple[MarkDraft, ...]:
    """Withdrawals of all marks of this kind at a place: withdrawing only the last would uncover the others."""
    withdrawn = {mark.target for mark in history if mark.kind == "withdrawal"}
    standing = (mark for mark in history if (mark.kind, mark.target) == (kind, target))
    entries = (f"entry:{mark.number}" for mark in standing)
    return tuple(MarkDraft(kind="withdrawal", author=author, target=e) for e in entries if e not in withdrawn)


def _passage_of(mark: MarkDraft) -> int | None:
    """The passage that a relevance label is about; None for every other mark, and in a history that was made up."""
    found = re.fullmatch(r"passage:([0-9]+)", mark.target) if mark.kind == "relevance" else None
    return int(found[1]) if found else None


def with_labels(case: Case, review: Review) -> Case:
    """The case with the reviewers' relevance labels in place of those that came with its passages."""
    marked = {number: mark.value == "relevant" for number, mark in review.labels.items()}
    numbered = enumerate(case.passages, start=1)
    return replace(case, passages=tuple(replace(p, relevant=marked.get(n, p.relevant)) for n, p in numbered))


# Ratings of retrieved passages on four levels (RAISE, appendix C.3), kept next to what a model said.

REVIEWERS = "reviewers"


def rating_targets(solution: Solution, step: int, passage: str) -> tuple[str, str]:
    """The place that a mark names: a passage retrieved for a sub-question of this run; then its name in older marks.

    An older mark has the step's number alone, which another run of the case can give to another sub-question.
    """
    place = f"analysis:steps:{solution.method}:{solution.model}/step {step}/passage {passage}"
    asked = next(one for one in solution.steps if one.number == step)
    return f"{place}/question {question_hash(asked)}", place


def rating(solution: Solution, rated: Rating, raters: Sequence[Ratings], author: str) -> MarkDraft:
    """A reviewer's level as a mark, with what the models said of the same passage at the same step."""
    said = (f"{r.by}: {r.level(rated.step, rated.passage) or 'no level'}" for r in raters)
    return MarkDraft(
        kind="override",
        author=author,
        value=rated.level or "",
        target=rating_targets(solution, rated.step, rated.passage)[0],
        reason="rated step by step",
        machine="; ".join(said),
    )


def reviewers_ratings(solution: Solution, review: Review) -> Ratings:
    """The levels in the history, for every passage that the run retrieved."""
    found = []
    for step in solution.steps:
        for hit in (*step.kept, *step.dropped):
            places = rating_targets(solution, step.number, hit.passage.id)
            mark = next((review.overrides[place] for place in places if place in review.overrides), None)
            if mark and mark.value in LEVELS:  # one that was written by hand may be none
                found.append(Rating(step=step.number, passage=hit.passage.id, level=mark.value))
    return Ratings(method=solution.method, model=solution.model, by=REVIEWERS, ratings=tuple(found))
