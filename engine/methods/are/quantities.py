"""Numbers of a text with their comparison, unit and surroundings, and whether one bears out another.

"less than 8,000 tests" is a number (8000), a comparison (<) and the words around it; 8,157 does not bear it out. No
paper's method. Left out: fractions ("a third" reads as 3) and units of measure.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from engine.core.text import STOP_WORDS, Span
from engine.english.notation import EUROPEAN, MONTHS, in_digits
from engine.english.words import NUMBER_WORDS
from engine.models.alignment import stem

Comparison = Literal["", "<", ">", "<=", ">=", "~", "≈"]

CURRENCIES = frozenset(("EUR", "USD", "GBP", "CHF", "JPY"))
_MONTH = re.compile(rf"\b({'|'.join(MONTHS)})\b")
_ORDINAL = r"(?:st|nd|rd|th)?"
_DAY_MONTH = re.compile(
    rf"\b(?:(?P<first>\d{{1,2}}){_ORDINAL} (?:until|to|and|or|-|–) (?:\w+day )?)?"
    rf"(?P<day>\d{{1,2}}){_ORDINAL} (?:of )?(?P<month>{'|'.join(MONTHS)})\b"
)
_MONTH_DAY = re.compile(rf"\b(?P<month>{'|'.join(MONTHS)}) (?:the )?(?P<day>\d{{1,2}}){_ORDINAL}\b(?![\d:])")
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_SHORT_SCALES = {"k": 1e3, "m": 1e6, "mn": 1e6, "b": 1e9, "bn": 1e9, "t": 1e12, "tn": 1e12}  # "$5m", not "5m"
_DIGITS = rf"(?>{EUROPEAN}|\d+(?:,\d+){{0,9}}(?:\.\d+)?)"  # atomic: "4.7s" is never the 4 of another number
# Units that may follow without a blank; "s" only behind decimals, as in "1990s" it makes a plural.
_GLUED = (
    r"(?:[ckmnµ]?m|[kmµ]?g|[cm]?l|[kmgt]?(?:wh?|hz|b|v)|ms|(?:(?<=\.\d)|(?<=\.\d\d))s|min|h|ft|lbs?|oz|mph"
    rf"|{'|'.join(_SHORT_SCALES)})\b"
)
_NUMBER = re.compile(rf"(?<![\w.])(?<!\w-){_DIGITS}(?:\b|(?:st|nd|rd|th)\b|(?={_GLUED}))", re.IGNORECASE)
_RANGE = re.compile(  # "2019-2021", no date and no code
    rf"(?<![\w.-]){_DIGITS}-(?P<end>{_DIGITS})(?:\b|(?={_GLUED}))(?!-\d)", re.IGNORECASE
)
_TO = re.compile(r"%?(?:\s?[-–]\s?|\sto\s)[$€£]?")
_FROM = re.compile(r"\bfrom (?:\w+ )?[$€£]?$", re.IGNORECASE)
_TIME = re.compile(r"(?<![\w.:])\d{1,2}(?::[0-5]\d){1,2}(?![\d:])")
_SPELLED = re.compile(rf"\b(?:{'|'.join(w for w in NUMBER_WORDS if w not in ('second', 'zeroth'))})\b", re.IGNORECASE)
_AROUND = re.compile(r"\d[\d,.]*\d|\d|[^\W\d_]+")
_APART = re.compile(r"[,;.:()\d]")
_PRICED = re.compile(r"(?:[$€£]|USD|EUR|GBP)\s*(?:[\d.,]+[-–])?$")
_LABEL = re.compile(
    r"(?:\b(?:(?:version|release|section|chapter|article|clause|figure|table)s?|no\.)|§)\s*$", re.IGNORECASE
)
_MONEY = re.compile(r"(?:euros?|dollars?|pounds?|francs?|yen|eur|usd|gbp|chf|jpy)\b(?!\s*\d)")
_SCALE = re.compile(rf"\s*\b({'|'.join(_SCALES)})\b", re.IGNORECASE)
_SHORT_SCALE = re.compile(rf"({'|'.join(_SHORT_SCALES)})\b", re.IGNORECASE)
_MORE = "more|greater|higher|larger|older|longer"
_LESS = "less|fewer|lower|smaller|younger|shorter"
_COMPARISONS: tuple[tuple[Comparison, str], ...] = (
    (">=", rf"at least|(?:no|not) (?:{_LESS}|earlier) than|not (?:under|below|before)|a minimum of|since"),
    ("<=", r"(?:no|not|never|cannot)(?: \w+){0,4} (?:past|beyond|longer than|later than)"),
    ("<=", rf"at most|(?:no|not) (?:{_MORE}) than|not (?:above|over|exceeding|after)|up to|a maximum of|by|until"),
    (">", rf"(?:{_MORE}) than|over|above|exceeding|upwards of|after"),
    ("<", rf"(?:{_LESS}) than|under|below|before|prior to"),
    ("~", r"nearly|almost"),
    ("≈", r"about|around|roughly|approximately|approx\.?|circa|ca\.|some"),
)
_HOLDS = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}
_NEARLY = 0.8  # share of a number that "nearly" or "about" as much has at least
_PLAIN = frozenset(("", "%", "money"))  # units of what "about" rounds and a range has, no dates and ranks
_IN_TIME = frozenset(("after", "before", "prior to", "by", "since", "until", "not after", "not before")) | {
    "no earlier than",
    "not earlier than",
}
_TURNED = {
    "more than": "less than", "less than": "more than", "fewer than": "more than", "greater than": "less than",
    "higher than": "lower than", "lower than": "higher than", "larger than": "smaller than", "under": "over",
    "smaller than": "larger than", "over": "under", "above": "below", "below": "above", "at least": "at most",
    "at most": "at least", "after": "before", "before": "after", "prior to": "after", "older than": "younger than",
    "younger than": "older than", "longer than": "shorter than", "shorter than": "longer than", "since": "before",
    "up to": "more than", "exceeding": "under",
    "nearly": "more than", "almost": "more than", "until": "after", "by": "after",
}  # fmt: skip


@dataclass(frozen=True)
class Quantity:
    """A number at [start, end) with its scale word, its comparison, and `near`: stems and numbers within six words.

    `counted`: stems of up to three words behind it, to the next comma: what it is a number of. `range`: [start, end) of
    the "7–10 days", "5 to 10 mg" or "3-1" of which it is one end. `label`: it is a "version 2.10", which 2.1 is not.
    """

    start: int
    end: int
    text: str
    value: float
    unit: str
    near: frozenset[str]
    comparison: Comparison = ""
    comparison_start: int = 0
    comparison_end: int = 0
    comparison_text: str = ""
    range: Span | None = None
    label: bool = False
    counted: frozenset[str] = frozenset()

    @property
    def limited(self) -> bool:
        """Is it compared: not only named, or rounded by "about"?"""
        return self.comparison not in ("", "≈")


@lru_cache(maxsize=2048)  # every fact of an answer is held against the same passages
def quantities(text: str) -> tuple[Quantity, ...]:
    """The numbers of `text` in order; a day, a month's year, a time and a spelled number are numbers too."""
    times = [m.span() for m in _TIME.finditer(text)]
    within = {place for span in times for place in range(*span)}
    found = [m.span() for pattern in (_NUMBER, _SPELLED) for m in pattern.finditer(text) if m.start() not in within]
    found += [*times, *(m.span("end") for m in _RANGE.finditer(text))]
    return _with_ranges(text, [_quantity(text, *span) for span in sorted(found)])


