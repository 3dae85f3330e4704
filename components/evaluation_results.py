"""Results of an evaluation: sortable tables with downloads, figures, examples, and a comparison with another run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import starmap
from pathlib import Path

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from components import state
from components.cache import evaluation, workbench
from components.figures import figure_view
from components.html import cell, escape, plain, show, tag, visible
from engine.analyses.facts import MEASURES as ATTRIBUTED
from engine.core.errors import GroundworkError
from engine.core.text import counted
from engine.studies.catalogue import study_of
from engine.studies.config import CONFIGS, Config, departures, read_config
from engine.studies.evaluate import Evaluation, compare_runs, numbers, report
from engine.studies.library import Listed, folder_of, state_of, take_in
from engine.studies.summary import by_method, figure, points_of
from engine.studies.tables import ARROWS, caption, to_csv, to_latex, to_markdown
from engine.studies.values import Column, Figure, Measure, Row, StudyTable

DOWNLOADS = {"CSV": ("csv", to_csv), "LaTeX": ("tex", to_latex), "Markdown": ("md", to_markdown)}
LEAST = 0.0001  # a smaller p-value is said to be smaller
LONGEST_UNIT = 12  # characters of a unit in a column's head; a longer one is shown where the pointer rests on the head
MEASURES = {  # words of a stored value's name, as tables and papers write them
    "attr r": "Attr_r",
    "attr p": "Attr_p",
    "f1 rp": "F1_RP",
    "f1 pp": "F1_PP",
    "pres": "Pres",
    "abpc": "ABPC",
    "rouge 1": "ROUGE-1",
    "rouge 2": "ROUGE-2",
    "rouge l": "ROUGE-L",
    "rouge lsum": "ROUGE-Lsum",
    "bleu": "BLEU",
    "s1": "S1",
    "s2": "S2",
    "s3": "S3",
}
MEANINGS = {name: meaning for name, _, meaning in ATTRIBUTED} | {
    "cosine": "of the embeddings of answer and reference",
    "BLEU": "runs of one to four words that the reference has, for short answers less",
    "Jaccard": "words that both texts have, of all their words",
    "ROUGE-1 F1": "single words that both texts have",
    "ROUGE-2 F1": "pairs of words that both texts have",
    "ROUGE-L F1": "longest series of words that both texts have in this order",
    "ROUGE-Lsum F1": "ROUGE-L line by line",
    "ABPC": "area between the two deletion curves; positive: the ranking finds the tokens that the answer needs",
    "NLI citation precision": "share of pairs of a sentence and a passage it cites in which the passage entails it",
    "RFCP": "share of these pairs that are entailed and whose passage is labelled relevant",
    "S3": "share of the answer's content words that a passage contains",
    "effect": "Cohen's d_z, the mean difference divided by its standard deviation",
}
# The page on which a study's cases say most.
PAGES = {"are": "facts", "are-ablations": "facts", "step-by-step": "steps", "refinement": "refinement"}


def table_view(table: StudyTable, *, key: str) -> None:
    """A table that can be sorted, its notes, and its downloads."""
    st.markdown(f"**{plain(caption(table))}**")
    if table.rows:
        st.dataframe(frame(table), hide_index=True, placeholder="–", key=key, column_config=_columns(table))
    if table.notes:
        st.caption(plain(" ".join(table.notes)))
    meanings = {column.name: MEANINGS[column.name] for column in table.columns if column.name in MEANINGS}
    if table.rows and meanings:
        st.caption(plain(f"{'. '.join(f'{name}: {meaning}' for name, meaning in meanings.items())}."))
    if not table.rows:
        return
    with st.container(horizontal=True):
        for label, (ending, write) in DOWNLOADS.items():
            st.download_button(
                label,
                lambda write=write: write(table),
                f"{table.name}.{ending}",
                key=f"{key}_{ending}",
                type="tertiary",
                on_click="ignore",
            )


def frame(table: StudyTable) -> pd.DataFrame:
    """The table for the screen: each measure as a sortable number, with its interval in the next column."""
    data: dict[str, list[object]] = {}
    for j, column in enumerate(table.columns):
        cells = [row[j] for row in table.rows]
        data[_head(column, table)] = [_p_value(one) if _is_p(column) else _value(one) for one in cells]
        intervals = [_interval(one) for one in cells]
        if any(intervals):
            data[f"{_named(column, table)}, 95%"] = intervals
    return pd.DataFrame(data)


def _named(column: Column, table: StudyTable, longest: int = 0) -> str:
    """A column's name, with its unit if that has at most `longest` characters or another column has the name."""
    shared = sum(other.name == column.name for other in table.columns) > 1
    told = column.unit and (shared or len(column.unit) <= longest)
    return visible(f"{column.name} ({column.unit})" if told else column.name)


