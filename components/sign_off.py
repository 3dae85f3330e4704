"""The sign-off: what is open, a conclusion with its reason, then the text that is signed and its changes."""

from __future__ import annotations

import streamlit as st

from components.answer import with_pills
from components.blocks import draw
from components.html import escape, note, plain, show, tag
from components.reviewer import write_marks
from engine.analyses.case_verdict import (
    by_machine,
    case_verdict,
    changed_by_review,
    conclusions,
    open_items,
    verdict_line,
)
from engine.analyses.facts import record_of, tracked_text
from engine.cases.review import Conclusion, Review, sign_off
from engine.core.text import counted
from engine.core.values import Case

MEANING: dict[Conclusion, str] = {
    "stands": "The answer is reliable as given.",
    "stands as edited": "The text below is reliable; the original answer is not.",
    "partly stands": "The text below is reliable, except what is not borne out.",
    "does not stand": "The answer is not reliable.",
}


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
            captions=[MEANING[c] for c in options],
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
