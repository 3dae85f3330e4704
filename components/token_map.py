"""Every passage as a heatmap of its words, for the whole answer, one sentence or one token of it.

The component holds the rows that are computed: a click on one recolours in the browser, with no rerun and no model
call. A click on another asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from components import state
from components.analysis_run import ask_for, begin, is_open, seconds_said
from components.blocks import draw
from components.html import visible
from components.settings_panel import chosen_settings
from components.style import NEGATIVE, POSITIVE, SEQUENTIAL, STRENGTH, component
from engine.analyses.attribution import flags_table
from engine.analyses.faithfulness import RankingCheck, rankings_beside, rows_ahead
from engine.analyses.kind import FAITHFULNESS, TOKEN_MAP
from engine.analyses.token_map import (
    MapRows,
    TokenMap,
    agreement_with,
    check_due,
    check_of,
    concentration_blocks,
    concentration_of,
    flags_of,
    passes_of,
    rows_for_flags,
    settings_of_map,
)
from engine.core.settings import Settings
from engine.core.text import ANY_CITATION, marker_numbers
from engine.core.values import Attribution, Case
from engine.methods import registry
from engine.methods.spans import anchor, content_mask

CHECK = "Check this map"


def heat_map(data: dict[str, Any], *, key: str, ask: Callable[[dict[str, int]], None] | None = None) -> None:
    """Draw the answer and pieces of text in the colour of their scores; see `token_map_data` for what `data` holds.

    A sentence or passage that is clicked is selected; `ask` takes the row that is clicked and is not there:
    {"sentence": index} or {"token": index}.
    """
    whole = {**data, "colours": [NEGATIVE, POSITIVE, SEQUENTIAL], "strength": STRENGTH}
    # Callbacks: a finished run may draw the page anew before it comes to the map, and a click would be lost.
    own = {"on_selected_change": partial(_select, key), "on_asked_change": partial(_ask, key, ask)}
    component("token_map")(data=whole, key=key, **own)


def _select(key: str) -> None:
    state.select(**_clicked(key, "selected"))


def _ask(key: str, ask: Callable[[dict[str, int]], None] | None) -> None:
    if ask is not None:
        ask(_clicked(key, "asked"))


def _clicked(key: str, event: str) -> dict[str, int]:
    """The names and numbers that the component told with that event."""
    return {name: int(number) for name, number in state.value_of(key)[event].items()}


def token_map(
    found: TokenMap,
    case: Case,
    *,
    key: str,
    chosen: Mapping[str, int] | None = None,
    beside: Attribution | None = None,
    check: RankingCheck | None = None,
    ask: Callable[[MapRows], None] | None = None,
) -> None:
    """Draw the map, opened on the row `chosen`; `ask` takes a row that is clicked and has to be computed.

    `beside` is an occlusion of the same passages, told under each; `check` is told at the legend.
    """
    data = {
        **token_map_data(found, case, chosen),
        "beside": occluded(found, beside) if beside else None,
        "check": badge(check),
    }

    def rows(asked: dict[str, int]) -> None:
        sentences, tokens = ((asked[name],) if name in asked else () for name in ("sentence", "token"))
        if ask is not None:
            ask(MapRows(model=found.model, method=found.method, sentences=sentences, tokens=tokens))

    heat_map(data, key=key, ask=rows)


def occluded(found: TokenMap, beside: Attribution) -> list[list[str] | None]:
    """Occlusion's scores of the passages for each row of the map; None if occlusion lacks the row."""
    spans = dict(zip(beside.spans, beside.scores, strict=True))
    places = {numbers: j for j, numbers in enumerate(beside.sources)}
    rows: list[list[str] | None] = []
    for span in ((0, len(found.answer.text)), *found.sentences):
        row = spans.get(span)
        scores = [] if row is None else [row[places[(number,)]] for number in found.numbers]
        ranks = {j: rank for rank, j in enumerate(sorted(range(len(scores)), key=lambda j: -scores[j]), start=1)}
        said = [f"occlusion {score:+z,.2f} {beside.unit}, rank {ranks[j]}" for j, score in enumerate(scores)]
        rows.append(said or None)
    return [*rows, *(None for _ in found.tokens)]


def map_agreement(case: Case, found: TokenMap, beside: Attribution) -> None:
    """Whether map and occlusion rank the passages alike, and which of the two to go by where they do not."""
    said = agreement_with(case, found, beside, chosen_settings())
    if said:
        st.caption(said)


