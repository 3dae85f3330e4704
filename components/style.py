"""The one visual language: type, spacing and two colour scales, as CSS and as Plotly colours."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import streamlit as st

from engine.core.files import ASSETS

# Diverging blue-white-orange and sequential teal: both keep their order under the common colour blindnesses.
NEGATIVE, POSITIVE, SEQUENTIAL = "#2f6db3", "#d27b24", "#178a80"
STRENGTH = 62  # per cent of colour at a share of 1: text on it keeps a contrast of 4.5 to 1 in light and dark


def diverging(share: float) -> str:
    """CSS colour of a share in [-1, 1]: blue below zero, orange above, clear at zero; text on it stays readable."""
    colour = POSITIVE if share >= 0 else NEGATIVE
    return f"color-mix(in srgb, {colour} {min(1.0, abs(share)) * STRENGTH:.1f}%, transparent)"


def stylesheet(name: str) -> str:
    """A file of assets/components."""
    return (ASSETS / "components" / name).read_text(encoding="utf-8")


def drawing(name: str, kind: Literal["css", "js"]) -> str:
    """The style or script of a component behind what all of them share."""
    return stylesheet(f"drawing.{kind}") + stylesheet(f"{name}.{kind}")


@cache
def component(name: str) -> Any:
    """A component of the project's own: the files NAME.css and NAME.js of assets/components."""
    return st.components.v2.component(
        f"groundwork_{name}", html='<div class="gw"></div>', css=drawing(name, "css"), js=drawing(name, "js")
    )


def listen() -> None:
    """Streamlit hands out a trigger's value only where something listens."""


def apply_style() -> None:
    """Add the project's style sheets to the page."""
    sheets = map(stylesheet, ("page.css", "step_tree.css", "variants.css"))
    st.html(f"<style>{''.join(sheets)}</style>")
