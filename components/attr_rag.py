"""Attr-RAG as it ran: a row a chunk set, a column a metric, votes, what was selected and why, the answer before and
after."""

from __future__ import annotations

from collections.abc import Collection

import streamlit as st

from components import state
from components.analysis_run import banners
from components.answer import answer_view
from components.attribution import UNDER_NUMERICAL, floors_line
from components.diff import word_diff
from components.html import escape, note, plain, show, table, tag, visible
from components.style import diverging, sequential
from engine.answer.quoting_reader import whole_id
from engine.cases.words import word_diff as words_of
from engine.core.text import counted
from engine.core.values import Attribution, Case
from engine.methods.attr_rag import WHY, AttrRag

# With a hyphen that does not break: the heads of narrow columns wrap.
METRICS = {
    "jaccard": "Jaccard",
    "rouge_1": "ROUGE‑1",
    "rouge_2": "ROUGE‑2",
    "rouge_l": "ROUGE‑L",
    "rouge_lsum": "ROUGE‑Lsum",
}


def attr_rag_view(found: AttrRag, case: Case) -> None:
    """Draw the selection of one run; the sets that hold the selected passage of the case are marked."""
    kept, sets = len(found.selection.chosen), len(found.sets)
    st.caption(
        f"Kept {kept} of {counted(sets, 'chunk set')} (at most {found.selection.limit});"
        f" {counted(len(found.filled), 'passage')} filled gaps."
        " α = 1 - similarity of the answers with and without the set; high: the answer changed. The six metrics are "
        "correlated: three that agree are not three independent findings. Bold: the metric chose the set."
    )
    selected = _selected_sets(found, case)
    show(_table(found, selected))
    if found.drops is not None:
        banners(found.drops.notes)
        st.caption(plain(f"Drop: how much less likely the answer becomes without one set. {floors_line(found.drops)}"))
    for line in found.notes:
        note(line)
    if found.selection.reasons:
        with st.expander("Why each set was kept or dropped"):
            show(why_table(found, selected))
            st.caption("The paper's rule alone: no floor, no cap, and the expansion read literally.")
    st.subheader("Before and after")
    before, after = found.regeneration.full.text, found.answer.text
    whole, rest = (
        f"the answer from {'the one set' if sets == 1 else f'all {sets} sets'}",
        f"the answer from the {kept} kept",
    )
    if before == after:
        answer_view(found.answer)
        st.caption(f"Identical: {whole} and {rest}.")
    else:
        word_diff(words_of(before, after), left=whole, right=rest)
    if found.filled:
        _filled(found)
    with st.expander("Answers written without one set"):
        _without_one(found, whole)


def _filled(found: AttrRag) -> None:
    """Passages that gap filling added: they stand between selected ones, whether or not retrieval found them."""
    items = "".join(
        tag("li", escape(f"{p.label}, passage {p.ordinal + 1}: ") + tag("q", escape(p.text))) for p in found.filled
    )
    show(tag("p", "Added to fill gaps between selected passages:", class_="gw-note") + tag("ul", items))


def _without_one(found: AttrRag, whole: str) -> None:
    """The answer without each set against the answer from all of them."""
    written = range(len(found.regeneration.ablated))
    chosen = st.selectbox("Without", written, format_func=lambda j: visible(_label(found, j)), key="attr_rag_without")
    if chosen is None:
        return
    text = found.regeneration.ablated[chosen].text
    if text == found.regeneration.full.text:
        st.caption("The answer is identical.")
        return
    word_diff(words_of(found.regeneration.full.text, text), left=whole, right="the answer without the set")


def _label(found: AttrRag, index: int) -> str:
    first, last = found.sets[index].passages[0], found.sets[index].passages[-1]
    ordinals = "\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}".join(dict.fromkeys(f"{p.ordinal + 1}" for p in (first, last)))
    return f"{first.label}, passage{'' if first is last else 's'}\N{NO-BREAK SPACE}{ordinals}"


def _selected_sets(found: AttrRag, case: Case) -> frozenset[int]:
    """The places of the sets that hold the selected passage."""
    number = state.selected_passage(len(case.passages))
    ids = {whole_id(case.passages[number - 1])} if number else set()
    return frozenset(j for j, one in enumerate(found.sets) if ids & {whole_id(p) for p in one.passages})


def _table(found: AttrRag, selected: Collection[int]) -> str:
    metrics = tuple(found.regeneration.alphas)
    drop = () if found.drops is None else ("Drop, nats",)
    heads = ("Chunk set", *(f"α {METRICS.get(name, name)}" for name in metrics), "Votes", *drop, "Kept")
    rows = [_row(found, index, metrics, index in selected) for index in range(len(found.sets))]
    floors = "".join(tag("td", f"{found.regeneration.floors.get(name, 0.0):.3f}") for name in metrics)
    foot = tag("tr", tag("th", "Regeneration floor", scope="row") + floors)
    return table(heads, [*rows, foot], words=("Kept",))


def why_table(found: AttrRag, selected: Collection[int] = ()) -> str:
    """A row per set: kept or dropped and why, then the same under the two other rules; `selected` rows are marked."""
    rows = []
    for index in range(len(found.selection.reasons)):
        cells = "".join(tag("td", escape(cell), class_="gw-text") for cell in found.selection.why(index))
        rows.append(tag("tr", _head(found, index, index in selected) + cells))
    return table(WHY, rows, words=WHY[1:])


def _head(found: AttrRag, index: int, selected: bool) -> str:
    return tag("th", escape(_label(found, index)), scope="row", aria_current="true" if selected else "")


def _row(found: AttrRag, index: int, metrics: tuple[str, ...], selected: bool) -> str:
    selection = found.selection
    label = _head(found, index, selected)
    cells = [_alpha(found, name, index) for name in metrics]
    cells.append(tag("td", str(selection.votes[index])))
    if found.drops is not None:
        cells.append(_drop(found.drops, index))
    role = "most votes" if index == selection.primary else "yes" if index in selection.chosen else ""
    cells.append(tag("td", role, class_="gw-text"))
    return tag("tr", label + "".join(cells))


def _drop(drops: Attribution, index: int) -> str:
    """The teacher-forced drop of a set in nats; greyed under the numerical floor."""
    place = next((j for j, kept in enumerate(drops.details.kept) if kept == index), None)
    if place is None:
        return tag("td", "not scored")
    row = drops.scores[0]
    value, floor = row[place], drops.numerical_floor
    if floor is not None and abs(value) <= floor:
        return tag("td", f"{value:+z,.2f}", class_="gw-nothing", title=UNDER_NUMERICAL)
    return tag("td", f"{value:+z,.2f}", style=f"background:{diverging(value / max(map(abs, row)))}")


def _alpha(found: AttrRag, metric: str, index: int) -> str:
    values = found.regeneration.alphas[metric]
    if index >= len(values):
        return tag("td", "not run")
    value, floor = values[index], found.regeneration.floors.get(metric, 0.0)
    colour = f"background:{sequential(value)}"
    if metric in found.selection.chosen_by[index]:  # without a floor also under it
        return tag("td", tag("b", f"{value:.3f}"), style=colour, title="this metric chose the set")
    if value <= floor:
        return tag("td", f"{value:.3f}", class_="gw-nothing", title="at or under the regeneration floor")
    return tag("td", f"{value:.3f}", style=colour)