def _with_ranges(text: str, found: list[Quantity]) -> tuple[Quantity, ...]:
    """The numbers with their ranges: none where dates or "from 5 to 10" name two numbers, each with its own meaning."""
    for place in range(1, len(found)):
        one, other = found[place - 1 : place + 1]
        joined = not one.range and {one.unit, other.unit} <= _PLAIN and _TO.fullmatch(text, one.end, other.start)
        if joined and not _FROM.search(text, max(0, one.start - 20), one.start):
            found[place - 1 : place + 1] = (replace(q, range=(one.start, other.end)) for q in (one, other))
    return tuple(found)


def _quantity(text: str, start: int, end: int) -> Quantity:
    raw = text[start:end]
    if ":" in raw:
        seconds = sum(int(part) * 60**power for part, power in zip(raw.split(":"), (2, 1, 0), strict=False))
        return Quantity(start, end, raw, seconds, "time", near(text, start, end), *_comparison(text, start, "time"))
    value = float(in_digits(raw)) if raw[0].isdigit() else NUMBER_WORDS[raw.lower()]
    priced = _PRICED.search(text, max(0, start - 12), start)
    scale = _SCALE.match(text, end) or (_SHORT_SCALE.match(text, end) if priced else None)
    whole = scale.end() if scale else end
    value *= (_SCALES | _SHORT_SCALES)[scale.group(1).lower()] if scale else 1.0
    unit, around = _unit(text, start, raw, whole, value), near(text, start, whole)
    label = _LABEL.search(text, max(0, start - 12), start) is not None
    behind = re.findall(r"[^\W\d_]+", _APART.split(text[whole : whole + 40], maxsplit=1)[0])[:3]
    counted = frozenset(stem(word.lower()) for word in behind if word.lower() not in STOP_WORDS)
    compared = _comparison(text, start, unit)
    return Quantity(start, whole, text[start:whole], value, unit, around, *compared, label=label, counted=counted)


