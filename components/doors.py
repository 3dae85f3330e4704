"""The two doors of the start page: ask your documents, or audit an answer."""

from __future__ import annotations

import streamlit as st

from components.html import escape, show, tag
from components.pages import page_link

DOORS = {
    "ask": ("ask/ask", "Ask your documents", "Ask a question of a corpus. The answer cites the passages it rests on."),
    "audit": ("ask/audit", "Audit an answer", "Paste a question, sources and an answer. Every sentence is checked."),
}


def doors(here: str) -> None:
    """Draw both; `here` is the one whose page this is."""
    row = st.container(key="doors")
    for column, (name, (path, label, about)) in zip(row.columns(2), DOORS.items(), strict=True):
        with column.container(
            border=True, height="stretch", gap="small", key=f"door_{name}{'_here' if name == here else ''}"
        ):
            page_link(path, f"**{label}**")
            show(tag("p", escape(about), class_="gw-door"))
