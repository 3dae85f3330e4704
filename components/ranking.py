"""The passages as they were ranked: by the search as soon as it ends, then each moved to where re-ranking puts it."""

from __future__ import annotations

from typing import Any

from components.evidence import score_bar, score_scales
from components.html import visible
from components.style import component
from engine.answer.quoting_reader import whole_id
from engine.core.values import Case

LONGEST = 180  # characters of a passage shown in its row


def ranking(case: Case, *, key: str, moving: bool = False) -> None:
    """Draw a row per retrieved passage; `moving`: from the places of the search to those of the re-ranking."""
    component("ranking")(data={"rows": ranking_rows(case), "moving": moving}, key=key)


def ranking_rows(case: Case) -> list[dict[str, Any]]:
    """The rows in the order of the search; `after` is None before re-ranking, `given` for a passage left out."""
    scales = score_scales(case)
    order = [passage.id for chunk_set in case.chunk_sets for passage in chunk_set.passages]
    after = {name: place for place, name in enumerate(order, start=1)}
    given = {whole_id(passage): number for number, passage in reversed(list(enumerate(case.passages, start=1)))}
    return [
        {
            "before": place,
            "after": after.get(hit.passage.id),
            "given": given.get(hit.passage.id),
            "title": visible(hit.passage.label),
            "text": visible(" ".join(hit.passage.text[:LONGEST].split())) + ("…" if hit.passage.text[LONGEST:] else ""),
            "scores": [
                score_bar(name, scale, hit.passage.id) for name, scale in scales.items() if hit.passage.id in scale
            ],
        }
        for place, hit in enumerate(case.hits, start=1)
    ]
