"""The only way into HTML for pages: markup is built by the engine's escaping functions and drawn here."""

from __future__ import annotations

import re
from collections.abc import Sequence

import streamlit as st

from engine.cases.markup import escape, tag, visible

__all__ = ["cell", "chips", "escape", "plain", "show", "tag", "visible"]

_MARKS = re.compile(r"[\\`*_{}\[\]|~$<&]|:(?=[A-Za-z/])|^[#>+=-]|(?<=^\d)[.)]|(?<=^\d\d)[.)]")
_NUMBER = re.compile(r"[+-][\d.,]+(e[+-]?\d+)?%?").fullmatch
_ICON = re.compile(r"(?<=:)(?=[\w/\\+-]+:)")


def plain(text: str) -> str:
    """Text for a Streamlit element that reads Markdown (messages, captions, labels): every mark is taken as a sign.

    A word joiner keeps `:name:` from becoming an icon, which Streamlit draws after the marks are read.
    """
    return _ICON.sub("\u2060", _MARKS.sub(r"\\\g<0>", " ".join(visible(text).split())))


def cell(text: str) -> str:
    """Text for a cell of a table, which can be downloaded as CSV: what a spreadsheet would run as a formula is quoted.

    >>> cell("=1+1"), cell("-0.5")
    ("'=1+1", '-0.5')
    """
    return visible(f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) and not _NUMBER(text) else text)


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
