"""Every passage as a heatmap of its tokens, for the whole answer, one sentence or one token of it.

The component holds all the rows: a click recolours in the browser, with no rerun and no model call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

import streamlit as st

from components.html import visible
from components.style import NEGATIVE, POSITIVE, STRENGTH, stylesheet
from engine.analyses.attribution import TokenMap
from engine.core.values import Case
from engine.methods.spans import anchor, content_mask


@cache
def _component() -> Any:
    return st.components.v2.component(
        "groundwork_token_map",
        html='<div class="gw"></div>',
        css=stylesheet("token_map.css"),
        js=stylesheet("token_map.js"),
    )


def heat_map(data: dict[str, Any], *, key: str) -> None:
    """Draw pieces of text in the colour of their scores; see `token_map_data` for what `data` holds."""
    _component()(data={**data, "colours": [NEGATIVE, POSITIVE], "strength": STRENGTH}, key=key)


def token_map(found: TokenMap, case: Case, *, key: str) -> None:
    """Draw the map; signed, zero-centred, one scale for all passages of a row, the number on hover."""
    heat_map(token_map_data(found, case), key=key)


def token_map_data(found: TokenMap, case: Case) -> dict[str, Any]:
    """What is drawn, as plain values; text is cut by offsets here.

    `rows[r][p][i]` colours piece i of passage p when the answer's part of row r is chosen.
    """
    first = 1 + len(found.sentences)
    own = {token: first + place for place, token in enumerate(found.tokens)}
    spans = [(token.start, token.end) for token in found.answer.tokens]
    content = content_mask(found.answer).tolist()
    return {
        "answer": explained_pieces(found.answer.text, spans, found.sentences, own, content, found.argmax_differs),
        "sentences": [[start, end] for start, end in found.sentences],
        "passages": [_passage(number, spans, case) for number, spans in found.passages],
        "rows": [[[round(v, 5) for v in passage] for passage in row] for row in found.rows],
        "unit": found.target.replace("_", "-"),
    }


def explained_pieces(
    text: str,
    spans: Sequence[Sequence[int]],
    sentences: Sequence[Sequence[int]],
    own: Mapping[int, int],
    content: Sequence[bool],
    differs: Collection[int] = (),
) -> list[dict[str, Any]]:
    """The answer's tokens: text, sentence index, and the row that explains the token (none for citation markers).

    `own[t]` is the row of token t; a token without one is explained by its sentence's row.
    """
    drawn = []
    for index, ((start, _), piece) in enumerate(zip(spans, pieces(text, spans), strict=True)):
        sentence = next((s for s, (a, b) in enumerate(sentences) if a <= anchor(text, start) < b), None)
        by_sentence = None if sentence is None or not content[index] else 1 + sentence
        row = own.get(index, by_sentence)
        drawn.append({"text": piece, "row": row, "sentence": sentence, "differs": index in differs})
    return drawn


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


def _passage(number: int, spans: tuple[tuple[int, int], ...], case: Case) -> dict[str, Any]:
    """A passage's title and token texts; tokens of the template around it come out as empty pieces."""
    passage = case.passages[number - 1]
    inside = [(max(0, start), max(0, end)) for start, end in spans]
    return {
        "number": number,
        "title": visible(passage.label),
        "tokens": pieces(passage.text, inside),
    }
