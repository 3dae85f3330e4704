"""A figure to take away: SVG, PNG, LaTeX and CSV, drawn when it is asked for."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from components.style import component
from engine.report.drawings import Drawing, to_csv, to_latex, to_svg


def export_button(draw: Callable[[], Drawing], *, key: str) -> None:
    """A quiet button that opens the figure with its downloads."""
    if st.button("Export figure", key=f"export_{key}", type="tertiary"):
        _export(draw())


@st.dialog("Export figure", width="large")
def _export(drawing: Drawing) -> None:
    """The figure as it will be, and a download per format."""
    svg = to_svg(drawing)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button("SVG", svg, f"{drawing.name}.svg", "image/svg+xml", on_click="ignore")
        component("png")(data={"svg": svg, "name": f"{drawing.name}.png"}, key=f"png_{drawing.name}", width="content")
        st.download_button("LaTeX", to_latex(drawing), f"{drawing.name}.tex", "text/x-tex", on_click="ignore")
        st.download_button("CSV", to_csv(drawing), f"{drawing.name}.csv", "text/csv", on_click="ignore")
    st.image(svg)
