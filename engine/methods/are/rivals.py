"""Which number of the evidence a number of the claim speaks of: of its kind, in like words, near in value or miscopied.

No paper's method: a large language model does this in ARE, appendix A.4.
"""

from __future__ import annotations

import math
import re

from engine.methods.are.quantities import Quantity

_MISCOPIED = 1.5  # what it says for a number that the other is it with digits swapped or one digit changed
LONG = 4  # digits from which a number is known again in another order
_SPELLED_TO = 12  # numbers up to it are written in words or digits


def rival(mine: Quantity, theirs: list[Quantity]) -> list[Quantity]:
    """The numbers of the evidence that could be the one `mine` speaks of, most likely first."""
    kin = ({"", "ordinal"}, {"", "%"}, {"", "money"})
    alike = [q for q in theirs if q.unit == mine.unit or any({q.unit, mine.unit} <= pair for pair in kin)]
    alike = [
        q for q in alike if q.text[0].isdigit() == mine.text[0].isdigit() or max(q.value, mine.value) <= _SPELLED_TO
    ]
    return sorted(alike, key=lambda q: -_likeness(mine, q))


def _likeness(mine: Quantity, other: Quantity) -> float:
    distance = abs(math.log(max(mine.value, 1e-3)) - math.log(max(other.value, 1e-3)))
    same = (other.unit == mine.unit) + 0.5 * (_shape(other.text) == _shape(mine.text))
    close = len(mine.near & other.near) + 0.7 * len(mine.said & other.beside) + len(mine.before & other.before)
    same += _MISCOPIED * _miscopied(mine.text, other.text)
    return close + same - min(distance, 6.0) * (0.5 if mine.comparison else 0.3)


def _miscopied(text: str, other: str) -> bool:
    """Are the digits those of the other number in another order, or one of three and more another.

    >>> _miscopied("604,000", "640,000"), _miscopied("450", "480"), _miscopied("15", "18")
    (True, True, False)
    """
    mine, theirs = (re.sub(r"\D", "", one) for one in (text, other))
    if len(mine) != len(theirs) or mine == theirs:
        return False
    one = len(mine) > 2 and sum(a != b for a, b in zip(mine, theirs, strict=True)) == 1
    return one or sorted(mine) == sorted(theirs)


def in_other_order(text: str, other: str) -> bool:
    """Are the digits those of the other number in another order, `LONG` or more of them, one less with decimals.

    >>> in_other_order("EUR 604,000", "640,000"), in_other_order("640", "604"), in_other_order("12.6", "16.2")
    (True, False, True)
    """
    mine, theirs = (re.sub(r"\D", "", one) for one in (text, other))
    enough = LONG - (text.count(".") == other.count(".") == 1)
    return mine != theirs and len(mine) >= enough and sorted(mine) == sorted(theirs)


def _shape(text: str) -> str:
    """How a number is written: "113,650" and "103,850" alike."""
    return re.sub(r"\d", "0", text)
