"""Marking passages relevant or not: a choice a passage, kept in the case's review history."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from components import state
from components.html import note, visible
from engine.cases.review import MARKED, Review
from engine.core.values import Case

LONGEST = 600  # characters of a passage shown under its choice
CHOICE = 280  # pixels that the choice takes

Mark = Callable[[int, str], None]
"""(passage number, a word of MARKED): what to do when a choice changes."""


def passage_labels(case: Case, review: Review, mark: Mark, *, key: str, disabled: bool = False) -> None:
    """One row per passage; `case` has the current labels, `review` their authors."""
    selected = state.selected_passage(len(case.passages))
    for number, passage in enumerate(case.passages, start=1):
        with st.container(horizontal=True, vertical_alignment="center"):
            by = review.labels.get(number)
            # Only a reviewer's label can be taken back, not one that came with the data.
            offered = [word for word in MARKED.values() if word != MARKED[None] or by or passage.relevant is None]
            with st.container(width=CHOICE):
                _choice(number, MARKED[passage.relevant], offered, mark, f"{key}_{number}", disabled)
            words = [str(number), passage.label, "selected" if number == selected else ""]
            if by is not None:
                words.append(f"marked by {by.author}")
            elif passage.relevant is not None:
                words.append("labelled in the data")
            st.text(visible(" · ".join(filter(None, words))))
        note(passage.text if len(passage.text) <= LONGEST else passage.text[:LONGEST] + "…")


def _choice(number: int, label: str, offered: list[str], mark: Mark, key: str, disabled: bool) -> None:
    """The choice starts from what stands, so that a change made elsewhere shows; a change is written at once."""
    chosen = st.segmented_control(
        f"Passage {number}",
        offered,
        default=label,
        required=True,
        key=f"{key}_{label}_{disabled}",  # a choice that came too late is dropped
        disabled=disabled,
        label_visibility="collapsed",
    )
    if chosen != label:
        mark(number, chosen)
