"""A reviewer's own verdict on a fact, next to the verifier's, and own words for its sentence."""

from __future__ import annotations

import streamlit as st

from components.checked_answer import write
from components.html import plain, visible
from engine.analyses.case_verdict import OWN_VERDICTS, CaseVerdict
from engine.cases.places import numbered, rewritten
from engine.cases.review import Review
from engine.core.values import Case
from engine.methods.are.values import AreRecord

CHOICES = tuple(OWN_VERDICTS.values())


def override_form(
    case: Case, record: AreRecord, verdict: CaseVerdict, review: Review, author: str, selected: str
) -> None:
    """Fact (`selected` first), verdict, its sentence to rewrite, reason; a signed-off case takes none."""
    if review.status == "signed off":
        return
    facts = numbered(record)
    with st.expander("Your verdict on a fact"):
        name = st.selectbox(
            "Fact",
            list(facts),
            index=list(facts).index(selected) if selected in facts else 0,
            format_func=lambda n: visible(f"{n} {facts[n].fact.text}"),
            key=f"override_fact_{selected}",
        )
        number = verdict.sentence_of(name) if name else None
        if name is None or number is None:
            return
        mark = rewritten(case.answer, review).get(number)
        if mark is not None:
            st.caption(plain(f"{mark.author} rewrote this sentence: {mark.reason}"))
            if st.button("Undo", key="override_undo", disabled=not author):
                write(case, {"undo": number}, author)
        with st.form("override", clear_on_submit=True, border=False):
            value = st.segmented_control("Verdict", CHOICES, key=f"override_verdict_{name}")
            words = mark.value if mark else case.answer.text[slice(*case.answer.sentences[number - 1])]
            version = f"{number}_{mark.number if mark else 0}"
            text = st.text_area("Rewrite the sentence (empty: delete it)", words, key=f"override_text_{version}")
            reason = st.text_input("Reason", key=f"override_reason_{name}", placeholder="what the source says")
            asked = st.form_submit_button(
                "Save",
                type="primary",
                disabled=not author,
                help=None if author else "Enter your name first. The case's history records it.",
            )
    if not asked:
        return
    changed = text if text.strip() != words.strip() else None
    if not value and changed is None:
        st.error("Choose a verdict, or change the sentence.")
    else:
        said = {"sentence": number, "fact": name, "verdict": value, "text": changed, "reason": reason}
        write(case, said, author)
