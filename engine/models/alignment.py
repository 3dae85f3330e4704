"""The words and numbers that a claim shares with its evidence; a small model cannot see these by itself.

A reading aid of the embedded verifier (no paper's method). Every word of claim and evidence gets one of eight
kinds by comparing the two texts, and the kinds enter the network as token types.

    0 other     1 shared word     2 shared word in a shared run     3 name that the other text lacks
    4 equal number     5 smaller than its counterpart     6 larger     7 number without a counterpart

Left out: dates as such (day, month and year count as words and numbers), units, synonyms.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.core.text import unligated
from engine.english.words import NUMBER_WORDS

KINDS = 8
OTHER, SHARED, RUN, NAME, EQUAL, SMALLER, LARGER, ALONE = range(KINDS)

_WORD = re.compile(r"n't\b|\d[\d,]*(?:\.\d+)?|[^\W\d_]+")
_SUFFIXES = ("ations", "ation", "ments", "ment", "ings", "ions", "ing", "ion", "edly", "ers", "ors", "ies", "ed", "er")
_ENDINGS = (*_SUFFIXES, "or", "es", "ly", "s", "e", "y")
_SCALES = {"hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "m": 1e6, "billion": 1e9, "bn": 1e9}
_CLEAN = (("-LRB-", "("), ("-RRB-", ")"), ("-LSB-", "["), ("-RSB-", "]"), ("``", '"'), ("''", '"'), ("�", " "))


@dataclass(frozen=True)
class AlignedWord:
    """A word or number with its span; `value` and `unit` are set for numbers only."""

    start: int
    end: int
    stem: str
    capital: bool
    value: float | None = None
    unit: str = ""


def clean(text: str) -> str:
    """Brackets and quotes of tokenised corpora as plain characters, ligatures as letters, white space single."""
    text = unligated(text)
    for old, new in _CLEAN:
        text = text.replace(old, new)
    return " ".join(text.split())


def stem(word: str) -> str:
    """A crude stem: one ending off where three letters or more remain ("directed", "director" -> "direct")."""
    word = word if word.isascii() else unligated(word)
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and len(word) > 4:
            return word[: -len(ending)]
    return word


def words(text: str) -> list[AlignedWord]:
    """The words and numbers of `text` in order, spans into `text`."""
    found = list(_WORD.finditer(text))
    result = []
    for i, match in enumerate(found):
        raw = match.group()
        after = found[i + 1].group().lower() if i + 1 < len(found) else ""
        value = _value(raw, after)
        tail = text[match.end() : match.end() + 2].strip()
        unit = _unit(raw, value, after, tail[:1]) if value is not None else ""
        before = text[: match.start()].rstrip(" \"'(")
        capital = raw[0].isupper() and before != "" and before[-1] not in ".!?:"  # not merely opening a sentence
        result.append(AlignedWord(match.start(), match.end(), stem(raw.lower()), capital, value, unit))
    return result


def _value(raw: str, after: str) -> float | None:
    if raw[0].isdecimal():  # a superscript is a digit to Python, and no number to float
        return float(raw.replace(",", "")) * _SCALES.get(after, 1.0)
    value = NUMBER_WORDS.get(raw.lower())
    return None if value is None else value * _SCALES.get(after, 1.0)


def _unit(raw: str, value: float, after: str, tail: str) -> str:
    if tail == "%" or after in ("percent", "percentage", "per"):
        return "%"
    if raw.isdigit() and len(raw) == 4 and 1000 <= value <= 2100:
        return "year"
    return ""


def kinds(mine: list[AlignedWord], other: list[AlignedWord]) -> list[int]:
    """The kind of each word of `mine` seen against `other`, same length as `mine`."""
    stems = {word.stem for word in other}
    pairs = {(a.stem, b.stem) for a, b in pairwise(other)}
    numbers = [i for i, word in enumerate(other) if word.value is not None]
    result = []
    for i, word in enumerate(mine):
        if word.value is not None:
            result.append(_number_kind(mine, i, other, numbers))
        elif word.stem in stems:
            before = i > 0 and (mine[i - 1].stem, word.stem) in pairs
            after = i + 1 < len(mine) and (word.stem, mine[i + 1].stem) in pairs
            result.append(RUN if before or after else SHARED)
        else:
            result.append(NAME if word.capital else OTHER)
    return result


def _number_kind(mine: list[AlignedWord], i: int, other: list[AlignedWord], numbers: list[int]) -> int:
    value = mine[i].value or 0.0
    if any(math.isclose(value, other[j].value or 0.0, rel_tol=1e-4) for j in numbers):
        return EQUAL
    rivals = [j for j in numbers if other[j].unit == mine[i].unit]
    if not rivals:
        return ALONE
    near = _near(mine, i)
    best = max(rivals, key=lambda j: len(near & _near(other, j)) - abs(_log(value) - _log(other[j].value or 0.0)) / 2)
    return SMALLER if value < (other[best].value or 0.0) else LARGER


def _near(text: list[AlignedWord], i: int) -> set[str]:
    return {word.stem for word in text[max(0, i - 3) : i + 4] if word.value is None}


def _log(value: float) -> float:
    return math.log(max(value, 1e-3))


def character_kinds(text: str, mine: list[AlignedWord], other: list[AlignedWord]) -> NDArray[np.int64]:
    """The kind at each character of `text`, whose words are `mine`, shape (len(text) + 1,); 0 between words."""
    marks = np.zeros(len(text) + 1, dtype=np.int64)
    for word, kind in zip(mine, kinds(mine, other), strict=True):
        marks[word.start : word.end] = kind
    return marks


def align(claim: str, evidence: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Kinds at each character of claim and of evidence."""
    mine, other = words(claim), words(evidence)
    return character_kinds(claim, mine, other), character_kinds(evidence, other, mine)
