"""The head of a page: its title, what it is for in one sentence, and how its numbers are computed."""

from __future__ import annotations

import re
from pathlib import Path

import streamlit as st

from components.html import escape, show, tag

METHODS = Path(__file__).resolve().parent.parent / "docs" / "methods"
TRUST = "../trust"  # how far verdicts can be trusted: read by everyone, so it is in the folder above the methods
_VERDICTS = {"verifier", "support", "facts", "citation-metrics"}
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]+\)")


def heading(title: str, lead: str, *methods: str) -> None:
    """Draw the head of a page. `methods` are names of pages in docs/methods, shown in place on request."""
    st.title(title)
    if not methods:
        show(tag("p", escape(lead), class_="gw-lead"))
        return
    left, right = st.columns([4, 1], vertical_alignment="center")
    with left:
        show(tag("p", escape(lead), class_="gw-lead"))
    with right.container(horizontal_alignment="right"):
        asked = st.button("How it is computed", type="tertiary", key=f"how_{title}")
    if asked:
        _explain(methods)


@st.dialog("How it is computed", width="large")
def _explain(methods: tuple[str, ...]) -> None:
    if _VERDICTS & set(methods):
        methods = (*methods, TRUST)
    chosen = st.selectbox("Method", methods, format_func=method_title) if len(methods) > 1 else methods[0]
    st.markdown(method_text(chosen or methods[0]))


def method_text(name: str) -> str:
    """The method's page from docs/methods, without links to other pages of the docs."""
    return _LINK.sub(r"\1", (METHODS / f"{name}.md").read_text(encoding="utf-8"))


def method_title(name: str) -> str:
    """The page's own heading.

    >>> method_title("judge")
    'The judge'
    """
    return method_text(name).splitlines()[0].removeprefix("# ")
