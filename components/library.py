"""The library of cases: what to look for, the table, what is in the bin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from components import state
from components.html import cell, text_after, visible
from components.model_choice import METHOD_NAMES
from engine.analyses.quality import Group, Quality, Standing, leaderboard
from engine.cases.query import CaseRow, Query
from engine.cases.review import CONCLUSIONS, STATUSES, status_name

MOST_ROWS = 6  # more are scrolled
ROW_HEIGHT = 66  # pixels: from 65 on a table breaks its lines; three fit
LONGEST = 100  # characters of a question, which fill three lines
CURRENT = "►"  # before the question of the open case
OPEN = "background-color: rgba(23, 138, 128, 0.16)"  # its row
WIDE, NARROW = 200, 96  # pixels of a filter; six of them fit in a row at 1280


def query_controls(facets: Mapping[str, Sequence[str]], *, key: str) -> Query:
    """Search words and filters, in one row at 1280 and in several on a narrow page."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input("Search", placeholder="question or answer", key=f"{key}_text", width=WIDE)
        status = _choice("Status", STATUSES, f"{key}_status", status_name)
        model = _choice("Written by", facets["model"], f"{key}_model")
        corpus = _choice("Corpus", facets["corpus"], f"{key}_corpus")
        tag = _choice("Tag", facets["tag"], f"{key}_tag")
        days = _days(key)
    return Query(text=text, status=status, model=model, corpus=corpus, tag=tag, **days)


def _choice(label: str, options: Sequence[str], key: str, named: Callable[[str], str] = visible) -> str | None:
    return st.selectbox(label, options, index=None, placeholder="any", key=key, format_func=named, width=NARROW)


def _days(key: str) -> dict[str, str]:
    with st.popover("Dates", width=NARROW):
        since = st.date_input("Changed on or after", value=None, key=f"{key}_since")
        until = st.date_input("Changed on or before", value=None, key=f"{key}_until")
    days = {"since": since, "until": until}
    return {name: day.isoformat() for name, day in days.items() if day is not None}


# A window of 1024 has room for the columns up to "facts", which are read first, one of 1280 for all.
WIDTHS = {"question": 230, "review": 110, "facts": 144, "citations": 62, "changed": 80, "written by": 80, "corpus": 108}
CITED = "Share of citations whose passage bears out a fact in the sentence"


def case_table(
    rows: Sequence[CaseRow],
    found: Mapping[str, Quality],
    current: str | None,
    open_case: Callable[[str], None],
    *,
    key: str,
) -> list[str]:
    """Draw the rows, each with its counts of `found`; return the ids of the ticked ones.

    A click on a row opens its case; the `current` one is marked. Other rows are another table: what was chosen in one
    would be chosen by its place in the next.
    """
    key = f"{key}_{hash(tuple(row.id for row in rows))}"

    def clicked() -> None:
        chosen = [rows[index].id for index, _ in state.value_of(key).selection.cells]
        if chosen != state.value_of(f"{key}_chosen"):  # a tick leaves the cell chosen; another case may be open since
            state.set_value(f"{key}_chosen", chosen)
            for case_id in chosen:
                open_case(case_id)

    lines = [_line(row, found[row.id]) for row in rows]
    for row, line in zip(rows, lines, strict=True):
        line["question"] = f"{CURRENT} {line['question']}" if row.id == current else line["question"]
    table = pd.DataFrame(lines, columns=list(WIDTHS))
    look = [OPEN if row.id == current else "" for row in rows]
    picked = st.dataframe(
        table.style.apply(lambda column: look),
        hide_index=True,
        placeholder="–",
        height="content" if len(rows) <= MOST_ROWS else 420,
        row_height=ROW_HEIGHT,
        key=key,
        on_select=clicked,
        selection_mode=("multi-row", "single-cell"),
        column_config={name: _column(name, width) for name, width in WIDTHS.items()},
    )
    if not picked.selection.cells:
        state.take_value(f"{key}_chosen")
    return [rows[index].id for index in picked.selection.rows]


def _line(row: CaseRow, quality: Quality) -> dict[str, object]:
    by = f" by {visible(row.reviewer)}" if row.reviewer and row.status != "open" else ""
    return {
        "question": cell(text_after(row.question, LONGEST)),
        "facts": quality.headline,
        "written by": cell(row.model),
        "corpus": cell(row.corpus or ""),
        "changed": row.updated[:10],
        "review": f"{quality.conclusion},{by}" if quality.conclusion else f"{status_name(row.status)}{by}",
        "citations": None if quality.citation_precision is None else 100 * quality.citation_precision,
    }


def _column(name: str, width: int) -> ColumnConfig:
    if name == "citations":
        return st.column_config.NumberColumn(width=width, format="%.0f%%", help=CITED)
    return st.column_config.TextColumn(width=width)


GROUPS: tuple[Group, ...] = ("writer", "method")
LEADERBOARD = {
    "borne out": "Mean over the cases of the share of facts that are borne out",
    "unsettled": "Mean over the cases of the share of facts that are not found, unsure or not checked",
    "citations": "Mean over the cases of the share of citations whose passage bears out a fact in the sentence",
}


def leaderboard_table(rows: Sequence[CaseRow], found: Mapping[str, Quality], *, key: str) -> None:
    """The checked cases among `rows`, one line per writer or per method."""
    if not any(found[row.id].checked for row in rows):
        return
    with st.expander("Leaderboard"):
        group = st.segmented_control("Group by", GROUPS, default="writer", required=True, key=key)
        named = METHOD_NAMES if group == "method" else {}
        standings = leaderboard(rows, found, group).items()
        lines = [{group: cell(named.get(name, name)), **_standing(standing)} for name, standing in standings]
        config = {
            name: st.column_config.NumberColumn(format="%.0f%%", help=about) for name, about in LEADERBOARD.items()
        } | {"edits": st.column_config.NumberColumn(format="%.1f", help="Mean accepted edits per case")}
        st.dataframe(pd.DataFrame(lines), hide_index=True, placeholder="", column_config=config)
        st.caption("Checked cases listed above. Every case counts alike. Click a column to sort by it.")


def _standing(standing: Standing) -> dict[str, object]:
    means = (standing.borne_out, standing.unsettled, standing.citation_precision)
    shares = {n: None if m is None else 100 * m for n, m in zip(LEADERBOARD, means, strict=True)}
    counts = {name: standing.conclusions.get(name, 0) for name in CONCLUSIONS}
    return {"cases": standing.cases, **shares, "edits": standing.edits, **counts}


def bin_list(rows: Sequence[CaseRow], restore: Callable[[str], None], empty: Callable[[], None], *, key: str) -> None:
    """Deleted cases, each with a button to restore it."""
    if not rows:
        return
    with st.expander(f"Bin ({len(rows)})"):
        for row in rows:
            left, right = st.columns([6, 1], vertical_alignment="center")
            left.text(visible(row.question))
            right.button("Restore", key=f"{key}_{row.id}", on_click=restore, args=(row.id,))
        st.button("Empty the bin permanently", key=f"{key}_empty", type="tertiary", on_click=empty)
