"""A document with its chunk boundaries drawn on the text."""

from __future__ import annotations

import itertools

import streamlit as st

from components.html import escape, plain, show, tag
from engine.core.text import counted
from engine.core.values import Document, Passage

LIMIT = 60_000  # characters drawn at once; a browser slows down well before a megabyte of markup


def document_view(document: Document, passages: tuple[Passage, ...]) -> None:
    """Draw the text; each passage has a bar with its number, page and length; overlap is stated."""
    st.header(plain(document.title or document.id))
    words = [len(passage.text.split()) for passage in passages]
    overlapping = sum(a.end > b.start for a, b in itertools.pairwise(passages))
    facts = [
        *([plain(document.id)] if document.title else []),
        counted(len(document.text), "character"),
        counted(len(passages), "passage"),
    ]
    if words:
        facts.append(f"{' to '.join(dict.fromkeys(map(str, (min(words), max(words)))))} words each")
    facts.append(counted(overlapping, "overlap") if overlapping else "no overlap")
    st.caption(" · ".join(facts))
    pieces, position = [], 0
    for passage in passages:
        if passage.end > LIMIT:
            break
        # Text between two passages (a heading, white space) is drawn too: nothing of the document is hidden.
        pieces.append(escape(document.text[position : max(position, passage.start)]))
        pieces.append(_chunk(passage, max(position, passage.start)))
        position = max(position, passage.end)
    rest = document.text[position:LIMIT] if position < LIMIT else ""
    show(tag("div", "".join(pieces) + escape(rest), class_="gw-doc", tabindex="0", role="region", aria_label="Text"))
    if len(document.text) > LIMIT:
        st.caption(f"The first {LIMIT:,} of {len(document.text):,} characters are shown.")


def _chunk(passage: Passage, start: int) -> str:
    page = f", page {passage.page}" if passage.page is not None else ""
    label = f"passage {passage.ordinal + 1}{page}, characters {passage.start:,} to {passage.end:,}"
    text = passage.text[start - passage.start :]
    kind = "gw-chunk gw-odd" if passage.ordinal % 2 else "gw-chunk"
    return tag("span", tag("span", escape(label), class_="gw-chunkno") + escape(text), class_=kind)
