"""The occlusion tab: sources at three levels, each left out; the text in their colours, the table, floors, cost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from components import state
from components.analysis_run import ask_for, banners, is_banner, is_by, latest, seconds_said
from components.answer import answer_view, current_sentence, with_pills
from components.export_figure import export_button
from components.html import banner, escape, note, plain, show, table, tag, visible
from components.style import diverging
from components.token_map import explained_pieces, heat_map, pieces, with_citations
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
    view = partial(_draw_level, kind=kind, model=model)
    ask_for(case, kind, LABELS[kind], model, seconds, lead=WHAT[kind], done=is_by(found, model), view=view)
    if found is not None:
        attribution = Attribution.from_dict(found.result)
        export_button(lambda: drawn_occlusion(case, attribution), key=f"{kind}_{case.id}")


def _draw_level(case: Case, kind: str, model: str) -> None:
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
    _draw_tables(attribution, case, kind)
    st.caption(plain(floors_line(attribution)))


def by_another(found: Analysis, model: str) -> None:
    """Say above results whose they are, where the chosen scorer has none."""
    if not is_by(found, model):
        chosen = title_of(model) or model
        banner(f"These results are by {found.stamp.model}. {chosen} has not scored this answer yet.")


def _draw_tables(attribution: Attribution, case: Case, kind: str) -> None:
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
    rows = [_score_row(attribution, index, top, case) for index in range(len(attribution.spans))]
    unit = f"{attribution.unit}, by {attribution.model}"
    show(table(heads, rows, f"Scores in {unit}. Positive: the source makes the answer more likely."))
    for line in attribution.notes:
        if not is_banner(line):  # a banner stands above the table
            note(line)


def source_head(numbers: tuple[int, ...], case: Case) -> str:
    """The head of a source's column: its numbers, with the titles of its passages."""
    label = ", ".join(str(n) for n in numbers) if len(numbers) < 4 else f"{numbers[0]} to {numbers[-1]}"
    selected = state.current("passage", *numbers)
    return tag("th", escape(label), scope="col", title=_titles_of(case, numbers), aria_current=selected)


def _score_row(attribution: Attribution, index: int, top: float, case: Case) -> str:
    start, end = attribution.spans[index]
    whole = index == 0 and (start, end) == (0, len(case.answer.text))
    text = "the whole answer" if whole else case.answer.text[start:end]
    label = escape(text) if whole else _span_words(case.answer.text, start, end)
    under = floors(attribution, index)
    cells = "".join(_score_cell(value, top, under_floor(value, *under)) for value in attribution.scores[index])
    selected = "" if whole else current_sentence(case.answer, (start, end))
    return tag("tr", tag("th", label, scope="row", title=without_markers(text), aria_current=selected) + cells)


def _span_words(answer: str, start: int, end: int) -> str:
    """The words of a span, cut where they are long; its citation markers stay whole, as numbers."""
    markers = "".join(marker.group() for marker in ANY_CITATION.finditer(answer, start, end))
    words = without_markers(answer[start:end])
    return with_pills((words if len(words) <= LONGEST else words[: LONGEST - 2] + "… ") + markers)


def _score_cell(value: float, top: float, under: str) -> str:
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


def source_map(attribution: Attribution, case: Case, *, key: str) -> None:
    """Draw the answer to click in, and every source in the colour of its score.

    A click on a sentence or a word of the answer recolours the sources in the browser. Drawn by the token map's
    component, whose pieces of text are here whole passages, chunk sets or sentences.
    """
    selected = state.selected_sentence(len(attribution.spans) - 1) or 0
    passage = state.selected_passage(len(case.passages))
    heat_map({**source_map_data(attribution, case), "chosen": selected, "passage": passage}, key=key)


def source_map_data(attribution: Attribution, case: Case) -> dict[str, Any]:
    """The data to draw, as plain values: rows for the spans, then for the content tokens with scores."""
    cards = _source_cards(attribution, case)
    content = attribution.details.content
    tokens = [t for t, counts in enumerate(content) if counts and t < len(attribution.per_token)]
    rows = [*attribution.scores, *(attribution.per_token[t] for t in tokens)]
    where = [span for span in attribution.details.tokens if isinstance(span, tuple)]
    own = {token: len(attribution.scores) + place for place, token in enumerate(tokens)}
    sentences = attribution.spans[1:]
    numbers = list(range(1, len(attribution.spans)))
    counted = [bool(c) for c in content]
    under = _row_floors(attribution, tokens)
    hatched = any(placebo for _, placebo in under) and all(len(card["sources"]) == 1 for card in cards)
    return {
        "answer": with_citations(
            case.answer.text,
            where,
            explained_pieces(case.answer.text, where, sentences, own, counted, sentence_rows=numbers),
        ),
        "words": bool(tokens),
        "sentences": numbers,
        "hint": "Click a sentence, or use the arrow keys."
        f"{' Hatched: the effect of an unrelated passage.' if hatched else ''}",
        "counts": [*attribution.details.content_tokens, *(1 for _ in tokens)] or None,
        "passages": [{name: card[name] for name in ("number", "numbers", "title", "tokens")} for card in cards],
        "rows": [[np.round(row[card["sources"]], 5).tolist() for card in cards] for row in np.asarray(rows)],
        "floors": under,
        "unit": attribution.unit,
    }


def _source_cards(attribution: Attribution, case: Case) -> list[dict[str, Any]]:
    """One card per passage or chunk set: the pieces of its text with their sources."""
    where = attribution.details.text_spans
    if where:
        return _sentence_cards(where, case)
    return [
        {
            "number": _number_range(numbers),
            "numbers": list(numbers),
            "title": visible(_titles_of(case, numbers)),
            "tokens": ["\n\n".join(visible(case.passages[n - 1].text) for n in numbers)],
            "sources": [j],
        }
        for j, numbers in enumerate(attribution.sources)
    ]


def _sentence_cards(where: Sequence[Sequence[int]], case: Case) -> list[dict[str, Any]]:
    """`where[j]` = [passage number, start, end] of source j in the passage's text."""
    cards = []
    for number in dict.fromkeys(place[0] for place in where):
        own = [j for j, place in enumerate(where) if place[0] == number]
        spans = [(where[j][1], where[j][2]) for j in own]
        tokens = pieces(case.passages[number - 1].text, spans)
        title = visible(_titles_of(case, (number,)))
        cards.append({"number": number, "numbers": [number], "title": title, "tokens": tokens, "sources": own})
    return cards


def _number_range(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def _titles_of(case: Case, numbers: Sequence[int]) -> str:
    return "; ".join(dict.fromkeys(case.passages[n - 1].label for n in numbers))


def _row_floors(attribution: Attribution, tokens: Sequence[int]) -> list[list[float | None]]:
    """[numerical, placebo] of each row; a token has no numerical floor of its own."""
    by_token = attribution.details.placebo_floor_by_token
    rows = [list(floors(attribution, span)) for span in range(len(attribution.spans))]
    return [*rows, *([None, by_token[t] if by_token else None] for t in tokens)]
