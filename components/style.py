"""The one visual language: type, spacing and two colour scales, as CSS and as Plotly colours."""

from __future__ import annotations

import streamlit as st

from engine.home import ASSETS

# Diverging blue-white-orange and sequential teal: both keep their order under the common colour blindnesses.
NEGATIVE, POSITIVE, NEUTRAL = "#2f6db3", "#d9822b", "#9aa19c"


def diverging(share: float) -> str:
    """CSS colour of a share in [-1, 1]: blue below zero, orange above, clear at zero; text on it stays readable."""
    base = POSITIVE if share >= 0 else NEGATIVE
    return f"color-mix(in srgb, {base} {min(1.0, abs(share)) * 72:.1f}%, transparent)"


def stylesheet(name: str) -> str:
    """A file of assets/components."""
    return (ASSETS / "components" / name).read_text(encoding="utf-8")


def apply_style() -> None:
    """Add the project's style sheet to the page."""
    st.html(f"<style>{stylesheet('page.css')}</style>")
