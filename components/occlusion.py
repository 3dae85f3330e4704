"""The occlusion tab: sources at three levels, each left out; the table, the text in its colours, floors, cost."""

from __future__ import annotations

from functools import partial

import streamlit as st

from components import state
from components.analysis_run import ask_for, banners, is_banner, is_by, latest, seconds_said
from components.answer import answer_view, current_sentence, with_pills
from components.export_figure import export_button
from components.html import banner, escape, note, plain, show, table, tag
from components.source_map import source_map
from components.style import diverging
from engine.analyses.attribution import (
    ALONE,
    UNDER_NUMERICAL,
    UNDER_PLACEBO,
    WORDS_FROM,
    floors,
    seen_otherwise,
    under_floor,
)
from engine.analyses.kind import OCCLUSION, SENTENCES, SETS
from engine.analyses.occlusion import TOP_PASSAGES, rows_of
from engine.answer.citations import without_markers
from engine.core.settings import Settings
from engine.core.text import ANY_CITATION
from engine.core.values import Analysis, Attribution, Case
from engine.methods import both_ways
from engine.models.registry import title_of
from engine.report.drawings import drawn_occlusion

LEVELS = {"Passages": OCCLUSION, "Chunk sets": SETS, "Sentences": SENTENCES}
LABELS = {OCCLUSION: "Leave each passage out", SETS: "Leave each chunk set out", SENTENCES: "Leave each sentence out"}
WHAT = {
    OCCLUSION: "How much less likely is this answer without each passage?",
    SETS: "Leave out neighbouring passages of a document together.",
    SENTENCES: f"Leave out each sentence of the {TOP_PASSAGES} most important passages.",
}
FOLDS = {
    both_ways.METHOD: WORDS_FROM,
    ALONE: "Each source alone: reveals copies of one fact, which hide each other when one is left out",
}
LONGEST = 90  # characters of a span's words in the first column


def occlusion_view(case: Case, model: str, settings: Settings) -> None:
    """The level switch, the button with its cost, and the result of that level."""
    level = st.segmented_control("Sources", list(LEVELS), default="Passages", required=True, key=f"level_{case.id}")
    kind = LEVELS[level]
    found = latest(case, kind, model)
    seconds = seconds_said(case, model, rows_of(case, kind, settings), kind)
    view = partial(_result, kind=kind, model=model)
    ask_for(case, kind, LABELS[kind], model, seconds, lead=WHAT[kind], done=is_by(found, model), view=view)
    if found is not None:
        attribution = Attribution.from_dict(found.result)
        export_button(lambda: drawn_occlusion(case, attribution), key=f"{kind}_{case.id}")


def _result(case: Case, kind: str, model: str) -> None:
    """The text in its colours, the tables, floors and cost; the answer alone where nothing is scored yet."""
    found = latest(case, kind, model)
    if found is None:
        answer_view(case.answer)
        return
    attribution = Attribution.from_dict(found.result)
    by_another(found, model)
    banners(attribution.notes)
    if attribution.unit == "nats" and len(attribution.sources) > 0:
        source_map(attribution, case, key=f"map_{kind}_{case.id}")
    _tables(attribution, case, kind)
    st.caption(plain(floors_line(attribution)))


def by_another(found: Analysis, model: str) -> None:
    """Say above results whose they are, where the chosen scorer has none."""
    if not is_by(found, model):
        chosen = title_of(model) or model
        banner(f"These results are by {found.stamp.model}. {chosen} has not scored this answer yet.")


def _tables(attribution: Attribution, case: Case, kind: str) -> None:
    """Every number at once; for passages and sets also what each does as the only one."""
    if kind == SENTENCES:
        return
    with st.expander("All scores: one row per answer sentence, one column per source"):
        attribution_table(attribution, case)
    for name, found in seen_otherwise(attribution).items():
        with st.expander(FOLDS[name]):
            attribution_table(found, case)


def attribution_table(attribution: Attribution, case: Case) -> None:
    """Draw an attribution; positive (orange) makes the answer more likely, negative (blue) less."""
    heads = [tag("th", "Answer", scope="col"), *(source_head(numbers, case) for numbers in attribution.sources)]
    top = max((abs(v) for row in attribution.scores for v in row), default=0.0)
    rows = [_row(attribution, index, top, case) for index in range(len(attribution.spans))]
    unit = f"{attribution.unit}, by {attribution.model}"
    show(table(heads, rows, f"Scores in {unit}. Positive: the source makes the answer more likely."))
    for line in attribution.notes:
        if not is_banner(line):  # a banner stands above the table
            note(line)


def source_head(numbers: tuple[int, ...], case: Case) -> str:
    """The head of a source's column: its numbers, with the titles of its passages."""
    titles = dict.fromkeys(case.passages[n - 1].label for n in numbers)
    label = ", ".join(str(n) for n in numbers) if len(numbers) < 4 else f"{numbers[0]} to {numbers[-1]}"
    return tag(
        "th", escape(label), scope="col", title="; ".join(titles), aria_current=state.current("passage", *numbers)
    )


def _row(attribution: Attribution, index: int, top: float, case: Case) -> str:
    start, end = attribution.spans[index]
    whole = index == 0 and (start, end) == (0, len(case.answer.text))
    text = "the whole answer" if whole else case.answer.text[start:end]
    label = escape(text) if whole else _named(case.answer.text, start, end)
    under = floors(attribution, index)
    cells = "".join(_cell(value, top, under_floor(value, *under)) for value in attribution.scores[index])
    selected = "" if whole else current_sentence(case.answer, (start, end))
    return tag("tr", tag("th", label, scope="row", title=without_markers(text), aria_current=selected) + cells)


def _named(answer: str, start: int, end: int) -> str:
    """The words of a span, cut where they are long; its citation markers stay whole, as numbers."""
    markers = "".join(marker.group() for marker in ANY_CITATION.finditer(answer, start, end))
    words = without_markers(answer[start:end])
    return with_pills((words if len(words) <= LONGEST else words[: LONGEST - 2] + "… ") + markers)


def _cell(value: float, top: float, under: str) -> str:
    """A score with the floor that it does not exceed, in words."""
    text, colour = f"{value:+z,.2f}", f"background:{diverging(value / top if top else 0.0)}"
    if under == UNDER_NUMERICAL:
        return tag("td", text, class_="gw-nothing", title=under)
    if under == UNDER_PLACEBO:
        return tag("td", f"{text} ·", class_="gw-weak", title=under, style=colour)
    return tag("td", text, style=colour)


def floors_line(attribution: Attribution) -> str:
    """The floors and the cost in words."""
    said, unit = [], attribution.unit
    if attribution.numerical_floor is not None:
        said.append(f"Numerical floor {attribution.numerical_floor:.2g} {unit}: a smaller value may be rounding.")
    if attribution.placebo_floor is not None:
        said.append(f"Placebo floor {attribution.placebo_floor:.3g} {unit}: a value marked · is {UNDER_PLACEBO}.")
    backwards = f" and {attribution.backwards:,} backward" if attribution.backwards else ""
    said.append(f"Cost: {attribution.forwards:,} forward{backwards} passes, {attribution.seconds:.1f} s.")
    return " ".join(said)
