"""A checked answer on a page: its sentences with their evidence, and a reviewer's decision by one click."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from components.cache import workbench
from components.reviewer import by_name, write_marks
from components.sentences import sentences_view
from components.source_view import open_source
from engine.analyses.case_verdict import CaseVerdict
from engine.analyses.facts import record_of
from engine.cases.places import numbered, rewrite, verdict_of
from engine.cases.review import ABSENT, SENTENCE, MarkDraft, withdrawals
from engine.core.values import Case
from engine.methods.are.backtrack import proposed


@st.fragment
def checked_answer(case: Case, verdict: CaseVerdict) -> None:
    """Draw it; a click on a sentence draws nothing else anew."""
    frozen = workbench().cases.review(case.id).status == "signed off"
    asked = sentences_view(case, verdict, frozen=frozen, key=f"sentences_{case.id}")
    if asked and "opened" in asked:
        open_source(case, int(asked["opened"]["passage"]), int(asked["opened"]["sentence"]), verdict)
    elif asked:
        by_name(partial(write, case, asked))


def not_in_documents(case: Case, why: str) -> None:
    """Offer the verdict that the documents do not answer the question, with the reason `why`, until it is given."""
    review = workbench().cases.review(case.id)
    open_to_it = review.absent is None and review.status != "signed off"
    if open_to_it and st.button(f"Mark as “{ABSENT}”", key=f"absent_{case.id}"):
        by_name(partial(write, case, {"answer": ABSENT, "reason": why}))


def write(case: Case, asked: dict[str, Any], author: str, *, fields: str = "") -> None:
    """Write the decision, typed into these fields, into the history and draw the page anew; say why not if refused."""
    write_marks(case.id, drafts(case, asked, author), fields=fields)


def drafts(case: Case, asked: dict[str, Any], author: str) -> tuple[MarkDraft, ...]:
    """A decision of `sentences_view` or `not_in_documents` as marks."""
    if "answer" in asked:
        machine = "refused" if case.answer.refused else "answered"
        return (_own(author, "answer", asked["answer"], asked["reason"], machine),)
    record = record_of(case)
    if record is None:
        return ()
    if "edit" in asked:
        edit = next(edit for edit in record.edits if edit.id == asked["edit"])
        return (_own(author, f"edit:{edit.id}", asked["value"], asked.get("reason", ""), proposed(edit)),)
    if "undo" in asked:
        return withdrawals(workbench().cases.history(case.id), "override", f"{SENTENCE}{asked['undo']}", author)
    found = []
    if asked["verdict"]:
        machine = verdict_of(numbered(record)[asked["fact"]])
        found.append(_own(author, f"fact:{asked['fact']}", asked["verdict"], asked["reason"], machine))
    if asked["text"] is not None:
        found.append(rewrite(case.answer, asked["sentence"], asked["text"].strip(), author, asked["reason"]))
    return tuple(found)


def _own(author: str, target: str, value: str, reason: str, machine: str) -> MarkDraft:
    return MarkDraft(kind="override", author=author, target=target, value=value, reason=reason, machine=machine)
