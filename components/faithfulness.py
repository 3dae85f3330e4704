"""Faithfulness: MoRF and LeRF curves, ABPC compared with random rankings, diagnostics."""

from __future__ import annotations

from itertools import starmap

import streamlit as st

from components.export_figure import export_button
from components.html import escape, plain, show, table, tag
from components.style import component
from engine.analyses.faithfulness import FaithfulnessReport
from engine.core.values import Case
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
    _diagnostics(report)


def _diagnostics(report: FaithfulnessReport) -> None:
    with st.expander("Diagnostics of the relevance map"):
        show(table(("Diagnostic", "Value"), starmap(_diagnostic, report.diagnostics.items())))
        st.caption(f"{report.forwards} forward passes, {report.seconds:.1f} s, scored by {plain(report.model)}.")


def _diagnostic(name: str, value: float | None) -> str:
    said = "not defined" if value is None else f"{value:.3f}"
    return tag("tr", tag("th", escape(name.replace("_", " ")), scope="row") + tag("td", said))
