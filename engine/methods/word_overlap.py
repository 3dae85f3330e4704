"""Word overlap: which passages have the words of a span of the answer, counted without a model.

Word for word first, then the share of the span's different content words (core/text.py): the recall of single words.
These are counts. They do not enter a score and have no floors. No paper's method; on real answers it finds the source
as often as occlusion does (bench/RESULTS.md, "The source of real answers"). Left out: inflection, synonyms, the order
of words where the span is not whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from engine.answer.citations import without_markers
from engine.core.text import content_words, unligated, words
from engine.core.values import Answer, Token, Value
from engine.methods.spans import Span

METHOD = "word overlap"
UNIT = "share of words"


class WordOverlap(Value, frozen=True):
    """How many different content words each span has, how many of them each passage has, and which have it whole.

    `words` has the shape (spans,), `shared` and `word_for_word` have (spans, passages).
    """

    spans: tuple[Span, ...]
    words: tuple[int, ...]
    shared: tuple[tuple[int, ...], ...]
    word_for_word: tuple[tuple[bool, ...], ...]

    @property
    def shares(self) -> tuple[tuple[float, ...], ...]:
        """The share of each span's words that each passage has, in [0, 1]; 0 for a span of stop words alone."""
        rows = zip(self.shared, self.words, strict=True)
        return tuple(tuple(number / (of or 1) for number in row) for row, of in rows)


def in_words(answer: Answer) -> Answer:
    """The answer with its words as tokens."""
    tokens = tuple(Token(id=0, start=start, end=end) for start, end in words(answer.text))
    return replace(answer, tokens=tokens)


def word_overlap(answer: str, passages: Sequence[str], spans: Sequence[Span]) -> WordOverlap:
    """Count the words of each span of the answer in each passage; citation markers, case and line breaks aside.

    >>> found = word_overlap("Tin melts early. [1]", ["The tin melts\\nearly.", "Early tin", "So it melts"], [(0, 20)])
    >>> found.words, found.shared, found.word_for_word
    ((3,), ((3, 2, 1),), ((True, False, False),))
    """
    parts = [_line_and_words(answer[start:end]) for start, end in spans]
    texts = [_line_and_words(text) for text in passages]
    return WordOverlap(
        spans=tuple(spans),
        words=tuple(len(wanted) for _, wanted in parts),
        shared=tuple(tuple(len(wanted & held) for _, held in texts) for _, wanted in parts),
        word_for_word=tuple(tuple(bool(wanted) and _has(text, part) for text, _ in texts) for part, wanted in parts),
    )


def _line_and_words(text: str) -> tuple[str, frozenset[str]]:
    """The text in lower case on one line without citation markers, and its content words."""
    return " ".join(unligated(without_markers(text)).lower().split()), frozenset(content_words(text))


def _has(text: str, part: str) -> bool:
    """Whether the text has the part, not cut inside a word."""
    return part in text and bool(re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text))  # `in` is far faster
