"""A reviewer's own verdict on a fact, next to the verifier's, and own words for its sentence."""

from __future__ import annotations

import streamlit as st

from components import state
from components.checked_answer import write
from components.html import plain, visible
from engine.analyses.case_verdict import OWN_VERDICTS, CaseVerdict
from engine.cases.places import numbered, rewritten
from engine.cases.review import Review
from engine.core.values import Case
from engine.methods.are.values import AreRecord

CHOICES = tuple(OWN_VERDICTS.values())


def override_fields(
    case: Case, record: AreRecord, verdict: CaseVerdict, review: Review, author: str, selected: str
) -> None:
    """Fact (`selected` first), verdict, its sentence to rewrite, reason; a signed-off case takes none.

    Not a form: what is typed is kept on other pages until it is saved.
    """
    if review.status == "signed off":
        return
    facts = numbered(record)
    with st.expander("Your verdict on a fact"):
        name = st.selectbox(
            "Fact",
            list(facts),
            index=list(facts).index(selected) if selected in facts else 0,
            format_func=lambda n: visible(f"{n} {facts[n].fact.text}"),
            key=f"override_fact_{case.id}_{selected}",
        )
        number = verdict.sentence_of(name) if name else None
        if name is None or number is None:
            return
        # By the fact's words, too: another check may give its number to another fact.
        fields = f"override_{case.id}_{name}_{facts[name].fact.text}"
        key = state.fields(fields)
        mark = rewritten(case.answer, review).get(number)
        if mark is not None:
            st.caption(plain(f"{mark.author} rewrote this sentence: {mark.reason}"))
            if st.button("Undo", key="override_undo", disabled=not author):
                write(case, {"undo": number}, author)
        value = st.segmented_control("Verdict", CHOICES, key=f"{key}_verdict", persist_state="session")
        words = mark.value if mark else case.answer.text[slice(*case.answer.sentences[number - 1])]
        text = st.text_area(
            "Rewrite the sentence (empty: delete it)",
            words,
            key=f"{key}_text_{mark.number if mark else 0}",
            persist_state="session",
        )
        reason = st.text_input(
            "Reason", key=f"{key}_reason", placeholder="what the source says", persist_state="session"
        )
        asked = st.button(
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
        write(case, said, author, fields=fields)
