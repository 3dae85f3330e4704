"""A guard beside the verifier: does a sentence give two events in another order than the fact.

"A before B" against "A after B", and against "B before A". A small entailment model calls such pairs supportive, since
every word is shared. Only what stands in one sentence with such a word is compared; orders that follow from dates alone
are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.models.alignment import stem
from engine.text import content_words

_WORD = re.compile(
    r"\b(?:(?P<before>before|prior to|ahead of|preced(?:ed|es|ing))|(?P<after>after|follow(?:ed|s|ing)))\b"
    r"(?P<by> by\b)?",
    re.IGNORECASE,
)
TURNED = {
    "before": "after", "after": "before", "prior to": "after", "ahead of": "after", "preceded": "followed",
    "precedes": "follows", "preceding": "following", "followed": "preceded", "follows": "precedes",
    "following": "preceding",
}  # fmt: skip
_BREAK = re.compile(r"[,;:()]\s")
_SHARED = 2  # words that both sides together must share


@dataclass(frozen=True)
class Order:
    """Two events around [start, end): `left` comes first where `first`; both are stems of content words."""

    start: int
    end: int
    first: bool
    left: frozenset[str]
    right: frozenset[str]


def orders(text: str) -> list[Order]:
    """The orders that the text states, left to right."""
    found = []
    marks = list(_WORD.finditer(text))
    for number, match in enumerate(marks):
        begin = marks[number - 1].end() if number else 0
        stop = marks[number + 1].start() if number + 1 < len(marks) else len(text)
        first = (match.group("before") is not None) != (match.group("by") is not None)
        left = _said(_BREAK.split(text[begin : match.start()])[-1])
        right = _said(_BREAK.split(text[match.end() : stop])[0])
        if right:
            found.append(Order(match.start(), match.end(), first, left, right))
    return found


def _said(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in content_words(text))


def against(fact: str, sentence: str) -> Order | None:
    """The order of the fact that the sentence turns round; None where it states none of the same events.

    >>> against("He left before the storm.", "He left two days after the storm.").first
    True
    >>> against("He left before the storm.", "He left before the storm.") is None
    True
    """
    theirs = orders(sentence)
    for mine in orders(fact):
        verdicts = [agreed for other in theirs if (agreed := _agrees(mine, other)) is not None]
        if verdicts and not any(verdicts):
            return mine
    return None


def _agrees(mine: Order, other: Order) -> bool | None:
    """Do two orders agree; None where they are about other events."""
    same = len(mine.right & other.right), len(mine.left & other.left)
    turned = len(mine.left & other.right), len(mine.right & other.left)
    if sum(same) >= max(_SHARED, sum(turned) + 1) and same[0]:
        return mine.first == other.first
    if sum(turned) >= max(_SHARED, sum(same) + 1) and all(turned):
        return mine.first != other.first
    return None


def turned(fact: str, order: Order) -> str:
    """The word or words that state the opposite order, as the fact would write them; empty where there is none."""
    old = fact[order.start : order.end]
    bare, _, by = old.partition(" by")
    new = TURNED.get(bare.lower(), "")
    if not new:
        return ""
    return (new.capitalize() if old[0].isupper() else new) + (" by" if by or old.endswith(" by") else "")
