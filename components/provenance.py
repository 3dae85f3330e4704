"""How an answer came about: the exact prompt or the selection rule, the settings, the versions."""

from __future__ import annotations

import streamlit as st

from components.blocks import draw
from components.html import visible
from engine.analyses.reading import KIND as READING
from engine.cases.review import Review
from engine.core.values import Case


def provenance(case: Case) -> None:
    """Draw everything that produced the answer, folded."""
    reading = READING.last(case)
    if case.prompt is not None:
        with st.expander("The exact prompt"):
            st.caption("Each segment is tokenised separately, so removing a passage removes exactly its tokens.")
            for segment in case.prompt.segments:
                st.text(f"{segment.kind}{f' {segment.number}' if segment.number else ''} ({segment.role})")
                st.code(visible(segment.text).strip("\n"), language=None, wrap_lines=True)
    if reading is not None:
        with st.expander("The selection rule and all candidate sentences"):
            st.write(
                "The quoting reader only quotes. It scores every passage sentence against the question and quotes the "
                "best ones verbatim. It says so when none is close enough."
            )
            with st.container(height=340, border=False):
                draw(*READING.blocks(case, reading, Review()))
    with st.expander("Stamp: model, settings, versions"):
        st.json(case.stamp.to_dict(), expanded=2)
