"""From a stretch of the answer to the tokens that carry it (METHODS section 0).

A token belongs to the span that holds its first character that is not white space (`anchor`), so that spans that do not
overlap never share a token and their scores add up to the whole answer's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.answer.citations import content_token_mask
from engine.errors import AttributionError
from engine.text import content_words, words
from engine.types import Answer

_VISIBLE = re.compile(r"\S")
Span = tuple[int, int]
Mask = NDArray[np.bool_]


def anchor(answer: Answer, token: int) -> int:
    """Offset of the first character from token `token` on that is not white space (its start if there is none).

    A token of white space alone goes with the word that it leads to, like the space in front of a word.
    """
    start = answer.tokens[token].start
    found = _VISIBLE.search(answer.text, start)
    return found.start() if found else start


def answer_spans(answer: Answer) -> tuple[Span, ...]:
    """The whole answer first, then its sentences."""
    whole = (0, len(answer.text))
    return (whole, *(span for span in answer.sentences if span != whole))


def content_mask(answer: Answer, *, count_citation_markers: bool = False) -> Mask:
    """Which tokens count, shape (tokens,): those with text, citation markers left out unless asked for.

    Raises `AttributionError` where none is left.
    """
    written = np.array([token.end > token.start for token in answer.tokens], dtype=bool)
    mask = written if count_citation_markers else written & np.asarray(content_token_mask(answer), dtype=bool)
    if not mask.any():
        raise AttributionError(
            "The answer has no content tokens: it is empty or made of citation markers only. "
            "Choose an answer with text, or count the citation markers."
        )
    return mask


def span_mask(answer: Answer, span: Span) -> Mask:
    """Which tokens belong to the characters [start, end), shape (tokens,)."""
    start, end = span
    return np.array([start <= anchor(answer, t) < end for t in range(len(answer.tokens))], dtype=bool)


def span_masks(answer: Answer, spans: Sequence[Span], content: Mask) -> Mask:
    """`span_mask` of every span, content tokens only; shape (spans, tokens)."""
    return np.stack([span_mask(answer, span) & content for span in spans])


def first_content_tokens(answer: Answer, count: int, *, count_citation_markers: bool = False) -> tuple[int, ...]:
    """Indices of the first `count` content tokens, which is what the flags look at."""
    mask = content_mask(answer, count_citation_markers=count_citation_markers)
    return tuple(int(t) for t in np.flatnonzero(mask)[:count])


def fact_spans(answer: Answer, clause: Span, fact: str) -> tuple[Span, ...]:
    """Where a fact stands in its clause: the clause's words that are content words of the fact, else the clause.

    Offsets are into the answer's text.
    """
    start, end = clause
    wanted = set(content_words(fact))
    found = [(start + a, start + b) for a, b in words(answer.text[start:end])]
    shared = tuple(span for span in found if wanted.intersection(content_words(answer.text[span[0] : span[1]])))
    return shared or (clause,)


def spans_mask(answer: Answer, spans: Sequence[Span]) -> Mask:
    """Tokens that belong to any of several spans (a fact's words), shape (tokens,)."""
    mask: Mask = np.logical_or.reduce([span_mask(answer, span) for span in spans])
    return mask
