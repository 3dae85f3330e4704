"""Check and edit the bank drafts with planted errors: how many errors are mended, how many correct facts spoilt.

Part of `python -m bench.facts`. Rules and settings were made on the first thirty drafts and on most later ones. The
last ten drafts with an even number (v02, v04, ...) were held out: only these shares were read.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bench.results import table
from engine.core.settings import Verification
from engine.corpus.worlds import Draft, PlantedError, World, load_world
from engine.methods.are.are import check_answer
from engine.methods.are.backtrack import revised
from engine.methods.are.evidence import Sources
from engine.methods.are.tools import Task, Tools
from engine.methods.are.values import AreRecord, FactRecord
from engine.models.embedder import load_embedder
from engine.models.protocols import Entailment

Row = dict[str, Any]
KINDS = ("amount", "date", "owner", "order", "unsupported")


def parts(world: World) -> dict[str, Sequence[Draft]]:
    """The drafts by how much was read of them while rules and settings were made."""
    unread = [draft.id.startswith("v") and int(draft.id[1:]) % 2 == 0 for draft in world.more_drafts]
    return {
        "first thirty": world.drafts,
        "later, read": [draft for draft, held in zip(world.more_drafts, unread, strict=True) if not held],
        "later, held out": [draft for draft, held in zip(world.more_drafts, unread, strict=True) if held],
    }


def drafts(count: int, verifier: Entailment) -> Row:
    """Planted errors flagged and mended and correct facts changed, by part, and each error's outcome.

    `mended`: put in by the run itself, up to a perfect's auxiliary ("had received", "received"; "had been issued", "was
    issued"); `to_the_letter`: without that allowance; `of_truths`: of the errors that have a truth to be mended to.
    `with_suggestions`: the reader who accepts every suggestion has the truth; a claim from nowhere can only be mended
    that way. `correct_flagged` and `offered_for_deletion` are the price: of the correct facts.
    """
    world, embedder = load_world("bank-investigation"), load_embedder()
    found: Row = {"parts": {}, "cases": [], "spoilt": []}
    rows = []
    for name, all_of_them in parts(world).items():
        started = time.perf_counter()
        chosen = all_of_them[:count]
        mine = [_outcomes(draft, _checked(world, draft, verifier, embedder)) for draft in chosen]
        rows += mine
        found["parts"][name] = {**_shares(mine), "seconds_a_draft": (time.perf_counter() - started) / len(chosen)}
    found["parts"]["together"] = _shares(rows)
    found["cases"] = [case for row in rows for case in row["cases"]]
    found["spoilt"] = [case for row in rows for case in row["spoilt"]]
    return found


def _outcomes(draft: Draft, record: AreRecord) -> Row:
    """The outcomes of a draft's errors and of its correct facts."""
    fine = [number for number in range(len(record.facts)) if not _holds_error(draft, record, number)]
    deletions = [(edit.start, edit.end) for edit in record.edits if edit.status == "suggestion" and not edit.new]
    return {
        "cases": [_planted(draft, error, record) for error in draft.errors],
        "correct": len(fine),
        "doubted": sum(_flagged(record.facts[number]) for number in fine),
        "spoilt": [_spoilt(draft, record, number) for number in fine if _changed(record, number)],
        "deletions": sum(_meets(record, number, deletions) for number in fine),
    }


def _shares(rows: Sequence[Row]) -> Row:
    cases = [case for row in rows for case in row["cases"]]
    correct = sum(row["correct"] for row in rows)
    of = lambda kind: [case for case in cases if case["kind"] == kind]  # noqa: E731
    share = lambda key, some: round(sum(case[key] for case in some) / len(some), 3) if some else None  # noqa: E731
    return {
        "flagged": share("flagged", cases),
        "mended": share("mended", cases),
        "of_truths": share("mended", [case for case in cases if case["right"]]),
        "to_the_letter": share("to_the_letter", cases),
        "with_suggestions": share("with_suggestions", cases),
        "n_errors": len(cases),
        "by_kind": {
            kind: [share("mended", of(kind)), share("with_suggestions", of(kind)), len(of(kind))] for kind in KINDS
        },
        "correct_changed": round(sum(len(row["spoilt"]) for row in rows) / correct, 3),
        "correct_flagged": round(sum(row["doubted"] for row in rows) / correct, 3),
        "offered_for_deletion": round(sum(row["deletions"] for row in rows) / correct, 3),
        "n_correct": correct,
    }