def _head(column: Column, table: StudyTable) -> str:
    """Name, unit and direction: "ROUGE-L (F1) ↑"."""
    return f"{_named(column, table, LONGEST_UNIT)} {ARROWS[column.better]}".strip()


def _columns(table: StudyTable) -> dict[str, ColumnConfig]:
    """How many decimals the numbers of each column have, what they mean, and the unit that the head leaves out."""
    config: dict[str, ColumnConfig] = {}
    for j, column in enumerate(table.columns):
        cells = [row[j] for row in table.rows]
        values = [one.value if isinstance(one, Measure) else one for one in cells]
        measures = [one for one in values if isinstance(one, float)]
        if measures and not _is_p(column):
            decimals = "%.1f" if max(map(abs, measures)) >= 100 else "%.3f"
            config[_head(column, table)] = st.column_config.NumberColumn(
                format=decimals, help=plain("; ".join(filter(None, (MEANINGS.get(column.name), column.unit)))) or None
            )
    return config


def _is_p(column: Column) -> bool:
    """Whether it holds p-values: text, which says so where one rounds to nothing."""
    return column.name.startswith("p, ")


def _p_value(one: object) -> object:
    if not isinstance(one, float):
        return one
    return f"<{LEAST:.4f}" if 0 < one < LEAST else f"{one:.4f}"


def _value(one: object) -> object:
    if isinstance(one, Measure):
        return None if one.value is None else round(one.value, 3)
    if isinstance(one, float):
        return round(one, 3)
    return cell(one) if isinstance(one, str) else one


def _interval(one: object) -> str:
    if isinstance(one, Measure) and one.low is not None and one.high is not None:
        return f"{one.low:.3f} to {one.high:.3f}"
    return ""


def results_view(listed: Listed) -> None:
    """Everything of a run, as far as it came: what it asks, the table that ranks the methods, then the rest."""
    folder = folder_of(listed.name)
    found = evaluation(listed.name, state_of(folder))
    st.header(plain(question_of(found.config)))
    tables = found.results.tables
    if said := finding(tables):
        show(tag("p", escape(said), class_="gw-lead"))
    _about(found)
    if not found.rows:
        st.info("No finished units yet.")
        return
    for table in tables[:1]:  # the one that ranks the methods
        table_view(table, key=f"table_{listed.name}_{table.name}")
    if departed := found.manifest.departures:
        with st.expander(f"Departs from the paper's setting in {counted(len(departed), 'point')}"):
            st.text("\n".join(map(visible, departed)))
    for number, drawn in enumerate(found.results.figures):
        chosen = figure_view(drawn, key=f"figure_{listed.name}_{number}")
        open_unit(folder, found, chosen)
    for table in tables[1:]:
        table_view(table, key=f"table_{listed.name}_{table.name}")
    st.download_button("Everything as Markdown", lambda: report(found), f"{listed.name}.md", on_click="ignore")
    st.header("Examples")
    examples_view(listed, found, folder)


def finding(tables: Sequence[StudyTable]) -> str:
    """The first paired comparison in a sentence, with its interval; empty without one."""
    table = next((one for one in tables if one.rows and any(map(_is_p, one.columns))), None)
    measures = [one for one in table.rows[0] if isinstance(one, Measure)] if table else []
    if table is None or not measures or measures[0].value is None:
        return ""
    heads, found = [one for one in table.rows[0] if isinstance(one, str)], measures[0]
    title = table.title.partition(", minus ")[0]
    first, _, second = heads[0].partition(" - ")
    second = second or table.columns[1].name.removeprefix("minus ")
    scored, n = "".join(f" in {head}" for head in heads[1:]), f"{found.n:,} {table.unit}"
    if found.low is None or found.high is None:
        return f"{title}: {first} minus {second}{scored} is {found.value:+z.3f} ({n}, too few for an interval)."
    interval = f"95% interval {found.low:+z.3f} to {found.high:+z.3f}, {n}"
    if found.low <= 0 <= found.high:
        difference = f"no clear difference between {first} and {second}{scored}"
        return f"{title}: {difference} ({found.value:+z.3f}, {interval})."
    way = "higher" if found.value > 0 else "lower"
    return f"{title}: {first} is {abs(found.value):.3f} {way} than {second}{scored} ({interval})."