def map_check(case: Case, found: TokenMap, model: str) -> RankingCheck | None:
    """The map's ABPC next to random rankings; until it is there its run, which follows the map, or a button for it.

    Where the map is not above random, a button for each map that is.
    """
    check = check_of(case, found)
    with st.container(key=f"map_check_{case.id}"):  # always drawn, so that the map below keeps its place and its state
        if check is None or check.above_random is None:
            _run_check(case, found, model)
        elif check.better:
            _offer(case, [name for name, _ in check.better])
    return check


def _run_check(case: Case, found: TokenMap, model: str) -> None:
    """Begin the check where it is due, once in a session: one that was cancelled or failed waits for its button."""
    wanted, settings = rankings_beside(found.method, model), settings_of_map(case, found, chosen_settings())
    name = f"{FAITHFULNESS}:{case.id}"
    run = state.run_of(name)
    free = run is None or run.ended
    if (
        free
        and check_due(case, found, settings)
        and is_open(case)
        and state.first_time(f"{name}, {model}, {found.method}")
    ):
        begin(case, FAITHFULNESS, wanted, name, CHECK, settings)
    more = seconds_said(case, model, rows_ahead(case, wanted, settings) / 2, FAITHFULNESS)
    ask_for(case, FAITHFULNESS, CHECK, model, more, options=wanted, settings=settings, key="map")


def _offer(case: Case, better: Sequence[str]) -> None:
    """A button for each of the rankings that has a map."""
    maps = {method.name for method in registry.methods() if method.explain is not None}
    with st.container(horizontal=True):
        for name in (name for name in better if name in maps):
            st.button(
                f"Map by {name}", key=f"to_{name}", on_click=state.set_value, args=(f"map_method_{case.id}", name)
            )


def map_seconds(case: Case, wanted: MapRows) -> str:
    """How long the rows may take, going by the case's last map; a backward pass counts as two forward ones."""
    forwards, backwards = passes_of(case, wanted, chosen_settings())
    return seconds_said(case, wanted.model, forwards + 2 * backwards, TOKEN_MAP)


def flags_view(found: TokenMap, case: Case, settings: Settings, model: str) -> None:
    """Flags if passages are labelled, and the label-free trigger; both read the map's token rows."""
    flags, trigger = flags_of(found, case.labels, settings), concentration_of(found, settings)
    if flags is None or trigger is None:
        wanted = rows_for_flags(found, settings)
        ask_for(case, TOKEN_MAP, "Compute the flags", model, map_seconds(case, wanted), options=wanted, key="flags")
        return
    if all(relevant is None for relevant in case.labels.values()):
        st.caption("No passages are marked yet, so nothing is flagged. Mark passages on the Refinement page.")
    draw(flags_table(flags, case, settings.gradient.used_top))
    st.subheader("Concentration trigger, without labels")
    draw(*concentration_blocks(case, found, trigger, settings))


def badge(check: RankingCheck | None) -> dict[str, str] | None:
    """The line at the map's legend: its words, and which colour they have."""
    stands = {True: "good", False: "bad", None: "unsure"}
    return {"text": visible(check.sentence), "stand": stands[check.above_random]} if check else None


def token_map_data(found: TokenMap, case: Case, chosen: Mapping[str, int] | None = None) -> dict[str, Any]:
    """The data to draw, as plain values; text is cut by offsets here.

    `rows[r][p][i]` is the relevance of word i of passage p for the answer's part of row r, `sizes` the same of |R|.
    """
    first = 1 + len(found.sentences)
    own = {token: first + place for place, token in enumerate(found.tokens)}
    by_span = {span: 1 + place for place, span in enumerate(found.sentences)}
    sentence_rows = [by_span.get(span) for span in found.answer.sentences]
    spans = [(token.start, token.end) for token in found.answer.tokens]
    content, sentences = content_mask(found.answer).tolist(), found.answer.sentences
    passages, groups = zip(*(_passage(number, inside, case) for number, inside in found.passages), strict=True)
    return {
        "answer": with_citations(
            found.answer.text,
            spans,
            explained_pieces(found.answer.text, spans, sentences, own, content, found.argmax_differs, on_request=True),
        ),
        "words": True,
        "sentences": sentence_rows,
        "passages": list(passages),
        "rows": [_by_word(row, groups) for row in found.rows],
        "sizes": [_by_word([[abs(v) for v in passage] for passage in row], groups) for row in found.rows],
        "unit": found.target.replace("_", "-"),
        "hint": "Click a sentence, or use the arrow keys."
        f"{' A dotted sentence is not computed. Click it to do so.' if None in sentence_rows else ''}"
        f"{' Wavy: the model would have chosen another token.' if found.argmax_differs else ''}",
        "chosen": _row_of(chosen or {}, sentence_rows, own),
        "passage": state.selected_passage(len(case.passages)),
    }


