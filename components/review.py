"""The review of a case: status, marks that stand, adding one, the history and what protects it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from components import state
from components.html import chips, escape, note, plain, show, table, tag, visible
from engine.analyses.case_verdict import in_words
from engine.cases.blocks import when
from engine.cases.places import MarkTarget, places
from engine.cases.review import RELEVANCE, STATUSES, Chain, Mark, MarkDraft, Review
from engine.core.text import counted
from engine.core.values import Case
from engine.methods.are.backtrack import change_said

Add = Callable[[MarkDraft], None]
VERBS = {"open": "Set to open", "in review": "Take into review", "signed off": "Sign off"}
KINDS = {"note": "Note", "relevance": "Relevance label", "override": "Own verdict"}


def review_status(review: Review, chain: Chain, author: str, add: Add, sign: Callable[[], None], *, key: str) -> None:
    """The status and who set it, the ways on from it, and what a change of the history would be detected by.

    `sign` opens the sign-off.
    """
    said = [("status", review.status), *([("by", review.reviewer)] if review.reviewer else [])]
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
                sign() if status == "signed off" else add(MarkDraft(kind="status", author=author, value=status))


@st.fragment
def add_mark(case: Case, author: str, add: Add, *, key: str) -> None:
    """A form for one mark; an override is shown next to the machine's verdict."""
    kind = st.segmented_control(
        "Add", list(KINDS), format_func=KINDS.get, default="note", required=True, key=f"{key}_kind"
    )
    found = [p for p in places(case) if _fits(kind, p)]
    if not found:
        note("There are no passages to label.")
        return
    with st.form(f"{key}_form", clear_on_submit=True, border=False):
        place = st.selectbox("About", found, format_func=_named, key=f"{key}_{kind}_place")
        if kind == "relevance":
            value = st.radio("Label", RELEVANCE, horizontal=True, key=f"{key}_label")
        elif kind == "override":
            value = st.text_input("Your verdict", key=f"{key}_verdict")
        else:
            value = st.text_area("Note", key=f"{key}_note", height=90)
        reason = "" if kind == "note" else st.text_input("Reason", key=f"{key}_{kind}_reason")
        if st.form_submit_button("Add to the history", type="primary"):
            add(
                MarkDraft(
                    kind=kind, author=author, value=value, target=place.target, reason=reason, machine=place.machine
                )
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
    _table(
        "Verdicts of reviewers, next to the machine's",
        [
            {"place": m.target, "machine": in_words(m.machine), "reviewer's verdict": m.value, "reason": m.reason}
            | _who(m)
            for m in review.verdicts.values()
        ],
    )
    _table(
        "Decisions on edits",
        [
            {"edit": m.target, "change": change_said(m.machine), "decision": m.value, "reason": m.reason} | _who(m)
            for m in review.edit_decisions.values()
        ],
    )
    _table(
        "Sentences rewritten by a reviewer",
        [
            {"sentence": m.target, "as it was": m.machine, "as written": m.value or "taken out", "reason": m.reason}
            | _who(m)
            for m in review.sentences.values()
        ],
    )
    _table(
        "Relevance labels",
        [{"place": m.target, "label": m.value, "reason": m.reason} | _who(m) for _, m in sorted(review.labels.items())],
    )
    _table("Notes", [{"place": m.target, "note": m.value} | _who(m) for m in review.notes])


def _who(mark: Mark) -> dict[str, str]:
    return {"reviewer": mark.author, "time": when(mark.time)}


def history_table(history: Sequence[Mark]) -> None:
    """Every entry, oldest first, with its hash."""
    if not history:
        return
    with st.expander(f"The whole history ({counted(len(history), 'entry', 'entries')})"):
        _table(
            "Entries are never removed; a withdrawal is a new entry.",
            [
                {"no.": str(m.number), "kind": m.kind, "place": m.target, "value": m.value, "reason": m.reason}
                | _who(m)
                | {"hash": m.hash[:16], "signature": f"key {m.key}" if m.signature else "not signed"}
                for m in history
            ],
        )


def _table(title: str, rows: list[dict[str, str]]) -> None:
    """Rows of text, the place first; a row about what is selected is marked."""
    if rows:
        heads = [name.capitalize() for name in rows[0]]
        show(table(heads, map(_row, rows), title, words=heads))


def _row(row: dict[str, str]) -> str:
    first, *rest = row.values()
    name, _, number = row.get("place", first).partition(":")
    words = escape(first.replace(":", " ", 1))
    place = tag("th", words, scope="row", class_="gw-short", aria_current=state.current(name, number))
    return tag("tr", place + "".join(tag("td", escape(cell), class_="gw-text") for cell in rest))
