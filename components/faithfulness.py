"""Faithfulness: MoRF and LeRF curves, ABPC compared with random rankings, diagnostics; how far methods agree."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from components.blocks import draw
from components.export_figure import export_button
from components.html import plain, text_after
from components.style import component
from engine.analyses.faithfulness import FaithfulnessReport, agreement_table, diagnostic_facts
from engine.answer.citations import without_markers
from engine.core.text import Span
from engine.core.values import Attribution, Case
from engine.report.drawings import drawn_faithfulness


def faithfulness_view(report: FaithfulnessReport, case: Case, *, key: str) -> None:
    """Draw the report; every curve is named, every number has its comparison."""
    columns = st.columns(len(report.curves) + 1)
    for column, curve in zip(columns, report.curves, strict=False):
        beats = curve.abpc - report.random.mean
        column.metric(f"ABPC, {curve.ranking}", f"{curve.abpc:+z.3f}", f"{beats:+z.3f} against random", border=True)
    spread = f"{report.random.low:+z.3f} to {report.random.high:+z.3f} over {report.random.n} rankings"
    columns[-1].metric(
        "ABPC, random", f"{report.random.mean:+z.3f}", spread, delta_color="off", delta_arrow="off", border=True
    )
    st.caption(
        "ABPC = area under LeRF minus area under MoRF, in [-1, 1]. With a good ranking, the answer becomes "
        "unlikely soon after the most relevant tokens are removed. One case gives a point, not an interval."
    )
    drawing = drawn_faithfulness(case, report)
    component("plots")(data={"plots": [plot.to_dict() for plot in drawing.parts]}, key=f"{key}_plots")
    export_button(lambda: drawing, key=key)
    with st.expander("Diagnostics of the relevance map"):
        draw(diagnostic_facts(report))
        st.caption(f"{report.forwards} forward passes, {report.seconds:.1f} s, scored by {plain(report.model)}.")


LONGEST = 80  # characters of a sentence in the picker


def agreement_view(methods: Mapping[str, Attribution], case: Case, *, key: str) -> None:
    """The pairs of methods as a matrix for the whole answer or one sentence."""
    if len(methods) < 2:
        st.caption("Run at least two methods with this scorer to compare them.")
        return
    spans = next(iter(methods.values())).spans
    shared = [span for span in spans if all(span in found.spans for found in methods.values())]
    chosen = st.selectbox("For", shared, format_func=lambda span: _stretch(spans.index(span), span, case), key=key)
    draw(agreement_table(methods, chosen or spans[0]))


def _stretch(index: int, span: Span, case: Case) -> str:
    text = " ".join(without_markers(case.answer.text[slice(*span)]).split())
    return f"{index}. {text_after(text, LONGEST)}" if index else "the whole answer"
