"""Is each sentence of an answer borne out by its passages: one score per sentence, made from named parts.

No paper's method. A verifier alone misses what is worded otherwise, words alone miss what is made up from the passages'
own words; the score is a logistic function of both. Parts: `verdict` and `contradiction`, the verifier's largest
probability of supportive and of editing required over the windows that hold most of the sentence's words; `similarity`,
the cosine to the closest passage sentence; `words`, the share of the sentence's content words that the passages have
(rare ones weigh more). The weights were fitted on summaries with votes (bench/support.py has the figures).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine.core.metrics import statements
from engine.core.progress import Watch
from engine.core.text import covered, sentences, stems, titled, word_weights
from engine.core.values import Answer, Passage, Value
from engine.models.protocols import Embedder, Entailment, Floats
from engine.models.verdicts import windows

READ = 3  # windows that the verifier reads for a sentence
WEIGHTS = {"verdict": 1.0, "contradiction": -1.0, "similarity": 1.0, "words": 1.0, "constant": 0.0}


class SentenceSupport(Value, frozen=True):
    """Characters [start, end) of the answer, and in `support` how far the passages bear them out, 0 to 1.

    `passage` (a number from 1) and `window` ([start, end) of its text) say where most speaks for the sentence.
    """

    start: int
    end: int
    support: float
    parts: dict[str, float]
    passage: int
    window: tuple[int, int]


@dataclass(frozen=True)
class Window:
    """Characters [start, end) of passage `number`, with the stems of its words and of its passage's title."""

    number: int
    start: int
    end: int
    text: str
    stems: frozenset[str]


def answer_support(
    answer: Answer,
    passages: Sequence[Passage],
    verifier: Entailment,
    embedder: Embedder,
    watch: Watch | None = None,
) -> tuple[SentenceSupport, ...]:
    """The support of each sentence of the answer that says something, without its markers; empty without passages."""
    found = passage_windows(passages)
    said = statements(answer)
    if not found or not said:
        return ()
    texts = [sentence.text for sentence in said]
    close = closeness(texts, passages, embedder)
    chosen = [best_windows(text, found) for text in texts]
    pairs = [(text, found[i].text) for text, places in zip(texts, chosen, strict=True) for i in places]
    judged = iter([one.scores for one in verifier.judge(pairs, watch)])
    result = []
    for sentence, similarity, places in zip(said, close, chosen, strict=True):
        scores = [next(judged) for _ in places]
        best = max(range(len(places)), key=lambda i: scores[i]["supportive"])
        window = found[places[best]]
        parts = {
            "verdict": scores[best]["supportive"],
            "contradiction": max(one["editing_required"] for one in scores),
            "similarity": float(similarity),
            "words": words_held(sentence.text, found),
        }
        place = (window.number, (window.start, window.end))
        result.append(SentenceSupport(sentence.start, sentence.end, combined(parts), _rounded(parts), *place))
    return tuple(result)


def passage_windows(passages: Sequence[Passage]) -> list[Window]:
    """The windows of all passages, as the verifier reads them."""
    return [
        Window(number, start, end, p.text[start:end], frozenset(stems(titled(p.title, p.text[start:end]))))
        for number, p in enumerate(passages, start=1)
        for start, end in windows(p.text)
    ]


def best_windows(text: str, found: Sequence[Window], most: int = READ) -> list[int]:
    """Places of the windows that hold most of the text's content words, best first."""
    weights = word_weights(text, [window.stems for window in found])
    return sorted(range(len(found)), key=lambda i: -covered(weights, found[i].stems))[:most]


def words_held(text: str, found: Sequence[Window]) -> float:
    """The share in [0, 1] of the text's content words, rare ones weighing more, that any window has."""
    weights = word_weights(text, [window.stems for window in found])
    return covered(weights, frozenset[str]().union(*(window.stems for window in found)))


def closeness(texts: Sequence[str], passages: Sequence[Passage], embedder: Embedder) -> Floats:
    """The largest cosine of each text to a sentence of the passages, shape (texts,)."""
    parts = [p.text[a:b] for p in passages for a, b in sentences(p.text) or ((0, len(p.text)),)]
    vectors = embedder.embed([*texts, *parts])
    largest: Floats = (vectors[: len(texts)] @ vectors[len(texts) :].T).max(axis=1)
    return largest


def combined(parts: dict[str, float]) -> float:
    """The support of some parts: the logistic function of their weighted sum."""
    return round(1 / (1 + math.exp(-WEIGHTS["constant"] - sum(WEIGHTS[name] * parts[name] for name in parts))), 4)


def _rounded(parts: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in parts.items()}
