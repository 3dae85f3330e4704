"""Two cases side by side: differing settings, aligned passages, words, verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from components.answer import with_pills
from components.blocks import draw
from components.html import cell, note, show, tag
from engine.cases.blocks import table
from engine.report.compare import ALONE, Aligned, Comparison, Difference, DiffWord

LITTLE = 0.35  # share of the characters in common under which two answers are not drawn as one text


def word_diff(words: Sequence[DiffWord], *, left: str, right: str) -> None:
    """Both answers as one text, what one side has alone struck or underlined; two that share little stand apart."""
    same = sum(len(word.text) for word in words if word.change == "same")
    if same < LITTLE * sum(len(word.text) for word in words):
        for column, name, other in zip(st.columns(2, gap="large"), (left, right), ("added", "removed"), strict=True):
            with column:
                show(tag("div", "".join(_alone(word) for word in words if word.change != other), class_="gw-answer"))
                note(f"Underlined: only in {name}.")
        return
    show(tag("div", changes(words), class_="gw-answer"))
    note(f"Struck: only in {left}. Underlined: only in {right}.")


def _alone(word: DiffWord) -> str:
    text = with_pills(word.text)
    return text if word.change == "same" else tag("u", text, class_=_CLASS[word.change])


_CLASS = {"removed": "gw-del", "added": "gw-ins"}


def changes(words: Sequence[DiffWord]) -> str:
    """Both texts as one: what was removed struck out, what was added underlined, so that no colour is needed."""
    return "".join(map(_word, words))


def _word(word: DiffWord) -> str:
    text = with_pills(word.text)
    if word.change == "removed":
        return tag("del", text, class_="gw-del")
    return tag("ins", tag("u", text), class_="gw-ins") if word.change == "added" else text


def differences(title: str, found: Sequence[Difference], none: str, names: Mapping[str, str] | None = None) -> None:
    """Values that are not the same, under their `names` where these know them."""
    st.header(title)
    if not found:
        note(none)
        return
    names = names or {}
    draw(table("", ("What", "Left", "Right"), ((names.get(d.name, d.name), d.left, d.right) for d in found)))


def aligned_passages(comparison: Comparison) -> None:
    """Which passages belong together, how often each is cited, and the attribution on one scale."""
    st.header("Passages")
    rows = [_row(passage, comparison.methods) for passage in comparison.passages]
    if not rows:
        note("Neither case has passages.")
        return
    st.dataframe(pd.DataFrame(rows), hide_index=True)
    if comparison.methods:
        note("Attribution: score for the whole answer as a share of the case's largest score, -1 to 1.")
    else:
        note("The two cases have no attribution method in common, so attribution is not compared.")


def _row(passage: Aligned, methods: Sequence[str]) -> dict[str, object]:
    row: dict[str, object] = {
        "passage": cell(passage.title),
        "match": passage.match if passage.match != ALONE else "left only" if passage.right is None else "right only",
        "left": "–" if passage.left is None else str(passage.left),
        "right": "–" if passage.right is None else str(passage.right),
        "cited left": passage.cited[0],
        "cited right": passage.cited[1],
    }
    for method in methods:
        values = passage.attribution.get(method, (None, None))
        row[f"{method}, left"], row[f"{method}, right"] = values
    return row