def _row_of(chosen: Mapping[str, int], sentences: Sequence[int | None], tokens: Mapping[int, int]) -> int:
    """The row that was asked for; the whole answer's where it is not there."""
    if "token" in chosen:
        return tokens.get(chosen["token"], 0)
    index = chosen.get("sentence", len(sentences))
    return (sentences[index] if index < len(sentences) else None) or 0


def explained_pieces(
    text: str,
    spans: Sequence[Sequence[int]],
    sentences: Sequence[Sequence[int]],
    own: Mapping[int, int],
    content: Sequence[bool],
    differs: Collection[int] = (),
    *,
    sentence_rows: Sequence[int] = (),
    on_request: bool = False,
) -> list[dict[str, Any]]:
    """The answer's tokens: text, sentence index, and the row that explains the token (none for citation markers).

    `own[t]` is the row of token t. A token without one is explained by its sentence's (`sentence_rows`), or can be
    asked for (`on_request`).
    """
    drawn = []
    for index, ((start, _), piece) in enumerate(zip(spans, pieces(text, spans), strict=True)):
        sentence = next((s for s, (a, b) in enumerate(sentences) if a <= anchor(text, start) < b), None)
        by_sentence = sentence_rows[sentence] if sentence_rows and sentence is not None and content[index] else None
        row = own.get(index, by_sentence)
        asks = {"token": index} if on_request and row is None and content[index] else None
        differing = index in differs
        drawn.append({"text": piece, "row": row, "sentence": sentence, "differs": differing, "asks": asks})
    return drawn


def with_citations(text: str, spans: Sequence[Sequence[int]], drawn: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pieces of `explained_pieces`, those of one citation marker as one piece with the numbers that it names.

    >>> [p.get("number", p["text"]) for p in with_citations("A. [1]", [(0, 1), (1, 2), (2, 6)],
    ...  [{"text": "A", "row": 0}, {"text": ".", "row": 0}, {"text": " [1]", "row": None}])]
    ['A', '.', ' ', '1']
    """
    markers = list(ANY_CITATION.finditer(text))
    found: list[dict[str, Any]] = []
    position = 0
    for (_, end), piece in zip(spans, drawn, strict=True):
        marker = next((m for m in markers if m.start() < end and position < m.end()), None)
        if marker is None or piece.get("asks"):
            found.append(piece)
        else:
            before, after = text[position : max(position, marker.start())], text[marker.end() : end]
            if before:
                found.append({**piece, "text": visible(before)})
            if position <= marker.start():
                number = ", ".join(str(number) for *_, number in marker_numbers(marker.group()))
                found.append({**piece, "text": visible(marker.group()), "number": number, "row": None})
            if after:
                found.append({**piece, "text": visible(after)})
        position = max(position, end)
    return found


def pieces(text: str, spans: Sequence[Sequence[int]]) -> list[str]:
    """The text of each token with the white space that leads to it; a character that tokens share is drawn once.

    >>> pieces("a bc", [(0, 1), (2, 3), (2, 4)])
    ['a', ' b', 'c']
    """
    found, position = [], 0
    for _, end in spans:
        found.append(visible(text[position : max(position, end)]))
        position = max(position, end)
    return found


def words_of(tokens: Sequence[str]) -> list[list[int]]:
    """Which pieces make a word: a piece that begins with white space, or follows some, starts one.

    >>> words_of(["", "Kil", "n", " of", "\\n", "it"])
    [[0, 1, 2], [3], [4], [5]]
    """
    groups: list[list[int]] = []
    for index, piece in enumerate(tokens):
        before = tokens[groups[-1][-1]] if groups else ""
        joined = groups and not piece[:1].isspace() and not before[-1:].isspace()
        if joined:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def _by_word(row: Sequence[Sequence[float]], groups: Sequence[Sequence[Sequence[int]]]) -> list[list[float]]:
    return [
        [float(f"{passage[word[0]] if len(word) == 1 else sum([passage[i] for i in word]):.5g}") for word in words]
        for passage, words in zip(row, groups, strict=True)
    ]


def _passage(number: int, spans: tuple[tuple[int, int], ...], case: Case) -> tuple[dict[str, Any], list[list[int]]]:
    """A passage's title and words, and which tokens make each; the template around it comes out as an empty word."""
    passage = case.passages[number - 1]
    tokens = pieces(passage.text, [(max(0, start), max(0, end)) for start, end in spans])
    outside = [i for i, (_, end) in enumerate(spans) if end <= 0]
    inside = len(outside)
    words = [[i + inside for i in word] for word in words_of(tokens[inside:])]
    groups = [outside, *words] if outside else words
    drawn = ["".join(tokens[i] for i in word) for word in groups]
    return {"number": number, "numbers": [number], "title": visible(passage.label), "tokens": drawn}, groups
