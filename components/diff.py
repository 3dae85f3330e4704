"""Two cases side by side: differing settings, aligned passages, words, verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd
import streamlit as st

from components.answer import with_pills
from components.blocks import draw
from components.html import cell, note, show, tag
from engine.cases.blocks import table
from engine.cases.words import Change
from engine.core.text import counted
from engine.report.compare import ALONE, Aligned, Comparison, DiffWord

LITTLE = 0.35  # share of the characters in common under which two answers are not drawn as one text

OTHERS: tuple[Change, Change] = ("added", "removed")  # the words that the left side, and the right, does not have


def word_diff(words: Sequence[DiffWord], *, left: str, right: str) -> None:
    """Both answers as one text, what one side has alone struck or underlined; two that share little stand apart."""
    same = sum(len(word.text) for word in words if word.change == "same")
    if same < LITTLE * sum(len(word.text) for word in words):
        for column, name, other in zip(st.columns(2, gap="large"), (left, right), OTHERS, strict=True):
            with column:
                one_side(words, other)
                note(f"Underlined: only in {name}.")
        return
    show(tag("div", changes(words), class_="gw-answer"))
    note(f"Struck: only in {left}. Underlined: only in {right}.")


def one_side(words: Sequence[DiffWord], other: Change) -> None:
    """The text of one side; its words that the other side does not have are underlined."""
    show(tag("div", "".join(_alone(word) for word in words if word.change != other), class_="gw-answer"))


def _alone(word: DiffWord) -> str:
    text = with_pills(word.text)
    return text if word.change == "same" else tag("span", tag("u", text), class_=_CLASS[word.change])


_CLASS = {"removed": "gw-del", "added": "gw-ins"}


def changes(words: Sequence[DiffWord]) -> str:
    """Both texts as one: what was removed struck out, what was added underlined, so that no colour is needed."""
    return "".join(map(_word, words))


def _word(word: DiffWord) -> str:
    text = with_pills(word.text)
    if word.change == "removed":
        return tag("del", text, class_="gw-del")
    return tag("ins", tag("u", text), class_="gw-ins") if word.change == "added" else text


def differences(rows: Iterable[tuple[str, str, str]]) -> None:
    """Values that are not the same, as (name, left, right)."""
    draw(table("", ("What", "Left", "Right"), rows))


def aligned_passages(comparison: Comparison) -> None:
    """The passages that differ in rank, citations or attribution on one scale; the others are folded."""
    groups: dict[bool, list[dict[str, object]]] = {True: [], False: []}
    for passage in comparison.passages:
        groups[bool(passage.differences)].append(_row(passage, comparison.methods))
    if groups[True]:
        st.header("Passages used differently")
        st.dataframe(pd.DataFrame(groups[True]), hide_index=True)
        if comparison.methods:
            note("Attribution: score for the whole answer as a share of the case's largest score, -1 to 1.")
    if groups[False]:
        with st.expander(f"{counted(len(groups[False]), 'passage')} with the same rank and citations"):
            st.dataframe(pd.DataFrame(groups[False]), hide_index=True)


def _row(passage: Aligned, methods: Sequence[str]) -> dict[str, object]:
    row: dict[str, object] = {
        "passage": cell(passage.title),
        "match": ", ".join((*(() if passage.match == ALONE else (passage.match,)), *passage.differences)),
        "rank, left": "–" if passage.left is None else str(passage.left),
        "rank, right": "–" if passage.right is None else str(passage.right),
        "citations, left": passage.cited[0],
        "citations, right": passage.cited[1],
    }
    for method in methods:
        values = passage.attribution.get(method, (None, None))
        row[f"{method}, left"], row[f"{method}, right"] = values
    return row
