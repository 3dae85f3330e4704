"""Which of a question's words a text has: stems, their weights, and the weighted share that a text covers."""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from engine.text import content_words

_own = threading.local()


def stems(text: str) -> tuple[str, ...]:
    """The content words of `text` by their English Snowball stems, in order, with repeats.

    >>> stems("The dried crystals were drying.")
    ('dri', 'crystal', 'dri')
    """
    return tuple(stemmer().stemWords(list(content_words(text))))


def word_weights(question: str, texts: Sequence[Collection[str]]) -> dict[str, float]:
    """The stems of `question` with weights that sum to 1: rarer among `texts` (collections of stems) weighs more.

    The weight is BM25's inverse document frequency, ln(1 + (N - n + 0.5) / (n + 0.5)).
    """
    weights = {}
    for stem in dict.fromkeys(stems(question)):
        count = sum(stem in text for text in texts)
        weights[stem] = math.log(1 + (len(texts) - count + 0.5) / (count + 0.5))
    total = sum(weights.values())
    return {stem: weight / total for stem, weight in weights.items()} if total else {}


def covered(weights: dict[str, float], text: Iterable[str]) -> float:
    """The share in [0, 1] of the question's weight whose stems are in `text`."""
    return sum(weights.get(stem, 0.0) for stem in set(text))


def stemmer() -> Any:
    """This thread's English Snowball stemmer: one that two threads use at a time brings the process down."""
    if not hasattr(_own, "stemmer"):
        import Stemmer

        _own.stemmer = Stemmer.Stemmer("english")
    return _own.stemmer
