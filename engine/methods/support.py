"""Is each sentence of an answer borne out by its passages: one score per sentence, the mean of named parts.

No paper's method. A verifier alone misses what is worded otherwise, words alone miss what is made up from the passages'
own words. Parts, each in [0, 1]: `verdict`, the verifier's largest probability of supportive over the windows that hold
most of the sentence's words; `closest`, the same for the passage sentence nearest in meaning alone; `similarity`, the
cosine to that sentence; `words`, the share of the sentence's content words that the passages have (rare ones weigh
more); `explained`, the share of the sentence's surprise to a language model that the passages take away. Weights fitted
on one kind of text did worse on another than the plain mean (bench/support.py has the figures). Left out: verdicts of
the sentence's facts, which cost a check of the whole answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from engine.core.errors import PromptTooLong
from engine.core.metrics import statements
from engine.core.progress import Watch
from engine.core.text import covered, sentences, stems, titled, word_weights
from engine.core.values import Answer, Passage, Prompt, Value
from engine.methods.spans import Span, content_mask, passage_numbers, span_masks
from engine.models.protocols import Embedder, Entailment, LanguageModel
from engine.models.verdicts import windows

READ = 3  # windows that the verifier reads for a sentence
Scored = tuple[LanguageModel, Prompt, Answer]  # a scorer, the prompt with the passages, the answer in its tokens


class SentenceSupport(Value, frozen=True):
    """Characters [start, end) of the answer, and in `support` how far the passages bear them out, 0 to 1.

    `passage` (a number from 1) and `window` ([start, end) of its text) say where most speaks for the sentence: where it
    is word for word, else by the verifier.
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
    scored: Scored | None = None,
    watch: Watch = Watch(),
) -> tuple[SentenceSupport, ...]:
    """The support of each sentence of the answer that says something, without its markers; empty without passages.

    Without `scored` there is no part `explained`.
    """
    found, said = passage_windows(passages), statements(answer)
    if not found or not said:
        return ()
    texts, spans = [sentence.text for sentence in said], [(sentence.start, sentence.end) for sentence in said]
    chosen = [[found[place] for place in best_windows(text, found)] for text in texts]
    close = closest_sentences(texts, passages, embedder)
    verdicts = _verdicts(texts, chosen, [sentence for sentence, _ in close], verifier, watch)
    explained: list[float] = []
    with suppress(PromptTooLong):  # the scorer's window may not hold the passages
        explained = surprise_explained(*scored, spans, watch) if scored else []
    every, result = [window.stems for window in found], []
    for place, text in enumerate(texts):
        *read, nearest = verdicts[place]
        parts = {
            "verdict": max(read),
            "closest": nearest,
            "similarity": max(0.0, close[place][1]),
            "words": covered(word_weights(text, every), frozenset().union(*every)),
            **({"explained": explained[place]} if explained else {}),
        }
        # It rests on the window that has it word for word, else on the one with the highest verdict.
        rated = zip(read, chosen[place], strict=True)
        _, window = max(rated, key=lambda one: (_holds(one[1].text, text), one[0]))
        start, end = spans[place]
        result.append(
            SentenceSupport(
                start=start,
                end=end,
                support=round(sum(parts.values()) / len(parts), 4),
                parts={name: round(value, 4) for name, value in parts.items()},
                passage=window.number,
                window=(window.start, window.end),
            )
        )
    return tuple(result)


def _verdicts(
    texts: Sequence[str], chosen: Sequence[Sequence[Window]], close: Sequence[str], verifier: Entailment, watch: Watch
) -> list[list[float]]:
    """For each text the verifier's probability of supportive by its windows, then by the closest sentence."""
    read = [[*(window.text for window in windows), near] for windows, near in zip(chosen, close, strict=True)]
    pairs = [(text, evidence) for text, several in zip(texts, read, strict=True) for evidence in several]
    found = iter(verifier.entailment(pairs, watch).tolist())
    return [[next(found) for _ in several] for several in read]


def surprise_explained(
    model: LanguageModel, prompt: Prompt, answer: Answer, spans: Sequence[Span], watch: Watch = Watch()
) -> list[float]:
    """For each span of the answer the share of its surprise (nats) that the passages take away, 0 to 1.

    1 - surprise with all passages / surprise without any, over the half of the span's content tokens that surprise most
    without: function words are as likely after any text. The first token of a later span is left out: a model that has
    passages expects a citation there, or the end. A span without content tokens has 0. Two forward passes.
    """
    coded, ids = model.encode(prompt), [token.id for token in answer.tokens]
    bare = coded.without(set(passage_numbers(coded)))
    told, untold = -model.score([coded, bare], ids, watch)
    shares = []
    content = content_mask(answer)
    for mask in span_masks(answer, spans, content):
        if not mask[content.argmax()] and mask.sum() > 1:
            mask[mask.argmax()] = False
        rare = mask & (untold >= np.median(untold[mask])) if mask.any() else mask
        shares.append(float(np.clip(1 - told[rare].sum() / max(untold[rare].sum(), 1e-9), 0, 1)) if mask.any() else 0.0)
    return shares


def passage_windows(passages: Sequence[Passage]) -> list[Window]:
    """The windows of all passages, as the verifier reads them."""
    return [
        Window(number, start, end, p.text[start:end], frozenset(stems(titled(p.title, p.text[start:end]))))
        for number, p in enumerate(passages, start=1)
        for start, end in windows(p.text)
    ]


def best_windows(text: str, found: Sequence[Window]) -> list[int]:
    """Places of the `READ` windows with most of the text's content words, best first; of equals one with all of it."""
    weights = word_weights(text, [window.stems for window in found])
    shares = [covered(weights, window.stems) for window in found]
    most = max(shares, default=0.0)
    ranks = [
        (-share, share == most and not _holds(window.text, text)) for share, window in zip(shares, found, strict=True)
    ]
    return sorted(range(len(found)), key=ranks.__getitem__)[:READ]


def _holds(text: str, part: str) -> bool:
    """Whether a text has the part word for word, line breaks, case and the last full stop aside."""
    whole, wanted = (" ".join(one.lower().split()) for one in (text, part))
    return bool(re.search(rf"(?<!\w){re.escape(wanted.rstrip('.'))}(?!\w)", whole))


def closest_sentences(texts: Sequence[str], passages: Sequence[Passage], embedder: Embedder) -> list[tuple[str, float]]:
    """For each text the sentence of the passages with the largest cosine to it, and that cosine."""
    parts = [p.text[a:b] for p in passages for a, b in sentences(p.text) or ((0, len(p.text)),)]
    vectors = embedder.embed([*texts, *parts])
    cosines = vectors[: len(texts)] @ vectors[len(texts) :].T
    return [(parts[int(row.argmax())], float(row.max())) for row in cosines]