def _flagged(fact: FactRecord) -> bool:
    return fact.ruling is None or fact.ruling.verdict in ("editing_required", "irrelevant")


def _changed(record: AreRecord, number: int) -> bool:
    return any(edit.fact == number and edit.status == "placed" for edit in record.edits)


def _spoilt(draft: Draft, record: AreRecord, number: int) -> Row:
    """A correct fact that an edit changed, with the passage it was edited from."""
    made = [[edit.old, edit.new] for edit in record.edits if edit.fact == number]
    fact = record.facts[number]
    return {
        "draft": draft.id,
        "fact": fact.fact.text,
        "edits": made,
        "evidence": fact.evidence.text if fact.evidence else "",
    }


def _checked(world: World, draft: Draft, verifier: Entailment, embedder: Any) -> AreRecord:
    question = world.question(draft.question_id)
    sources = Sources(embedder=embedder, case=world.given_passages(question))
    settings = Verification(evidence_from="case")
    return check_answer(Task(question.question, draft.draft, sources, Tools(verifier), settings))


def _span(draft: Draft, error: PlantedError) -> tuple[int, int]:
    start = draft.draft.index(error.wrong)
    return start, start + len(error.wrong)


def _holds_error(draft: Draft, record: AreRecord, number: int) -> bool:
    return _meets(record, number, [_span(draft, error) for error in draft.errors])


def _meets(record: AreRecord, number: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether the fact has words from one of the answer's spans."""
    pieces = record.facts[number].fact.pieces
    return any(p.answer < end and start < p.answer + p.length for p in pieces for start, end in spans)


def _planted(draft: Draft, error: PlantedError, record: AreRecord) -> Row:
    start, end = _span(draft, error)
    touched = [
        fact for fact in record.facts if any(p.answer < end and start < p.answer + p.length for p in fact.fact.pieces)
    ]
    flagged = any(map(_flagged, touched))
    here = [edit for edit in record.edits if edit.start < end and start < edit.end]
    suggested = revised(record.answer, record.edits, {edit.id for edit in record.edits})
    return {
        "draft": draft.id,
        "kind": error.kind,
        "wrong": error.wrong,
        "right": error.right,
        "flagged": flagged or not touched,
        "mended": bool(here) and _true(draft, error, record.revised),
        "to_the_letter": bool(here) and _true(draft, error, record.revised, plain=str),
        "with_suggestions": bool(here) and _true(draft, error, suggested),
        "edits": [[edit.old, edit.new, edit.status] for edit in here],
        "outcomes": [fact.outcome for fact in touched],
    }


def _without_perfect(text: str) -> str:
    """The text without perfect auxiliaries ("had been issued", "was issued"): the truth is the same."""
    return re.sub(r"\b(?:had|has|have) ", "", re.sub(r"\b(?:(?:had|has|have) been|were)\b", "was", text))


def _true(draft: Draft, error: PlantedError, text: str, plain: Callable[[str], str] = _without_perfect) -> bool:
    """Whether the truth replaced the error and its context stayed. An unsupported claim must be deleted whole."""
    start, end = _span(draft, error)
    if not error.right:
        before, after = draft.draft[:start].rstrip()[-12:], draft.draft[end:].lstrip()[:12]
        return error.wrong.strip() not in text and " ".join((before, after)).strip() in text
    others = [at for at, _ in (_span(draft, other) for other in draft.errors) if at > end]  # which may be mended, too
    behind = draft.draft[end : min(others, default=None)]
    after = re.match(r".{0,4}\S*\s?", behind)  # whole words, as `plain` reads words
    return plain(f"{draft.draft[start - 1 : start]}{error.right}{after.group() if after else ''}") in plain(text)


def tables(found: Row) -> Iterator[str]:
    """The shares by part and by kind of error, as Markdown."""
    heads = (
        "drafts | errors | flagged | mended | mended of those with a truth | to the letter | and with suggestions"
        " | correct facts | flagged | changed | offered for deletion"
    )
    keys = ("n_errors", "flagged", "mended", "of_truths", "to_the_letter", "with_suggestions")
    keys += ("n_correct", "correct_flagged", "correct_changed", "offered_for_deletion")
    yield from table(heads, ((name, *(part[key] for key in keys)) for name, part in found["parts"].items()))
    yield ""
    kinds = found["parts"]["together"]["by_kind"].items()
    rows = ((kind, count, mended, suggested) for kind, (mended, suggested, count) in kinds)
    yield from table("kind of error | errors | mended | and with suggestions", rows)
