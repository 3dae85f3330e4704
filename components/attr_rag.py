"""Attr-RAG as it ran: a row a chunk set, a column a metric, votes, what was selected and why, the answer before and
after."""

from __future__ import annotations

import streamlit as st

from components.html import escape, show, tag
from components.style import sequential
from engine.attribute.attr_rag import AttrRag


def attr_rag_view(found: AttrRag) -> None:
    """Draw the selection of one run."""
    kept, sets = len(found.selection.chosen), len(found.sets)
    st.caption(
        f"Kept {kept} of {sets} chunk sets (at most {found.selection.limit}); {len(found.filled)} passages filled gaps."
        " α = 1 − similarity of the answer without the set to the answer with all sets: high means that the answer"
        " changed. The six metrics are correlated: three that agree are not three witnesses."
    )
    show(tag("div", _table(found), class_="gw-scroll", tabindex="0"))
    for note in found.notes:
        show(tag("p", escape(note), class_="gw-note"))
    before, after = st.columns(2)
    for column, title, answer in (
        (before, f"Answer from all {sets} sets", found.regeneration.full),
        (after, "Answer from what was kept", found.answer),
    ):
        with column:
            st.subheader(title)
            show(tag("div", escape(answer.text), class_="gw-answer"))


def _table(found: AttrRag) -> str:
    metrics = tuple(found.regeneration.alphas)
    heads = ["Chunk set", *(f"α {name}" for name in metrics), "votes", "drop, nats", "chosen by", "kept"]
    head = tag("thead", tag("tr", "".join(tag("th", escape(name), scope="col") for name in heads)))
    rows = "".join(_row(found, index, metrics) for index in range(len(found.sets)))
    floors = "".join(tag("td", f"{found.regeneration.floors.get(name, 0.0):.3f}") for name in metrics)
    foot = tag("tr", tag("th", "regeneration floor", scope="row") + floors)
    return tag("table", head + tag("tbody", rows + foot), class_="gw-table")


def _row(found: AttrRag, index: int, metrics: tuple[str, ...]) -> str:
    chunk_set, selection = found.sets[index], found.selection
    first = chunk_set.passages[0]
    ordinals = f"{first.ordinal + 1}"
    if len(chunk_set.passages) > 1:
        ordinals += f" to {chunk_set.passages[-1].ordinal + 1}"
    label = tag("th", escape(f"{first.title or first.document}, passages {ordinals}"), scope="row")
    cells = [_alpha(found, name, index) for name in metrics]
    cells.append(tag("td", str(selection.votes[index])))
    cells.append(tag("td", f"{found.drops.scores[0][index]:+.2f}" if found.drops else "not scored"))
    cells.append(tag("td", escape(", ".join(selection.chosen_by[index])), class_="gw-text"))
    role = "most votes" if index == selection.primary else "yes" if index in selection.chosen else ""
    cells.append(tag("td", role, class_="gw-text"))
    return tag("tr", label + "".join(cells))


def _alpha(found: AttrRag, metric: str, index: int) -> str:
    values = found.regeneration.alphas[metric]
    if index >= len(values):
        return tag("td", "not run")
    value, floor = values[index], found.regeneration.floors.get(metric, 0.0)
    if value <= floor:
        return tag("td", f"{value:.3f}", class_="gw-nothing", title="at or under the regeneration floor")
    return tag("td", f"{value:.3f}", style=f"background:{sequential(value)}")
