"""How far attribution methods agree on the same passages: rank correlation, signs and first passage, a cell a pair."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from msgspec.structs import replace

from components.html import escape, show, table, tag
from components.style import diverging
from engine.answer.citations import without_markers
from engine.core.text import counted
from engine.core.values import Attribution, Case, Details
from engine.methods.faithfulness import Pair, agreement, ranked_by

READING = (
    "ρ: Spearman's rank correlation of the passages, in [-1, 1]. Methods with a value per token rank by the sum of "
    "|relevance|, the others by score. Signs: share of passages on the same side of zero. First: whether both rank "
    "the same passage first. With few passages ρ is coarse."
)


def agreement_view(methods: Mapping[str, Attribution], case: Case, *, key: str) -> None:
    """The pairs as a matrix for the whole answer or one sentence; every method with the passage it puts first."""
    if len(methods) < 2:
        st.caption("Run at least two methods with this scorer to compare them.")
        return
    spans = next(iter(methods.values())).spans
    shared = [i for i, span in enumerate(spans) if all(span in m.spans for m in methods.values())]
    chosen = st.selectbox("For", shared, format_func=lambda i: _stretch(i, spans[i], case), key=f"{key}_span") or 0
    rows = {name: _only(found, spans[chosen]) for name, found in methods.items()}
    show(_table(rows, agreement(rows)))
    st.caption(READING)


def _stretch(index: int, span: tuple[int, int], case: Case) -> str:
    text = " ".join(without_markers(case.answer.text[slice(*span)]).split())
    return "the whole answer" if index == 0 else f"{index}. {text if len(text) <= 80 else text[:78] + '…'}"


def _only(found: Attribution, span: tuple[int, int]) -> Attribution:
    index = found.spans.index(span)
    details = Details(absolute=(ranked_by(found, index),))
    return replace(found, spans=(span,), scores=(found.scores[index],), per_token=(), details=details)


def _table(rows: Mapping[str, Attribution], pairs: tuple[Pair, ...]) -> str:
    names = list(rows)
    known = {frozenset((pair.first, pair.second)): pair for pair in pairs}
    body = (
        tag(
            "tr",
            tag("th", tag("b", escape(name)) + " " + escape(_first(rows[name])), scope="row")
            + "".join(_cell(known[frozenset((name, other))]) if i < j else tag("td", "") for j, other in _after(names)),
        )
        for i, name in enumerate(names)
    )
    return table(("Method and its first passage", *names[1:]), body)


def _after(names: list[str]) -> list[tuple[int, str]]:
    return list(enumerate(names))[1:]


def _first(found: Attribution) -> str:
    row, ranks = found.scores[0], ranked_by(found)
    best = max(range(len(row)), key=lambda j: ranks[j])
    return f"{found.sources[best][0]} ({row[best]:+,.{0 if abs(row[best]) >= 100 else 2}f} {found.unit})"


def _cell(pair: Pair) -> str:
    rho = "ρ not defined" if pair.rho is None else f"ρ {pair.rho:+z.2f}"
    signs = "signs not defined" if pair.signs is None else f"signs {pair.signs:.0%}"
    said = f"{signs}<br>{'same first' if pair.same_top else 'different first'}"
    title = f"{pair.first} and {pair.second}, {counted(pair.sources, 'passage')}"
    return tag("td", tag("b", rho) + "<br>" + said, style=f"background:{diverging(pair.rho or 0.0)}", title=title)
