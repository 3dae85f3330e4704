"""Numbers and names of a fact that its evidence lacks: with one of them missing the evidence bears out part at most.

What follows from it for a verdict stands in `guards.py`.
"""

from __future__ import annotations

import math
import re

from engine.core.text import STOP_WORDS
from engine.methods.are.quantities import CURRENCIES, Quantity, dates, holds, months, quantities
from engine.models.alignment import NUMBER_WORDS, stem

_NAME = re.compile(r"(?<![\w.])[A-Z][\w'’&-]*(?:\.(?=\w)[\w'’&-]+)*")
_POSSESSIVE = re.compile(r"['’]s?$")


def missing(fact: str, evidence: str) -> tuple[str, ...]:
    """Numbers, months and names of the fact that are missing in the evidence; a comparison counts by value.

    A day counts with its month: "5 March" is missing from "five on 8 March". The first word of the fact counts as a
    name only where it stands capitalised elsewhere or is followed by one.

    >>> missing("Ada moved to Estonia in 1990", "Ada left for Riga in 1990.")
    ('Estonia',)
    """
    theirs = quantities(evidence)
    wrong = _wrong_dates(fact, evidence)
    numbers = [q.text for q in quantities(fact) if q.start in wrong or not any(_bears(q, other) for other in theirs)]
    held = {stem(word.lower()) for word in re.findall(r"[^\W_]+", evidence)}
    named = {name for _, _, name in months(fact)}
    names = []
    for match in _NAME.finditer(fact):
        word = _POSSESSIVE.sub("", match.group())
        parts = [stem(part.lower()) for part in re.findall(r"[^\W_]+", word)]
        if (
            word.lower() in STOP_WORDS
            or word.lower() in NUMBER_WORDS
            or word in CURRENCIES
            or (match.start() == 0 and not _is_name(fact, match))
        ):
            continue
        if not any(part in held for part in parts) and word not in names:
            names.append(word)
    return (*dict.fromkeys(numbers), *names, *(m for m in named if m not in names and stem(m.lower()) not in held))


def _bears(mine: Quantity, other: Quantity) -> bool:
    """Does the number bear the fact's out: of the same kind, or as large and of a kind that one of them leaves open."""
    as_large = math.isclose(mine.value, other.value, rel_tol=1e-4)
    same = mine.unit == other.unit or (as_large and "" in (mine.unit, other.unit))
    return same and holds(mine, other)


def _wrong_dates(fact: str, evidence: str) -> set[int]:
    """Where the days start that the evidence has in no date of their month, though it names the month."""
    held = {(day, month) for _, _, day, month in dates(evidence)}
    named = {name for _, _, name in months(evidence)}
    return {start for start, _, day, month in dates(fact) if held and month in named and (day, month) not in held}


def _is_name(fact: str, match: re.Match[str]) -> bool:
    """Is the first word a name: another capital follows it, or it is not a plain word with a capital."""
    after = fact[match.end() : match.end() + 2]
    return (after[:1] == " " and after[1:].isupper()) or any(c.isupper() or c.isdigit() for c in match.group()[1:])
