"""The head of every page of a case: the question, and in one line whether the answer stands."""

from __future__ import annotations

import streamlit as st

from components.cache import workbench
from components.checking import check_button
from components.html import chips, escape, show, tag
from components.pages import page_link
from components.sentences import KINDS
from engine.analyses.case_verdict import CaseVerdict, case_verdict
from engine.cases.review import Review, review_of
from engine.core.text import counted
from engine.core.values import Case


def case_head(case: Case, *, offer: bool = True) -> CaseVerdict | None:
    """Draw it and return the verdict; where nothing was checked it offers the check (`offer`), else it says so."""
    show(tag("h2", escape(case.question), class_="gw-question"))
    review = review_of(workbench().cases.history(case.id))
    verdict = case_verdict(case, review)
    with st.container(horizontal=True, vertical_alignment="center", key="case_head"):
        show(verdict_line(verdict, review, case))
        if verdict is None and offer and case.answer.text.strip() and case.answer.finished and not case.answer.refused:
            check_button(case, key=f"check_{case.id}")
        with st.container(horizontal=True, width="content"):
            if verdict is not None:
                page_link("inspect/facts", "Facts")
            if case.passages:
                page_link("inspect/attribution", "What mattered")
            if verdict is not None:
                page_link("review/cases", "Review")
    return verdict


def verdict_line(verdict: CaseVerdict | None, review: Review, case: Case) -> str:
    """The line as HTML: a bar with a part per verdict, the counts in words, edits, citations, review."""
    if verdict is None:
        said = chips([("review", _reviewed(review))]) if review.reviewer else ""
        return tag("div", tag("b", escape(_unchecked(case))) + said, class_="gw-stand gw-unchecked")
    counts = verdict.counts
    parts = "".join(
        tag("i", "", class_=f"gw-{KINDS[stand]}", style=f"flex-grow:{count}") for stand, count in counts.items()
    )
    stopped = "" if verdict.finished else " The check was stopped early."
    words = tag("b", escape(verdict.headline + stopped))
    bar = tag("span", parts, class_="gw-verdicts", aria_hidden="true") if parts else ""
    return tag("div", bar + words + chips(_chips(verdict, review)), class_="gw-stand")


def _unchecked(case: Case) -> str:
    if case.answer.refused:
        return "The writer says that the passages do not answer the question."
    if not case.answer.text.strip():
        return "The case has no answer to check."
    return "Not checked yet."


def _chips(verdict: CaseVerdict, review: Review) -> list[tuple[str, str]]:
    edits = {"accepted": verdict.accepted, "rejected": verdict.rejected, "undecided": verdict.undecided}
    said = ", ".join(f"{count} {word}" for word, count in edits.items() if count)
    found = [("edits", said)] if said else []
    if verdict.citations:
        found.append(("citations", f"{verdict.citations_supported} of {verdict.citations} supported"))
    if verdict.overridden:
        found.append(("reviewer", counted(verdict.overridden, "verdict")))
    return [*found, ("review", _reviewed(review))]


def _reviewed(review: Review) -> str:
    status = "not reviewed" if review.status == "open" else f"{review.status} by {review.reviewer}"
    return f"{review.conclusion.value}, {status}" if review.conclusion else status
