"""From a stretch of the answer to its tokens, and prompts with tokens removed (docs/methods/common-ground.md).

A token belongs to the span that holds its first character that is not white space (`anchor`), so that spans that do not
overlap never share a token and their scores add up to the whole answer's. Removing tokens closes positions up; nothing
is tokenised again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.answer.citations import content_token_mask
from engine.core.errors import AttributionError
from engine.core.values import Answer
from engine.models.protocols import TokenPrompt

_VISIBLE = re.compile(r"\S")
Span = tuple[int, int]
Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]


def anchor(text: str, start: int) -> int:
    """Offset of the first character at or after `start` that is not white space; `start` if there is none.

    A token of white space alone goes with the word that it leads to, like the space in front of a word.

    >>> anchor("One. Two.", 4)
    5
    """
    found = _VISIBLE.search(text, start)
    return found.start() if found else start


def answer_spans(answer: Answer) -> tuple[Span, ...]:
    """The whole answer first, then its sentences."""
    whole = (0, len(answer.text))
    return (whole, *(span for span in answer.sentences if span != whole))


def content_mask(answer: Answer, *, count_citation_markers: bool = False) -> Mask:
    """Which tokens count, (tokens,): those with text, no markers unless asked for; `AttributionError` if none does."""
    written = np.array([token.end > token.start for token in answer.tokens], dtype=bool)
    mask = written if count_citation_markers else written & np.asarray(content_token_mask(answer), dtype=bool)
    if not mask.any():
        raise AttributionError(
            "The answer has no content tokens: it is empty or has only citation markers. Choose an answer with text, "
            "or count the markers."
        )
    return mask


def span_mask(answer: Answer, span: Span) -> Mask:
    """Which tokens belong to the characters [start, end), shape (tokens,)."""
    start, end = span
    return np.array([start <= anchor(answer.text, token.start) < end for token in answer.tokens], dtype=bool)


def touched(answer: Answer, span: Span, content: Mask) -> Span | None:
    """The span with the whole of each token that it touches; None where it touches no content token.

    A token belongs to the span that holds its anchor, so a span that begins inside a word would leave that word out.
    """
    start, end = span
    places = [(at, t.end) for t in answer.tokens if (at := anchor(answer.text, t.start)) < end and t.end > start]
    wide = min([start, *(at for at, _ in places)]), max([end, *(to for _, to in places)])
    return wide if (span_mask(answer, wide) & content).any() else None


def as_tuples(matrix: Floats) -> tuple[tuple[float, ...], ...]:
    """A matrix as the rows of an `Attribution`."""
    return tuple(tuple(row) for row in matrix.tolist())


def span_masks(answer: Answer, spans: Sequence[Span], content: Mask) -> Mask:
    """`span_mask` of every span, content tokens only; shape (spans, tokens)."""
    masks = [span_mask(answer, span) & content for span in spans]
    return np.array(masks, dtype=bool).reshape(len(spans), len(answer.tokens))


def first_content_tokens(answer: Answer, count: int, *, count_citation_markers: bool = False) -> tuple[int, ...]:
    """Indices of the first `count` content tokens, which is what the flags look at."""
    mask = content_mask(answer, count_citation_markers=count_citation_markers)
    return tuple(int(t) for t in np.flatnonzero(mask)[:count])


# Removing ids is the reference. Masking them in place equals it only with position ids counted over what is left: with
# plain position ids the answer's log-probability was 1.4 nats off. Hiding a passage from the answer alone, while later
# passages still see it, is another quantity (146 nats).


def drop_positions(prompt: TokenPrompt, positions: Collection[int]) -> TokenPrompt:
    """The prompt without the tokens at `positions`; pieces that lose all their tokens disappear."""
    gone = frozenset(positions)
    pieces = (
        (segment, [prompt.ids[i] for i in range(start, end) if i not in gone], number)
        for (segment, start, end), number in zip(prompt.spans, prompt.numbers, strict=True)
    )
    return TokenPrompt.of(piece for piece in pieces if piece[1])


def passage_positions(prompt: TokenPrompt, numbers: Iterable[int]) -> frozenset[int]:
    """Positions in `prompt.ids` of the passages `numbers`; `AttributionError` if one is not in the prompt."""
    wanted = set(numbers)
    missing = wanted - set(prompt.numbers)
    if missing:
        listed = ", ".join(map(str, sorted(missing)))
        raise AttributionError(f"The prompt does not contain passage {listed}. Choose from its passages.")
    pieces = zip(prompt.spans, prompt.numbers, strict=True)
    return frozenset(i for (_, start, end), number in pieces if number in wanted for i in range(start, end))


def passage_numbers(prompt: TokenPrompt) -> tuple[int, ...]:
    """The passage numbers in prompt order, each once."""
    return tuple(dict.fromkeys(number for number in prompt.numbers if number is not None))
