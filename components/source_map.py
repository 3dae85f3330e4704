"""Occlusion on the text: the answer to click in, and every source in the colour of its score.

Drawn by the token map's component, whose pieces of text are here whole passages, chunk sets or sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components import state
from components.html import visible
from components.token_map import explained_pieces, heat_map, pieces, with_citations
from engine.analyses.attribution import floors
from engine.core.values import Attribution, Case


def source_map(attribution: Attribution, case: Case, *, key: str) -> None:
    """Draw it; a click on a sentence or a word of the answer recolours the sources in the browser."""
    selected = state.selected_sentence(len(attribution.spans) - 1) or 0
    passage = state.selected_passage(len(case.passages))
    heat_map({**source_map_data(attribution, case), "chosen": selected, "passage": passage}, key=key)


def source_map_data(attribution: Attribution, case: Case) -> dict[str, Any]:
    """The data to draw, as plain values: rows for the spans, then for the content tokens with scores."""
    cards = _cards(attribution, case)
    content = attribution.details.content
    tokens = [t for t, counts in enumerate(content) if counts and t < len(attribution.per_token)]
    rows = [*attribution.scores, *(attribution.per_token[t] for t in tokens)]
    where = [span for span in attribution.details.tokens if isinstance(span, tuple)]
    own = {token: len(attribution.scores) + place for place, token in enumerate(tokens)}
    sentences = attribution.spans[1:]
    numbers = list(range(1, len(attribution.spans)))
    counted = [bool(c) for c in content]
    under = _floors(attribution, tokens)
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
        "rows": [[[round(row[j], 5) for j in card["sources"]] for card in cards] for row in rows],
        "floors": under,
        "unit": attribution.unit,
    }


def _cards(attribution: Attribution, case: Case) -> list[dict[str, Any]]:
    """One card per passage or chunk set: the pieces of its text with their sources."""
    where = attribution.details.text_spans
    if where:
        return _by_sentence(where, case)
    return [
        {
            "number": _numbered(numbers),
            "numbers": list(numbers),
            "title": visible(_title(case, numbers)),
            "tokens": ["\n\n".join(visible(case.passages[n - 1].text) for n in numbers)],
            "sources": [j],
        }
        for j, numbers in enumerate(attribution.sources)
    ]


def _by_sentence(where: Sequence[Sequence[int]], case: Case) -> list[dict[str, Any]]:
    """`where[j]` = [passage number, start, end] of source j in the passage's text."""
    cards = []
    for number in dict.fromkeys(place[0] for place in where):
        own = [j for j, place in enumerate(where) if place[0] == number]
        spans = [(where[j][1], where[j][2]) for j in own]
        tokens = pieces(case.passages[number - 1].text, spans)
        title = visible(_title(case, (number,)))
        cards.append({"number": number, "numbers": [number], "title": title, "tokens": tokens, "sources": own})
    return cards


def _numbered(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def _title(case: Case, numbers: Sequence[int]) -> str:
    return "; ".join(dict.fromkeys(case.passages[n - 1].label for n in numbers))


def _floors(attribution: Attribution, tokens: Sequence[int]) -> list[list[float | None]]:
    """[numerical, placebo] of each row; a token has no numerical floor of its own."""
    by_token = attribution.details.placebo_floor_by_token
    rows = [list(floors(attribution, span)) for span in range(len(attribution.spans))]
    return [*rows, *([None, by_token[t] if by_token else None] for t in tokens)]
