"""Which words a fact and a passage share, by stems, and which numbers and names of the fact its evidence lacks.

Shared words are a reading aid, no verdict. With a number or name missing the evidence bears out part at most;
`guards.py` says what follows from it for a verdict. No paper's method. Left out: synonyms, names without a capital.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from engine.core.text import STOP_WORDS, content_words, unjoined
from engine.english.notation import amounts, in_one_notation, values
from engine.english.words import NUMBER_WORDS
from engine.methods.are.quantities import CURRENCIES, Quantity, as_large, dates, holds, months, quantities
from engine.models.alignment import stem

WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
_PART = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['’]s?(?!\w)")
_NAME = re.compile(r"(?<![\w.])[A-Z][\w'’&-]*(?:\.(?=\w)[\w'’&-]+)*")
_NO_NAMES = STOP_WORDS | NUMBER_WORDS.keys() | {"unlike"}
# "5 May instead of 7 May": the fact says nothing of the second
_SMALL = r"(?: (?:the|an?|in|at|on|by|for|from|to|of))*"
_DENIED = re.compile(
    rf"\b(?:(?<!\bor )(?<!\bif )(?<!\bwhy )not|rather than|instead of|unlike){_SMALL}(?: \S+ (?:or|nor){_SMALL})? $",
    re.IGNORECASE,
)
_POSSESSIVE_END = re.compile(r"['’]s?$")
_NEAR = 40  # characters
# "56, 000" and "1. 3 million", as tokenised and scanned text has them
_TORN = re.compile(r"(?<=\d)\s*(,(?=\s*\d{3}(?!\d))|\.(?=\s*\d+\s*(?:%|percent|(?:m|b|tr)illion)))\s*(?=\d)")


def is_content(word: str) -> bool:
    """Does the word say something: no stop word, no number, three letters or more."""
    return len(word) > 2 and word.lower() not in STOP_WORDS and not any(c.isdigit() for c in word)


@lru_cache(maxsize=8192)  # every fact of an answer is held against the same sentences
def rough_stems(text: str) -> frozenset[str]:
    """The stems of the text's content words, a possessive as its noun.

    >>> sorted(rough_stems("Ada's two ships sailed")) == sorted(rough_stems("ships of Ada sailing, two"))
    True
    """
    return frozenset(stem(word) for word in content_words(unjoined(_POSSESSIVE.sub("", text))))


@lru_cache(maxsize=8192)  # Facts marks them in every passage considered, each time that it is drawn
def shared_words(fact: str, passage: str) -> tuple[tuple[int, int], ...]:
    """[start, end) of the passage's content words and numbers that the fact holds too, in order, not overlapping.

    >>> [("It won 5,000 votes."[a:b]) for a, b in shared_words("She won 5000 seats", "It won 5,000 votes.")]
    ['won', '5,000']
    """
    mine = quantities(fact)
    numbers = [(q.start, q.end) for q in quantities(passage) if any(as_large(q, one) for one in mine)]
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


def missing(fact: str, evidence: str) -> tuple[str, ...]:
    """Numbers, months and names of the fact that are missing in the evidence; a comparison counts by value.

    A day counts with its month: "5 March" is missing from "five on 8 March". A day "after" or "before" is left to the
    verifier, and of what the fact denies ("not 5,000", "unlike France") it says nothing. The first word of the fact, or
    behind a label, counts as a name only where it stands capitalised elsewhere or is followed by one. A number that the
    evidence has with blanks inside ("56, 000"), as tokenised and scanned text does, is there.

    A number is missing, too, where the evidence has it with other units alone.

    >>> missing("Ada moved to Estonia in 1990", "Ada left for Riga in 1990.")
    ('Estonia',)
    >>> missing("Add 250 mL", "Add 250 µL."), missing("Add 250 mL", "Add 0.25 L, not 250 µL.")
    (('250 mL',), ())
    """
    fact, evidence = in_one_notation(fact, evidence)
    theirs = quantities(evidence) + quantities(_TORN.sub(r"\1", evidence))
    told = [q for q in quantities(fact) if q.unit == "day" and q.comparison in ("<", ">")]
    compared = [(q.comparison_start, q.end + 6) for q in told]
    measured = [(one.start, one.end) for one in amounts(fact) if one.measured]  # "Celsius" is a unit, no name
    days, named = {(day, month) for _, _, day, month in dates(evidence)}, {name for _, _, name in months(evidence)}
    wrong = {start for start, _, day, month in dates(fact) if days and month in named and (day, month) not in days}
    mine = [q for q in quantities(fact) if not (q.comparison and _within(q.comparison_start, compared))]
    mine = [q for q in mine if not _is_denied(fact, q.start)]
    numbers = [q.text for q in mine if q.start in wrong or not any(_bears(q, other) for other in theirs)]
    held = {stem(word.lower()) for word in _PART.findall(evidence)}
    said = dict.fromkeys(
        name for start, _, name in months(fact) if not (_within(start, compared) or _is_denied(fact, start))
    )
    names: list[str] = []
    for match in _NAME.finditer(fact):
        word = _POSSESSIVE_END.sub("", match.group())
        plain = word.lower() in _NO_NAMES or (_opens(fact, match.start()) and not _is_name(fact, match))
        there = any(stem(part.lower()) in held for part in _PART.findall(word))
        kept = plain or there or word in CURRENCIES or word in names or _is_denied(fact, match.start())
        if not (kept or _within(match.start(), compared + measured)):
            names.append(word)
    numbers += [one for one in _in_other_units(fact, evidence) if not any(number in one for number in numbers)]
    return (*dict.fromkeys(numbers), *names, *(m for m in said if m not in names and stem(m.lower()) not in held))


def _in_other_units(fact: str, evidence: str) -> Iterator[str]:
    """The measures of the fact whose number the evidence has, with a unit each time, and never with that one."""
    theirs, told = amounts(evidence), values(evidence)
    for one in amounts(fact):
        said = fact[one.start : one.end]
        alike = [other for other in theirs if _digits(evidence[other.start : other.end]) == _digits(said) != ""]
        if one.measured and alike and all(other.measured for other in alike) and told.isdisjoint(one.keys):
            yield said


def _is_denied(fact: str, place: int) -> bool:
    """Does the fact say that what is there is not so?"""
    return _DENIED.search(fact, max(0, place - _NEAR), place) is not None


def _digits(written: str) -> str:
    return re.sub(r"[^\d.]", "", written)


def _within(place: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= place < end for start, end in spans)


def _bears(mine: Quantity, other: Quantity) -> bool:
    """Does the number bear the fact's out: of the same kind, or as large and of a kind that one of them leaves open."""
    same = mine.unit == other.unit or ("" in (mine.unit, other.unit) and as_large(mine, other))
    return same and holds(mine, other)


def _opens(fact: str, place: int) -> bool:
    """Is it the first word of the fact, or behind a label ("Weight: Value: 58 kg")?"""
    return place == 0 or fact.endswith(": ", 0, place)


def _is_name(fact: str, match: re.Match[str]) -> bool:
    """Is the first word a name: another capital follows it, or it is not a plain word with a capital."""
    after = fact[match.end() : match.end() + 2]
    return (after[:1] == " " and after[1:].isupper()) or any(c.isupper() or c.isdigit() for c in match.group()[1:])
