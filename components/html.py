"""The only way into HTML for pages: markup is built by the engine's escaping functions and drawn here."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine.cases.markup import escape, tag, visible

__all__ = ["chips", "escape", "show", "tag", "visible"]


def chips(values: Sequence[tuple[str, str]], kind: str = "chip") -> str:
    """Small labelled values in a row: (label, value) pairs."""
    cells = (
        tag("span", tag("span", escape(label), class_="gw-label") + " " + escape(value), class_=f"gw-{kind}")
        for label, value in values
    )
    return tag("div", "".join(cells), class_="gw-chips")


def show(markup: str) -> None:
    """Draw markup built by the functions above."""
    st.html(markup)
