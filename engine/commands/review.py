"""review, replay, compare."""

from __future__ import annotations

import getpass
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from engine.analyses.case_verdict import by_machine, check_conclusion, check_verdict
from engine.cases.case_file import read_case_file
from engine.cases.places import places
from engine.cases.review import RELEVANCE, SENTENCE, STATUSES, MarkDraft, append, check_chain, review_of, signing_key
from engine.cases.store import check_seen
from engine.commands.library import case_argument
from engine.commands.shared import emit, main, progress, set_option, workbench
from engine.core.errors import FileError, InputError, raised_as
from engine.core.files import now
from engine.core.values import Case
from engine.replay import replay as run_replay
from engine.report.compare import compare_cases, side


@main.command()
@case_argument
@click.option("--reviewer", default=None, help="Your name.  [default: the name of this account]")
@click.option("--note", help="Add a note.")
@click.option(
    "--on", "target", default="case", show_default=True, help="case, answer, passage:3, sentence:2, fact:1.2, edit:4."
)
@click.option("--relevant", type=int, multiple=True, metavar="N", help="Label passage N relevant.")
@click.option("--not-relevant", type=int, multiple=True, metavar="N", help="Label passage N not relevant.")
@click.option("--override", metavar="VERDICT", help="Your verdict at --on, next to the machine's; needs --reason.")
@click.option("--machine", default="", metavar="VERDICT", help="The machine's verdict, if not that of --on.")
@click.option("--reason", default="", help="Why.")
@click.option("--withdraw", type=int, multiple=True, metavar="N", help="Withdraw entry N; it stays in the history.")
@click.option("--status", type=click.Choice(STATUSES))
@click.option("--new-version", is_flag=True, help="Copy a signed-off case so that it can be changed.")
@click.option("--seen", metavar="HASH", help="Refuse if the history's head hash differs from this one.")
def review(case: str, reviewer: str | None, seen: str | None, new_version: bool, **said: Any) -> None:
    """Show the review of a case, or add to it: notes, labels, overrides, status.

    Verdicts on a fact: borne out, contradicted, not found. On an edit: accepted, rejected. On a sentence: its new text.
    A sign-off needs a conclusion: --on answer --override "stands" --reason WHY --status "signed off".

    Example: python -m engine review 3f9c0a417b2e --note "Checked against the standard." --on passage:3
    """
    store, author = workbench().cases, reviewer or getpass.getuser()
    check_seen(store.history(case), seen)  # also where nothing is added
    if new_version:
        emit({"case": store.new_version(case, author).id, "parent": case})
        return
    loaded = store.load(case)
    if drafts := [_placed(loaded, draft) for draft in _drafts(author, **said)]:
        if said["status"] == "signed off":
            after = list(store.history(case))
            for draft in drafts:
                after.append(append(loaded, after, draft, now()))
            check_conclusion(loaded, review_of(after))
        store.add_marks(case, drafts, seen)
    history = store.history(case)
    chain = check_chain(history, case, signing_key())
    shown = {"case": case, "review": review_of(history), "history": history}
    emit({**shown, "holds": not chain.problem, "protection": chain.protection, "head": chain.head})


def _drafts(author: str, **said: Any) -> list[MarkDraft]:
    """The options as marks; the status last, because a signed-off case accepts no more."""
    target = said["target"]
    mark = partial(MarkDraft, author=author, reason=said["reason"])
    if both := sorted({*said["relevant"]} & {*said["not_relevant"]}):
        raise InputError(f"Passage {both[0]} is labelled relevant and not relevant. Choose one of the two.")
    found = []
    if said["note"] is not None:
        found.append(MarkDraft(kind="note", author=author, value=said["note"], target=target))
    for value in RELEVANCE:
        numbers = said[value.replace(" ", "_")]
        found += [mark(kind="relevance", value=value, target=f"passage:{number}") for number in numbers]
    if said["override"] is not None:
        found.append(mark(kind="override", value=said["override"], target=target, machine=said["machine"]))
    found += [mark(kind="withdrawal", target=f"entry:{number}") for number in said["withdraw"]]
    if said["status"] is not None:
        found.append(mark(kind="status", value=said["status"]))
    return found


LISTED = 20  # places that a message names


def _placed(case: Case, draft: MarkDraft) -> MarkDraft:
    """A note or an override with what the machine says at its place; others as they are.

    Raise `InputError` for a place that the case does not have, and for a verdict that no fact or edit can have.
    """
    if draft.kind not in ("note", "override"):
        return draft
    machine = {place.target: place.machine for place in places(case)}
    machine["answer"] = judged.headline if (judged := by_machine(case)) else "not checked"
    spans = enumerate(case.answer.sentences, start=1)
    machine |= {f"{SENTENCE}{number}": case.answer.text[start:end] for number, (start, end) in spans}
    # A passage rated at a step is a place below the analysis of its run.
    at = draft.target.rpartition("/step ")[0] or draft.target
    if at not in machine:
        alike = [target for target in machine if target.partition(":")[0] == at.partition(":")[0]]
        listed = ", ".join((alike or list(machine))[:LISTED])
        raise InputError(f"{draft.target!r} is not a place of this case. Its places include: {listed}.")
    check_verdict(draft)
    return replace(draft, machine=draft.machine or machine[at]) if draft.kind == "override" else draft


@main.command()
@case_argument
def replay(case: str) -> None:
    """Score the inputs of a case again in a fresh process; CASE is an id or a case file.

    Each value is reproduced, drifted (by how much, against the numerical floor) or cannot be compared (why).
    The exit status is 0 if every value is reproduced, apart from an imported answer and its labels.

    Example: python -m engine replay 3f9c0a417b2e
    """
    path = Path(case)
    if path.is_file():
        with raised_as(FileError, f"{path.name} cannot be read", "Check its permissions.", OSError):
            found = read_case_file(path.read_bytes()).case
    else:
        found = workbench().cases.load(case)
    result = run_replay(found, progress())
    for number in result.numbers:
        emit(number)
    counts = {status: result.count(status) for status in ("reproduced", "drifted", "cannot")}
    emit({"summary": {"case": result.case, **counts, "versions": result.versions, "text": result.summary}})
    if not result.holds:
        sys.exit(1)


@main.command()
@click.argument("left")
@click.argument("right")
@click.option("--scorer", metavar="MODEL", help="Score both answers by occlusion with this model, if missing.")
@set_option
def compare(left: str, right: str, scorer: str | None, assignments: tuple[str, ...]) -> None:
    """Compare two sides: settings, aligned passages, words, verdicts, attribution on one scale.

    A side is CASE, or CASE:CONDITION for the answer of a refinement condition.

    Example: python -m engine compare 3f9c0a417b2e:A 3f9c0a417b2e:v2c --scorer embedded
    """
    bench = workbench(assignments)
    (one, one_history), (other, other_history) = side(bench.cases, left), side(bench.cases, right)
    if scorer is not None:
        one, other = (bench.scored(case, scorer, progress()) for case in (one, other))
    emit(compare_cases(one, other, review_of(one_history), review_of(other_history)))
