"""Token -> word -> sentence -> passage: every level partitions the one below, so that sums are kept.

Signed sums, never means: a passage's relevance is the sum over its token span (grounded refinement, 4.3.2), and
ranks are by its absolute value there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.attribute.positions import Place, divide, places
from engine.attribute.relevance import Relevance
from engine.attribute.removal import passage_numbers, passage_positions
from engine.models.protocols import LanguageModel, TokenPrompt
from engine.text import sentences, words
from engine.types import Attribution, Prompt, Value

Floats = NDArray[np.float64]


class Part(Value, frozen=True):
    """Characters [start, end) of a segment's text with the sum of its tokens' relevance."""

    start: int
    end: int
    relevance: float


class PassageMap(Value, frozen=True):
    """One passage at all levels; `relevance` is the sum of each of `tokens`, `words` and `sentences`."""

    number: int
    text: str
    relevance: float
    tokens: tuple[Part, ...]
    words: tuple[Part, ...]
    sentences: tuple[Part, ...]


def passage_sums(rows: Sequence[Sequence[float]], prompt: TokenPrompt, groups: Sequence[Sequence[int]]) -> Floats:
    """Sums over each group of passages, shape (rows, groups). `rows`: relevance of each input position."""
    matrix = np.asarray(rows, dtype=np.float64)
    positions = [sorted(passage_positions(prompt, group)) for group in groups]
    return np.stack([matrix[:, where].sum(axis=1) for where in positions], axis=1)


def passage_attribution(relevance: Relevance, prompt: TokenPrompt) -> Attribution:
    """Relevance by passage as an `Attribution`: spans as explained, tokens as explained.

    `details["tokens"]` are the answer tokens of `per_token`; `details["elsewhere"]` the sum outside the sources.
    """
    chosen = tuple((number,) for number in passage_numbers(prompt))
    scores = passage_sums(relevance.by_span, prompt, chosen)
    per_token = passage_sums(relevance.by_token, prompt, chosen) if relevance.by_token else np.zeros((0, len(chosen)))
    totals = np.asarray(relevance.by_span, dtype=np.float64).sum(axis=1)
    return Attribution(
        method=relevance.method,
        model=relevance.model,
        unit=relevance.target,
        spans=relevance.spans,
        sources=chosen,
        scores=tuple(tuple(row) for row in scores.tolist()),
        per_token=tuple(tuple(row) for row in per_token.tolist()),
        forwards=relevance.forwards,
        backwards=relevance.backwards,
        seconds=relevance.seconds,
        notes=relevance.notes,
        details={
            "tokens": list(relevance.tokens),
            "elsewhere": (totals - scores.sum(axis=1)).tolist(),
            **relevance.details,
        },
    )


def passage_maps(
    model: LanguageModel, prompt: Prompt, coded: TokenPrompt, row: Sequence[float]
) -> tuple[PassageMap, ...]:
    """Every passage with its tokens, words and sentences. `row`: relevance of each input position.

    Raises `AttributionError` where the model's tokens cannot be placed in the text; `passage_sums` still works.
    """
    maps = []
    for index, segment in enumerate(prompt.segments):
        if segment.kind != "passage" or segment.number is None:
            continue
        found = places(model, prompt, coded, index)
        own = [float(row[place.position]) for place in found]
        text = segment.text
        maps.append(
            PassageMap(
                number=segment.number,
                text=text,
                relevance=float(np.sum(own)),
                tokens=tuple(
                    Part(start=place.start, end=max(place.start, place.end), relevance=value)
                    for place, value in zip(found, own, strict=True)
                ),
                words=_parts(found, own, words(text)),
                sentences=_parts(found, own, sentences(text)),
            )
        )
    return tuple(maps)


def _parts(found: Sequence[Place], own: Sequence[float], spans: Sequence[tuple[int, int]]) -> tuple[Part, ...]:
    """Sums over the words or sentences `spans`; what stands between two counts to the first."""
    parts = divide(found, [start for start, _ in spans]) if spans else ()
    return tuple(
        Part(start=start, end=end, relevance=float(sum(own[i] for i in inside)))
        for (start, end), inside in zip(spans, parts, strict=True)
    )
