"""The review of a case: status, marks that stand, adding one, history and its protection; the sign-off."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from components import state
from components.answer import with_pills
from components.blocks import draw
from components.html import chips, escape, note, plain, show, tag, visible
from components.reviewer import write_marks
from engine.analyses.case_verdict import (
    by_machine,
    case_verdict,
    changed_by_review,
    conclusions,
    in_words,
    open_items,
    verdict_line,
)
from engine.analyses.facts import record_of, tracked_text
from engine.cases.places import MarkTarget, places
from engine.cases.review import RELEVANCE, STATUSES, Chain, Conclusion, Mark, MarkDraft, Review, sign_off, status_name
from engine.core.text import counted
from engine.core.values import Case
from engine.report.build import history_table, mark_tables

Add = Callable[[MarkDraft, str], None]  # the mark, and the name of the fields that it comes from
VERBS = {"open": "Reopen", "in review": "Start review", "signed off": "Sign off"}
KINDS = {"note": "Note", "relevance": "Relevance label", "override": "Own verdict"}
MEANINGS: dict[Conclusion, str] = {
    "stands": "The answer is reliable as given.",
    "stands as edited": "The text below is reliable; the original answer is not.",
    "partly stands": "The text below is reliable, except what is not borne out.",
    "does not stand": "The answer is not reliable.",
}


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
    place = st.selectbox("About", found, format_func=_target_name, key=f"{fields}_place", persist_state="session")
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


def _target_name(place: MarkTarget) -> str:
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


@st.dialog("Sign off", width="medium")
def sign_off_dialog(case: Case, review: Review, author: str) -> None:
    """The sign-off over the page; a sign-off freezes the case."""
    sign_off_view(case, review, author)


def sign_off_view(case: Case, review: Review, author: str) -> None:
    """Show what is signed and take the conclusion."""
    verdict = case_verdict(case, review)
    show(tag("p", tag("b", escape(verdict_line(case, verdict)))))
    if before := changed_by_review(case, verdict):
        note(before)
    for line in open_items(case, verdict, review) if verdict else ():
        st.warning(plain(line))
    with st.form("sign_off", border=False):
        options = conclusions(verdict)
        conclusion = st.radio(
            "Conclusion",
            options,
            index=None,
            format_func=lambda c: f"The answer {c}",
            captions=[MEANINGS[c] for c in options],
            key="sign_off_conclusion",
        )
        reason = st.text_input("Reason", key="sign_off_reason", placeholder="what you read and why you decided")
        note(f"Signed by {author}. Signing freezes the case; a later change needs a new version.")
        asked = st.form_submit_button("Sign off and freeze", type="primary")
    refused = st.container()
    record = record_of(case) if verdict else None
    edited = bool(verdict and verdict.accepted)
    with_edits = f", with {counted(verdict.accepted, 'edit')}" if verdict and edited else ""
    # The headings of Streamlit are smaller than the text in a dialog.
    show(tag("h3", f"Text that you sign{with_edits}", class_="gw-question"))
    show(tag("div", with_pills(verdict.text if verdict else case.answer.text), class_="gw-answer gw-signed"))
    if record is not None and (record.edits or edited):
        with st.expander("Tracked changes"):
            draw(tracked_text(case, record, review))
            note("Struck: taken out. Underlined: put in. The text above leaves out undecided edits.")
    if not asked:
        return
    machine = by_machine(case)
    with refused:
        if conclusion is None:
            st.error("Choose a conclusion.")
            return
        write_marks(
            case.id, sign_off(author, conclusion, reason, machine.headline if machine else ""), review.head or None
        )
