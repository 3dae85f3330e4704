"""Attr-RAG as it ran: every chunk set with its figures, what was selected and why, the answer before and after."""

from __future__ import annotations

import streamlit as st

from components.analysis_run import banners
from components.answer import answer_view
from components.blocks import draw
from components.diff import word_diff
from components.html import escape, plain, show, tag, visible
from components.occlusion import floors_line
from engine.analyses.attr_rag import selection_blocks, set_name, why_table
from engine.cases.words import word_diff as words_of
from engine.core.values import Case
from engine.methods.attr_rag import AttrRag


def attr_rag_view(found: AttrRag, case: Case) -> None:
    """Draw the selection of one run; the sets that hold the selected passage of the case are marked."""
    draw(*selection_blocks(case, found))
    if found.drops is not None:
        banners(found.drops.notes)
        st.caption(plain(f"Drop: how much less likely the answer becomes without one set. {floors_line(found.drops)}"))
    if found.selection.reasons:
        with st.expander("Why each set was kept or dropped"):
            draw(why_table(case, found))
    st.subheader("Before and after")
    sets = len(found.sets)
    before, after = found.regeneration.full.text, found.answer.text
    whole, rest = (
        f"the answer from {'the one set' if sets == 1 else f'all {sets} sets'}",
        f"the answer from the {len(found.selection.chosen)} kept",
    )
    if before == after:
        answer_view(found.answer)
        st.caption(f"Identical: {whole} and {rest}.")
    else:
        word_diff(words_of(before, after), left=whole, right=rest)
    if found.filled:
        _filled(found)
    with st.expander("Answers written without one set"):
        _without_one(found, whole)


def _filled(found: AttrRag) -> None:
    """Passages that gap filling added: they stand between selected ones, whether or not retrieval found them."""
    items = "".join(
        tag("li", escape(f"{p.label}, passage {p.ordinal + 1}: ") + tag("q", escape(p.text))) for p in found.filled
    )
    show(tag("p", "Added to fill gaps between selected passages:", class_="gw-note") + tag("ul", items))


def _without_one(found: AttrRag, whole: str) -> None:
    """The answer without each set against the answer from all of them."""
    written = range(len(found.regeneration.ablated))
    names = [visible(set_name(chunk_set)) for chunk_set in found.sets]
    chosen = st.selectbox("Without", written, format_func=names.__getitem__, key="attr_rag_without")
    if chosen is None:
        return
    text = found.regeneration.ablated[chosen].text
    if text == found.regeneration.full.text:
        st.caption("The answer is identical.")
        return
    word_diff(words_of(found.regeneration.full.text, text), left=whole, right="the answer without the set")
