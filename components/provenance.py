"""How an answer came about: the exact prompt or the selection rule, the settings, the versions."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from components.html import escape, note, show, table, tag, visible
from engine.analyses.reading import KIND as READING
from engine.answer.quoting_reader import Reading
from engine.answer.sentence_scores import Candidate
from engine.core.values import Case


def provenance(case: Case) -> None:
    """Draw everything that produced the answer, folded."""
    reading = next(iter(READING.of(case)), None)
    if case.prompt is not None:
        with st.expander("The exact prompt"):
            st.caption("Each segment is tokenised separately, so removing a passage removes exactly its tokens.")
            for segment in case.prompt.segments:
                st.text(f"{segment.kind}{f' {segment.number}' if segment.number else ''} ({segment.role})")
                st.code(visible(segment.text).strip("\n"), language=None, wrap_lines=True)
    if reading is not None:
        with st.expander("The selection rule and all candidate sentences"):
            _reading(reading, case)
    with st.expander("Stamp: model, settings, versions"):
        st.json(case.stamp.to_dict(), expanded=2)


def _reading(reading: Reading, case: Case) -> None:
    st.write(
        "The quoting reader only quotes. It scores every passage sentence against the question and quotes the best "
        "ones verbatim. It says so when none is close enough."
    )
    note(reading.rule)
    if not reading.candidates:
        st.caption("No sentence was considered.")
        return
    ranked = sorted(reading.candidates, key=lambda c: (not c.chosen, -c.score))
    parts = tuple(dict.fromkeys(name for candidate in ranked for name in candidate.parts))
    with st.container(height=340, border=False):
        heads = ("Sentence", "Quoted", "Passage", "Closeness", "Score", *(name.capitalize() for name in parts))
        show(table(heads, (_row(candidate, case, parts) for candidate in ranked)))
    st.caption("Quoted sentences first, then by score: the sum of the columns to its right.")


def _row(found: Candidate, case: Case, parts: Sequence[str]) -> str:
    """A sentence with the parts of its score; a number without a passage has no text."""
    text = "".join(p.text[found.start : found.end] for p in case.passages[found.number - 1 : found.number])
    figures = (found.closeness, found.score, *(found.parts.get(name) for name in parts))
    cells = tag("td", "yes" if found.chosen else "") + tag("td", str(found.number))
    cells += "".join(tag("td", "–" if figure is None else f"{figure:z.3f}") for figure in figures)
    return tag("tr", tag("th", escape(text), scope="row") + cells)
