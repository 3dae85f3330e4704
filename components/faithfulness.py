"""Faithfulness: MoRF and LeRF curves, ABPC compared with random rankings, diagnostics."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from components.export_figure import export_button
from components.html import plain
from components.style import NEGATIVE, POSITIVE
from engine.analyses.faithfulness import FaithfulnessReport
from engine.core.values import Case
from engine.methods.faithfulness import Curves
from engine.report.drawings import drawn_faithfulness

SAVED = {"displaylogo": False, "modeBarButtons": [["toImage"]], "toImageButtonOptions": {"format": "svg"}}


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
        "ABPC = area under LeRF minus area under MoRF, in [-1, 1]. A good ranking makes the answer unlikely early, "
        "when its most relevant tokens go first. One case gives a point, not an interval."
    )
    left, right = st.columns(2)
    for column, curve in zip((left, right), (*report.curves[:1], report.passages), strict=True):
        title = "Whole passages, by occlusion" if curve is report.passages else f"Tokens, by {curve.ranking}"
        column.plotly_chart(_figure(curve, title), key=f"{key}_{curve.ranking}", config=SAVED)
    export_button(lambda: drawn_faithfulness(case, report), key=key)
    _diagnostics(report)


def _figure(curve: Curves, title: str) -> go.Figure:
    figure = go.Figure()
    for name, values, colour, dash in (
        ("most relevant first (MoRF)", curve.morf, POSITIVE, "solid"),
        ("least relevant first (LeRF)", curve.lerf, NEGATIVE, "dash"),
    ):
        figure.add_scatter(
            x=curve.shares, y=values, name=name, mode="lines+markers", line={"color": colour, "dash": dash, "width": 2}
        )
    figure.update_layout(
        title={"text": title, "font": {"size": 14}},
        height=330,
        margin={"l": 10, "r": 10, "t": 40, "b": 10},
        xaxis_title="share removed",
        # The same range for both, so that the two charts can be held against each other.
        yaxis={"title": "mean token probability", "range": [0, 1.02]},
        legend={"orientation": "h", "y": -0.25},
    )
    return figure


def _diagnostics(report: FaithfulnessReport) -> None:
    with st.expander("Diagnostics of the relevance map"):
        st.dataframe(
            pd.DataFrame(
                [
                    {"diagnostic": name.replace("_", " "), "value": "not defined" if value is None else f"{value:.3f}"}
                    for name, value in report.diagnostics.items()
                ]
            ),
            hide_index=True,
        )
        st.caption(f"{report.forwards} forward passes, {report.seconds:.1f} s, scored by {plain(report.model)}.")
