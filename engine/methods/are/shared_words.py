"""Which words a fact and a passage share, by stems: a reading aid, no verdict."""

from __future__ import annotations

import math
import re
from functools import lru_cache

from engine.core.text import STOP_WORDS, content_words
from engine.methods.are.quantities import quantities
from engine.models.alignment import stem

WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
_PART = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['’]s?(?!\w)")


def is_content(word: str) -> bool:
    """Does the word say something: no stop word, no number, three letters or more."""
    return len(word) > 2 and word.lower() not in STOP_WORDS and not any(c.isdigit() for c in word)


@lru_cache(maxsize=8192)  # every fact of an answer is held against the same sentences
def stems(text: str) -> frozenset[str]:
    """The stems of the text's content words, a possessive as its noun.

    >>> sorted(stems("Ada's two ships sailed")) == sorted(stems("ships of Ada sailing, two"))
    True
    """
    return frozenset(stem(word) for word in content_words(_POSSESSIVE.sub("", text)))


@lru_cache(maxsize=8192)  # Facts marks them in every passage considered, each time that it is drawn
def shared_words(fact: str, passage: str) -> tuple[tuple[int, int], ...]:
    """[start, end) of the passage's content words and numbers that the fact holds too, in order, not overlapping.

    >>> [("It won 5,000 votes."[a:b]) for a, b in shared_words("She won 5000 seats", "It won 5,000 votes.")]
    ['won', '5,000']
    """
    values = [q.value for q in quantities(fact)]
    numbers = [
        (q.start, q.end) for q in quantities(passage) if any(math.isclose(q.value, v, rel_tol=1e-6) for v in values)
    ]
    said = {stem(word.lower()) for word in _PART.findall(fact) if word.lower() not in STOP_WORDS}
    words = [
        match.span()
        for match in _PART.finditer(passage)
        if not match.group()[0].isdigit()
        and match.group().lower() not in STOP_WORDS
        and stem(match.group().lower()) in said
    ]
    found: list[tuple[int, int]] = []
    for start, end in sorted([*numbers, *words]):
        if not found or start >= found[-1][1]:
            found.append((start, end))
    return tuple(found)
