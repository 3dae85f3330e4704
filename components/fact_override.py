"""A reviewer's own verdict on a fact, next to the verifier's."""

from __future__ import annotations

import streamlit as st

from components.cache import workbench
from components.html import plain, visible
from engine.analyses.case_verdict import OWN_VERDICTS
from engine.cases.places import numbered, verdict_of
from engine.cases.review import MarkDraft, Review
from engine.core.errors import GroundworkError
from engine.core.values import Case
from engine.methods.are.values import AreRecord

CHOICES = tuple(OWN_VERDICTS.values())


def override_form(case: Case, record: AreRecord, review: Review, author: str, selected: str) -> None:
    """Fact (`selected` first), verdict, reason; a signed-off case takes none."""
    if review.status == "signed off":
        return
    facts = numbered(record)
    with st.expander("Your verdict on a fact"), st.form("override", clear_on_submit=True, border=False):
        left, right = st.columns([3, 2], vertical_alignment="bottom")
        name = left.selectbox(
            "Fact",
            list(facts),
            index=list(facts).index(selected) if selected in facts else 0,
            format_func=lambda n: visible(f"{n} {facts[n].fact.text}"),
            key=f"override_fact_{selected}",
        )
        value = right.segmented_control("Verdict", CHOICES, key="override_verdict")
        reason = st.text_input("Reason", key="override_reason", placeholder="what the source says")
        asked = st.form_submit_button(
            "Save the verdict",
            disabled=not author,
            help=None if author else "Enter your name first. The case's history records it.",
        )
    if not asked or name is None:
        return
    machine = verdict_of(facts[name])
    draft = MarkDraft(
        kind="override", author=author, value=value or "", target=f"fact:{name}", reason=reason, machine=machine
    )
    try:
        workbench().cases.add_mark(case.id, draft)
    except GroundworkError as error:
        st.error(plain(str(error)))
    else:
        st.rerun()
