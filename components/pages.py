"""The pages by name: what the navigation lists, and what a link on one page to another opens."""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from streamlit.navigation.page import StreamlitPage

FOLDER = Path(__file__).resolve().parent.parent / "pages"
SECTIONS = {
    "Ask": {"ask/ask": "Ask", "ask/audit": "Audit", "ask/corpora": "Corpora"},
    "Inspect": {
        "inspect/facts": "Facts",
        "inspect/attribution": "Attribution",
        "inspect/refinement": "Refinement",
        "inspect/steps": "Steps",
    },
    "Review": {"review/cases": "Cases", "review/compare": "Compare", "review/evaluate": "Evaluate"},
    "Set up": {"review/settings": "Settings"},
}
FIRST = "ask/ask"


def page(name: str) -> StreamlitPage:
    """The page of that name, as "inspect/facts"."""
    title = next(pages[name] for pages in SECTIONS.values() if name in pages)
    return st.Page(FOLDER / f"{name}.py", title=title, default=name == FIRST)


def page_link(name: str, label: str, **query: str) -> None:
    """A link to a page, with the parameters `query` that are not empty; the open case goes along."""
    st.page_link(page(name), label=label, query_params={key: value for key, value in query.items() if value})
