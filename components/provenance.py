"""How an answer came about: the exact prompt or the selection rule, the settings, the versions."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from components.html import cell, visible
from engine.types import Case


def provenance(case: Case) -> None:
    """Draw everything that produced the answer, folded."""
    reading = next((analysis.result for analysis in case.analyses if analysis.kind == "reading"), None)
    if case.prompt is not None:
        with st.expander("The exact prompt"):
            st.caption("Each segment is tokenised on its own, so that removing a passage removes exactly its tokens.")
            for segment in case.prompt.segments:
                st.text(f"{segment.kind}{f' {segment.number}' if segment.number else ''} ({segment.role})")
                st.code(visible(segment.text).strip("\n"), language=None, wrap_lines=True)
    if reading is not None:
        with st.expander("The selection rule and every sentence that was considered"):
            _reading(reading)
    with st.expander("Stamp: model, settings, versions"):
        st.json(case.stamp.to_dict(), expanded=2)


def _reading(reading: dict[str, object]) -> None:
    st.write(
        "The quoting reader writes no word of its own. It scores every sentence of the passages against the"
        " question, takes the best ones word for word, and says so when none is close enough."
    )
    candidates = reading.get("candidates", [])
    if not isinstance(candidates, list) or not candidates:
        st.caption("No sentence was considered.")
        return
    table = pd.DataFrame([{**c, "text": cell(str(c.get("text", "")))} for c in candidates])
    st.dataframe(table, hide_index=True, height=320)
