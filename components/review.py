"""The review of a case: status, marks that stand, adding one, the history and what protects it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from components import state
from components.blocks import draw
from components.html import chips, note, plain, show, visible
from engine.analyses.case_verdict import in_words
from engine.cases.places import MarkTarget, places
from engine.cases.review import RELEVANCE, STATUSES, Chain, Mark, MarkDraft, Review, status_name
from engine.core.text import counted
from engine.core.values import Case
from engine.report.build import history_table, mark_tables

Add = Callable[[MarkDraft, str], None]  # the mark, and the name of the fields that it comes from
VERBS = {"open": "Reopen", "in review": "Start review", "signed off": "Sign off"}
KINDS = {"note": "Note", "relevance": "Relevance label", "override": "Own verdict"}


def review_status(review: Review, chain: Chain, author: str, add: Add, sign: Callable[[], None], *, key: str) -> None:
    """The status and who set it, the ways on from it, and what a change of the history would be detected by.

    `sign` opens the sign-off.
    """
    said = [("status", status_name(review.status)), *([("by", review.reviewer)] if review.reviewer else [])]
    show(chips([*said, *([("conclusion", review.conclusion.value)] if review.conclusion else [])]))
    if chain.problem:
        st.error(plain(chain.protection))
    with st.expander("How the history is protected"):
        note(chain.protection)
        if chain.head:
            st.code(chain.head, language=None)
    if review.status == "signed off":
        return
    with st.container(horizontal=True):
        for status in STATUSES:
            if status != review.status and st.button(VERBS[status], key=f"{key}_{status}", disabled=not author):
                sign() if status == "signed off" else add(MarkDraft(kind="status", author=author, value=status), "")


@st.fragment
def add_mark(case: Case, author: str, add: Add, *, key: str) -> None:
    """The fields of one mark, kept until it is written; an override is shown next to the machine's verdict."""
    kind = st.segmented_control(
        "Add", list(KINDS), format_func=KINDS.get, default="note", required=True, key=f"{key}_kind"
    )
    found = [p for p in places(case) if _fits(kind, p)]
    if not found:
        note("There are no passages to label.")
        return
    name = f"{key}_{case.id}_{kind}"
    fields = state.fields(name)
    place = st.selectbox("About", found, format_func=_named, key=f"{fields}_place", persist_state="session")
    if kind == "relevance":
        value = st.radio("Label", RELEVANCE, horizontal=True, key=f"{fields}_label", persist_state="session")
    elif kind == "override":
        value = st.text_input(
            "Your verdict (fact: borne out, contradicted or not found; edit: accepted or rejected)",
            key=f"{fields}_verdict",
            persist_state="session",
        )
    else:
        value = st.text_area("Note", key=f"{fields}_note", height=90, persist_state="session")
    reason = "" if kind == "note" else st.text_input("Reason", key=f"{fields}_reason", persist_state="session")
    if st.button("Add to the history", type="primary"):
        add(
            MarkDraft(kind=kind, author=author, value=value, target=place.target, reason=reason, machine=place.machine),
            name,
        )


def _fits(kind: str, place: MarkTarget) -> bool:
    return kind != "relevance" or place.target.startswith("passage:")


def _named(place: MarkTarget) -> str:
    said = f" (machine: {in_words(place.machine)})" if place.machine else ""
    return visible(f"{place.label[:100]}{said}")


def standing_marks(review: Review) -> None:
    """Overrides next to the machine's verdicts, labels, notes."""
    if not (review.overrides or review.labels or review.notes):
        note("No notes, labels or verdicts yet.")
    for marks in mark_tables(review):
        draw(marks)


def history_view(history: Sequence[Mark]) -> None:
    """Every entry, oldest first, with its hash."""
    if history:
        with st.expander(f"The whole history ({counted(len(history), 'entry', 'entries')})"):
            draw(history_table(history))
