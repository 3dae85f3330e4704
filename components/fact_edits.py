"""The edits of a check: tracked changes, a decision on each in the case's history, and what is exported."""

from __future__ import annotations

import msgspec
import streamlit as st

from components.blocks import draw
from components.cache import workbench
from components.checked_answer import write
from components.export_figure import export_button
from components.html import chips, escape, plain, show, tag, visible
from engine.analyses.facts import after_edit, tracked_text
from engine.cases.places import decisions, edit_decisions, revision
from engine.core.values import Case
from engine.methods.are.backtrack import Decision, accepted_ids, exact, revised
from engine.methods.are.values import AreRecord, Placed
from engine.report.build import facts_report
from engine.report.drawings import drawn_changes


def edits_view(case: Case, record: AreRecord, author: str) -> None:
    """The tracked changes, a decision on each, and what is exported."""
    st.header("Tracked changes")
    review = workbench().cases.review(case.id)
    decided, said = decisions(record, review), edit_decisions(record, case.answer, review)
    edits, all_decided = revision(record, case.answer, review)
    draw(tracked_text(case, record, review))
    if record.edits:
        for edit in record.edits:
            made, frozen = decided.get(edit.id), review.status == "signed off"
            edit_card(case, record, edit, made, said.get(edit.id, ""), author, frozen=frozen)
    else:
        st.caption("No edits found.")
    st.caption("The accepted text and the downloads contain only the edits you accept.")
    with st.container(horizontal=True):
        st.download_button(
            "Accepted text", revised(record.checked, edits, accepted_ids(all_decided)), "answer.txt", "text/plain"
        )
        st.download_button("Report", facts_report(case, record, review), "facts.md", "text/markdown")
        record_json = msgspec.json.encode(record.to_dict())
        st.download_button("Record as JSON", record_json, "facts.json", "application/json")
        export_button(lambda: drawn_changes(case, record, review), key=f"changes_{case.id}")


def edit_card(
    case: Case, record: AreRecord, edit: Placed, decision: Decision | None, said: str, author: str, *, frozen: bool
) -> None:
    """One edit: what changes, why, on which fact and passage, and the decision as `said`; none on a `frozen` case."""
    old, new = edit.old or "nothing", edit.new or "taken out"
    fact = record.facts[edit.fact]
    evidence = fact.evidence or edit.evidence
    status = said or ("suggestion" if edit.status == "suggestion" else "open")
    with st.container(border=True):
        show(tag("div", tag("b", f"{escape(edit.id)}. ") + escape(f"{old} → {new}")))
        show(chips([("status", status), ("fact", fact.fact.text), ("because", edit.why)]))
        with st.expander(plain(f"The passage: {evidence.title or evidence.document}")):
            st.text(visible(evidence.text))
        if after := after_edit(edit):
            st.caption(plain(after), help=plain(edit.ruling.note) if edit.ruling else None)
        if frozen:
            return
        if edit.status == "suggestion" and not exact(edit, record.checked):
            st.caption(
                "Its position is uncertain, so it is not applied. If you agree, rewrite the sentence under "
                '"Your verdict on a fact".'
            )
            return
        # By the edit's words, too: another check may give its number to another edit.
        key = f"reason_{case.id}_{edit.id}_{edit.old}_{edit.new}"
        reason = st.text_input("Note", key=key, placeholder="reason (optional)")
        with st.container(horizontal=True):
            for value, label in (("accepted", "Accept"), ("rejected", "Reject")):
                pressed = st.button(
                    f"{label} {edit.id}",
                    key=f"{value}_{case.id}_{edit.id}",
                    disabled=not author or decision == value,
                    help=None if author else "Enter your name first. The case's history records it.",
                )
                if pressed:
                    write(case, {"edit": edit.id, "value": value, "reason": reason}, author)