def _comparison(text: str, start: int, unit: str) -> tuple[Comparison, int, int, str]:
    """The comparison that stands before the number, with at most a currency, "the" or a date's month between.

    Words of time compare dates only: "after 43 reviews" does not mean more than 43.
    """
    offset = max(0, start - 45)
    between = rf"(?:\s+(?:a|an|the|about|of|USD|EUR|GBP|US|{'|'.join(MONTHS)}|\d{{1,2}}|,))*\s*[$€£]?\s*$"
    for kind, pattern in _COMPARISONS:
        match = re.search(rf"\b({pattern}){between}", text[offset:start], re.IGNORECASE)
        if match and _is_compared(kind, match.group(1).lower(), unit):
            return kind, offset + match.start(1), offset + match.end(1), match.group(1)
    return "", 0, 0, ""


def _is_compared(kind: Comparison, words: str, unit: str) -> bool:
    return unit in _PLAIN if kind == "≈" else unit in ("day", "year") or words not in _IN_TIME


def _unit(text: str, start: int, raw: str, end: int, value: float) -> str:
    """Percent, money, year, day of a month, ordinal, a part of "x out of y", or nothing special."""
    after, before = text[end : end + 12].lstrip().lower(), text[max(0, start - 12) : start]
    if after.startswith(("%", "percent", "per cent")):
        return "%"
    if _PRICED.search(before) or _MONEY.match(after):
        return "money"
    if raw.isdigit() and len(raw) == 4 and 1000 <= value <= 2100:
        return "year"
    behind = raw[0].isdigit() and _MONTH.search(before) and re.search(r"[a-z]\s*$", before) and value <= 31
    if _MONTH.match(text[end : end + 16].lstrip()) or behind:
        return "day"
    if raw[0].isdigit() and raw[-1].isalpha():
        return "ordinal"
    return ""


def near(text: str, start: int, end: int, words: int = 6) -> frozenset[str]:
    """Stems of the content words, and numbers, within so many words on either side of [start, end)."""
    left = _AROUND.findall(text[max(0, start - 12 * words) : start])[-words:]
    right = _AROUND.findall(text[end : end + 12 * words])[:words]
    return frozenset(stem(w.lower()) for w in (*left, *right) if w.lower() not in STOP_WORDS)


def as_large(one: Quantity, other: Quantity) -> bool:
    """Are both the same number, but for how a float rounds "1.1 million": codes of 15 digits are told apart."""
    if (one.label or other.label) and "." in one.text and "." in other.text:
        return one.text == other.text
    return math.isclose(one.value, other.value, rel_tol=1e-15)


def holds(mine: Quantity, other: Quantity) -> bool:
    """Does the evidence's number bear the claim's comparison out; equal numbers without one.

    >>> [holds(q, quantities("8,157 tests")[0]) for q in quantities("less than 8,000 or over 8,000")]
    [False, True]

    A limit does not bear out one on the other side: "fewer than 10" may be more than 5, or not. "About" holds where the
    evidence's number is the claim's when it is rounded to as many digits.
    """
    if {mine.comparison[:1], other.comparison[:1]} == {"<", ">"}:
        return False
    if mine.comparison == "~":
        return _NEARLY * mine.value <= other.value <= mine.value
    if mine.comparison == "≈":
        return _rounds_to(other.value, mine.value)
    same = mine.comparison == other.comparison
    if not mine.comparison or (same and "=" in mine.comparison):  # two limits of one kind: they are the same limit
        return as_large(mine, other)
    return _HOLDS[mine.comparison](other.value, mine.value) or (same and mine.value == other.value)