def _about(found: Evaluation) -> None:
    """The run's config and the notes needed to read its results."""
    config, manifest = found.config, found.manifest
    unread = sum(row.unparsed for row in found.rows)
    seeds = f"seed{'s' * (len(config.seeds) > 1)} {', '.join(map(str, config.seeds))}"
    st.caption(
        plain(
            f"{config.data}; model {config.model}, verifier {config.verifier}, judge {config.judge or 'none'}; {seeds}."
            f" {len(found.rows):,} of {counted(len(manifest.units), 'unit')}, {len(found.failures):,} failed,"
            f" {counted(unread, 'reply', 'replies')} unreadable."
        )
    )
    for line in (*manifest.off, *found.results.notes):
        st.caption(plain(line))


def question_of(config: Config) -> str:
    """The question of a run's study: its config's title, or that of the study's first preset, without its cost."""
    preset = CONFIGS / f"{config.study.replace('-', '_')}.toml"
    return (config.title or read_config(preset).title).partition(" (")[0]


@st.fragment
def examples_view(listed: Listed, found: Evaluation, folder: Path) -> None:
    """One value of every unit as points, and all units as a table; both open cases."""
    named, labels = numbers(found.rows), study_of(found.config.study).labels
    if named:
        value = st.selectbox("Value", named, key=f"value_{listed.name}", format_func=value_name) or named[0]
        chart = questions(found.rows, value, labels)
        open_unit(folder, found, figure_view(chart, key=f"questions_{listed.name}_{value}"))
    shown = {"hide_index": True, "placeholder": "–", "key": f"units_{listed.name}"}
    if not any(row.case for row in found.rows):
        st.caption("This run came without its cases, so a row opens nothing. Its values are all here.")
        st.dataframe(units(found.rows, labels), **shown)
        return
    st.caption("Select a row to open its case.")
    picked = st.dataframe(units(found.rows, labels), on_select="rerun", selection_mode="single-row", **shown)
    for index in picked.selection.rows:
        open_unit(folder, found, found.rows[index].case)


def questions(rows: Sequence[Row], value: str, labels: Mapping[str, str]) -> Figure:
    """A value by example, one series per method."""
    known = {
        labels.get(method, method): [
            (row, row.unit.example, float(y)) for row in own if (y := row.values.get(value)) is not None
        ]
        for method, own in by_method(rows).items()
    }
    named = value_name(value)
    return figure("points", "examples", f"{named} by example", "example", named, starmap(points_of, known.items()), "")


def value_name(name: str) -> str:
    """The name of a stored value in words, with the measures as the tables write them.

    >>> value_name("before_attr_r"), value_name("rouge_l"), value_name("gold")
    ('before Attr_r', 'ROUGE-L', 'gold')
    """
    words = name.replace("_", " ")
    for term, written in MEASURES.items():
        words = re.sub(rf"\b{term}\b", written, words)
    return visible(words)


def units(rows: Sequence[Row], labels: Mapping[str, str]) -> pd.DataFrame:
    """One row per unit: its values, or why it failed."""
    names = numbers(rows)
    return pd.DataFrame(
        [
            {
                "example": cell(row.unit.example),
                "method": cell(labels.get(row.unit.method, row.unit.method)),
                "seed": row.unit.seed,
                "state": row.state,
                **{value_name(name): _value(row.values.get(name)) for name in names},
                "unparsed": row.unparsed,
                "problem": cell(row.failure.message) if row.failure else "",
            }
            for row in rows
        ]
    )


def open_unit(folder: Path, found: Evaluation, case: str) -> None:
    """Take a unit's case into the library and go to it; nothing for no case."""
    if not case:
        return
    try:
        opened = take_in(workbench().cases, folder, case)
    except GroundworkError as error:
        st.error(plain(str(error)))
        return
    state.open_case(opened)
    page = PAGES.get(found.config.study, "attribution")
    st.switch_page(f"pages/inspect/{page}.py", query_params={"case": opened})


def comparison_view(first: Listed, second: Listed) -> None:
    """Two runs of one study: where their configs differ, and every value that both measured."""
    pair = [evaluation(one.name, state_of(folder_of(one.name))) for one in (first, second)]
    said = departures(pair[0].config, pair[1].config)
    st.text("\n".join(map(visible, said)) if said else "Both runs have the same config.")
    try:
        table_view(compare_runs(*pair), key=f"comparison_{first.name}_{second.name}")
    except GroundworkError as error:
        st.warning(plain(str(error)))