def _rounds_to(value: float, rounded: float) -> bool:
    digits = f"{rounded:.12e}".partition("e")[0].replace(".", "").rstrip("0")  # of "830": two
    same = math.isclose(float(f"{value:.{max(0, len(digits) - 1)}e}"), rounded)
    return same and _NEARLY * max(value, rounded) <= min(value, rounded)


def flipped(mine: Quantity, other: Quantity) -> str:
    """The opposite comparison, in the same letter case; empty if reversing it would not help.

    >>> flipped(quantities("no older than 18")[0], quantities("20")[0])
    'older than'
    """
    said, denied = mine.comparison_text, re.sub("^(?:no|not) ", "", mine.comparison_text.lower())
    turned = denied if denied in _TURNED and denied != said.lower() else _TURNED.get(said.lower(), "")
    helps = other.value > mine.value if mine.comparison == "~" else mine.comparison[:1] != other.comparison[:1]
    if not turned or not helps or (mine.value == other.value and mine.comparison in (">=", "<=")):
        return ""
    return turned[0].upper() + turned[1:] if said[0].isupper() else turned


def dates(text: str) -> list[tuple[int, int, str, str]]:
    """Days with their month: [start, end), the day's digits, the month; "14 until 16 June" holds two.

    >>> [(day, month) for _, _, day, month in dates("On 5 March, from 14 until 16 June, on May 3")]
    [('5', 'March'), ('14', 'June'), ('16', 'June'), ('3', 'May')]
    """
    found = []
    for match in _DAY_MONTH.finditer(text):
        if match["first"]:
            found.append((match.start(), match.end("first"), match["first"], match["month"]))
        found.append((match.start("day"), match.end(), match["day"], match["month"]))
    found += [(m.start(), m.end(), m["day"], m["month"]) for m in _MONTH_DAY.finditer(text)]
    return sorted(found)


def months(text: str) -> list[tuple[int, int, str]]:
    """Names of months with their spans ("May" only as written)."""
    return [(m.start(), m.end(), m.group()) for m in _MONTH.finditer(text)]


LONG = 4  # digits from which a number is known again in another order
_SPELLED_TO = 12  # numbers up to it are written in words or digits


def rival(mine: Quantity, theirs: Sequence[Quantity]) -> list[Quantity]:
    """The numbers of its kind that could be the one `mine` speaks of, most likely (like words, near value) first."""
    kin = ({"", "ordinal"}, {"", "%"}, {"", "money"})
    alike = [q for q in theirs if q.label == mine.label] or [q for q in theirs if "." in mine.text and "." in q.text]
    alike = [q for q in alike if q.unit == mine.unit or any({q.unit, mine.unit} <= pair for pair in kin)]
    alike = [
        q for q in alike if q.text[0].isdigit() == mine.text[0].isdigit() or max(q.value, mine.value) <= _SPELLED_TO
    ]
    same = [q for q in alike if mine.unit and q.unit == mine.unit]
    return sorted(same or alike, key=lambda q: (of_another(mine, q), -_likeness(mine, q)))


def of_another(mine: Quantity, other: Quantity) -> bool:
    """Do both count something, and not the same, as far as the words behind them tell?

    >>> [of_another(quantities("87 oaks")[0], q) for q in quantities("85 of the oaks, 7 elms, EUR 3 and 4.")]
    [False, True, False, False]
    """
    plain = not mine.unit and not other.unit
    return plain and bool(mine.counted and other.counted) and mine.counted.isdisjoint(other.counted)


def _likeness(mine: Quantity, other: Quantity) -> float:
    distance = abs(math.log(max(mine.value, 1e-3)) - math.log(max(other.value, 1e-3)))
    alike = len(mine.near & other.near) + (other.unit == mine.unit)
    return alike - min(distance, 6.0) * (0.5 if mine.limited else 0.3)


def in_other_order(text: str, other: str) -> bool:
    """Are the digits those of the other number in another order, `LONG` or more of them, one less with decimals.

    >>> in_other_order("EUR 604,000", "640,000"), in_other_order("640", "604"), in_other_order("12.6", "16.2")
    (True, False, True)
    """
    mine, theirs = (re.sub(r"\D", "", one) for one in (text, other))
    enough = LONG - (text.count(".") == other.count(".") == 1)
    return mine != theirs and len(mine) >= enough and sorted(mine) == sorted(theirs)
