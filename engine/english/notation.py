"""One notation for two texts: "2024-03-05" and "EUR 1.5m" as a claim has them, "5 March 2024" and "1,500,000 euros".

Small models compare characters, so to them the same day or amount in another notation is another one. Dates that are
written in digits or with a shortened month become words (dateparser). An amount, measure, rank or time of day of the
evidence, in digits, words or Roman digits, becomes that of the claim where both are equal (units by pint); where they
differ, it keeps its own notation. "<", ">", "≤" and "≥" before a number become words. "03/05/2024" is either day where
no date of the texts tells which is the month. No paper's method. Left out: years of two digits, "2.000" for two
thousand ("2.000,00" is read), a third for 33%, "~50", the end of a range whose start has its unit too ("3-5 km").
Tried, and as good for false claims as for true ones: abbreviated names ("WHO"), decades for years, numbers that fit a
comparison ("over a million" for 1.2 million).
"""

from __future__ import annotations

import math
import re
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from engine.core.text import STOP_WORDS
from engine.english.words import CARDINALS, ORDINALS

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_BLANK = "[ \u00a0\u2009\u202f]"
_NAME = rf"(?:{'|'.join(MONTHS)}|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
_DAY = r"(?:3[01]|[12]\d|0?[1-9])"
_MONTH = r"(?:1[0-2]|0?[1-9])"
_YEAR = r"(?:1\d|20)\d\d"
_ENDING = r"(?:(?:st|nd|rd|th)\b)?"
_TO = rf"(?:{_BLANK}?[-\u2013\u00b1\u00d7]{_BLANK}?|{_BLANK}(?:to|and|or|by|x){_BLANK})"  # "3 to 5 km", "3-5 km"
_DATE = re.compile(
    rf"(?<![\w./-])(?<!\d:)(?:{_YEAR}([-/]){_MONTH}\1{_DAY}|{_DAY}([./]){_BLANK}?{_DAY}\2{_BLANK}?{_YEAR}"
    rf"|(?=\d\d/){_MONTH}/{_YEAR}"
    rf"|(?:{_DAY}{_ENDING}{_BLANK}(?:of{_BLANK})?)?{_NAME}"
    rf"(?:{_BLANK}{_DAY}{_ENDING}(?!{_TO}\d)(?:{_BLANK}?,?{_BLANK}{_YEAR})?|{_BLANK}?,?{_BLANK}{_YEAR})?)"
    rf"(?:T(?=\d)|(?![\w/%-]|[.,:]\d))"
)
_SLASHED = re.compile(rf"(?<![\w/])({_DAY})/({_DAY})/{_YEAR}\b")


@lru_cache(maxsize=4096)  # every claim of an answer is held against the same passages
def dates_in_words(text: str, order: str = "") -> str:
    """The text with its dates in words, day first; those that are in words stay.

    `order` ("DMY" or "MDY") is that of dates like 03/05/2024 where no date of the text tells it.

    >>> dates_in_words("From 2024-03-05 to Sept. 3, 2025; on 03/05/2024 (13/05/2024 at the latest)")
    'From 5 March 2024 to 3 September 2025; on 3 May 2024 (13 May 2024 at the latest)'
    >>> dates_in_words("on 03/05/2024, in Mar. 2024, Mar Vista, on May 3")
    'on 03/05/2024, in March 2024, Mar Vista, on May 3'
    """
    order = _order(text) or order
    return _DATE.sub(lambda found: _unless_in_words(found.group(), order), text)


def _order(text: str) -> str:
    """Whether the day or the month comes first in dates like 03/05/2024; empty where no date of the text tells."""
    parts = [(int(first), int(second)) for first, second in _SLASHED.findall(text)]
    day, month = any(first > 12 for first, _ in parts), any(second > 12 for _, second in parts)
    return "" if day == month else "DMY" if day else "MDY"


def _unless_in_words(written: str, order: str) -> str:
    words = "" if any(name in written for name in MONTHS) else _in_words(written.removesuffix("T"), order)
    return f"{words} " if words and written.endswith("T") else words or written


@lru_cache(maxsize=4096)
def _in_words(written: str, order: str = "") -> str:
    """A date as day, month and year, as far as they are written; empty where it cannot be read."""
    slashed = _SLASHED.fullmatch(written)
    if not any(c.isdigit() for c in written) or (slashed and not order and slashed[1] != slashed[2]):
        return ""
    data = _parser(order if slashed and order else "DMY").get_date_data(written)
    read: datetime | None = data.date_obj
    if read is None:
        return ""
    parts = (data.period == "day" and read.day, MONTHS[read.month - 1], bool(re.search(_YEAR, written)) and read.year)
    return " ".join(str(part) for part in parts if part)


@cache
def _parser(order: str) -> Any:
    """Dateparser for English dates with at least a month; one without a year is in a leap year ("Feb. 29")."""
    from dateparser.date import DateDataParser

    settings = {"DATE_ORDER": order, "REQUIRE_PARTS": ["month"], "RELATIVE_BASE": datetime(2000, 1, 1)}
    return DateDataParser(languages=["en"], settings=settings)


_COMPARED = {
    ">": ("more than", "over", "above", "greater than"),
    "<": ("less than", "fewer than", "under", "below"),
    "≥": ("at least", "no less than", "no fewer than"),
    "≤": ("at most", "up to", "no more than"),
}
_SIGN = re.compile(rf"(?<![-=<>])([<>]=?|[≤≥]){_BLANK}?(?=[$£€]?\d)")  # not an arrow: "->", "=>"


def signs_in_words(text: str, other: str) -> str:
    """The text with words for <, >, ≤ and ≥ before numbers: those that the other text has, or the usual ones.

    >>> signs_in_words("p<0.05 in > 3 cases", "It was seen in over 3 cases.")
    'p less than 0.05 in over 3 cases'
    """

    def said(found: re.Match[str]) -> str:
        words = _COMPARED[{"<=": "≤", ">=": "≥"}.get(found[1], found[1])]
        before = text[found.start() - 1 : found.start()]
        return f"{' ' if before.strip() else ''}{next((one for one in words if one in other), words[0])} "

    return _SIGN.sub(said, text)


class Amount(NamedTuple):
    """A value in its unit, at [start, end) of a text: an amount, a rank, the minutes of a day, the words of a date.

    The unit of Roman digits is the word before them, which other numbers have in `after`: "World War II", not "Henry
    VIII" for every 8.
    """

    start: int
    end: int
    value: float | str
    unit: str = ""
    after: str = ""

    @property
    def measured(self) -> bool:
        """Has it a unit of measure: not a number alone, a date, a time of day or a rank?"""
        return self.unit not in ("", "date", "of day", "rank") and not self.unit.startswith("after ")

    @property
    def keys(self) -> list[tuple[float | str, str]]:
        """Equal values share one: twelve digits of a number, since a change of units rounds it."""
        value = self.value if isinstance(self.value, str) else float(_rounded(self.value))
        return [(value, unit) for unit in dict.fromkeys((self.unit, self.after or self.unit))]


def _rounded(value: float) -> str:
    return f"{value:.12g}"


_SIGNS = {"US$": "dollar", "$": "dollar", "€": "euro", "£": "pound", "¥": "yen"}
_CODES = {"USD": "dollar", "EUR": "euro", "GBP": "pound", "JPY": "yen", "CHF": "franc"}
_NAMED = {"dollars": "dollar", "euro": "euro", "euros": "euro", "pounds": "pound", "yen": "yen", "francs": "franc"}
_MONEY = {**_SIGNS, **_CODES, **_NAMED}
_SHARES = {"half": 50.0, "a quarter": 25.0, "one quarter": 25.0, "three quarters": 75.0, "three-quarters": 75.0}
_RANKS = {
    **ORDINALS,
    **{f"{word}th": value for word, value in CARDINALS.items() if word.endswith("teen")},
    **{f"{word[:-1]}ieth": value for word, value in CARDINALS.items() if value >= 20},
}
_POWERS = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_TENS, _SMALL, _ONES = (
    "|".join(word for word, value in CARDINALS.items() if low <= value < high)
    for low, high in ((20, 100), (0, 20), (1, 10))
)
_CARDINAL = rf"(?:(?:{_TENS})(?:[ -](?:{_ONES}))?|{_SMALL})\b"
_RANK = rf"(?:(?:{_TENS})[ -])?(?:{'|'.join(_RANKS)})\b"
_LARGE = rf"{_CARDINAL}(?:[ -](?:{'|'.join(_POWERS)})\b)+"
_WORDS = rf"{_LARGE}(?:(?:[ -]| and ){_LARGE})*(?:(?:[ -]| and )(?:{_RANK}|{_CARDINAL}))?|{_RANK}|{_CARDINAL}"
_LONGEST = 24  # characters of a number in words and what joins the next one to it
_AFTER_ONE = re.compile(rf"(?:\d|\b{_CARDINAL}){_TO}$", re.IGNORECASE)
_ROMAN = {"I": 1, "V": 5, "X": 10}
_SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "k": 1e3, "m": 1e6, "M": 1e6, "bn": 1e9}
EUROPEAN = r"\d{1,3}(?:\.\d{3})+,\d{1,2}(?!\d)|\d{1,3}(?:\.\d{3}){2,}(?![\d,.])"  # "18.450,00", "1.234.567"
_AMOUNT = re.compile(
    rf"(?P<sign>(?<![A-Za-z])(?:{'|'.join(map(re.escape, (*_SIGNS, *_CODES)))}){_BLANK}?)?"
    rf"(?P<minus>\bminus{_BLANK}|(?<![^\s(])[-\u2212])?(?<![\w.,/])"
    rf"(?P<number>(?P<share>\b(?i:{'|'.join(_SHARES)})\b(?!-| an?\b| of \d))"
    rf"|(?P<roman>\b(?=[IVX]{{2}})(?:X{{1,3}}(?:IX|IV|V?I{{0,3}})|I[VX]|VI{{1,3}}|I{{2,3}})\b)"
    rf"|(?P<words>\b(?i:{_WORDS}))"
    rf"|(?P<digits>(?<![A-Z]-)(?:{EUROPEAN}"
    rf"|(?:\d{{1,3}}(?P<mark>, ?|'|{_BLANK})\d{{3}}(?:(?P=mark)\d{{3}})*(?!\d)|\d+)(?:\.\d+)?)))"
    rf"(?!\d|[.,/^]\d)"
    rf"(?P<scale>{_BLANK}(?:thousand|[mbtr]+illion)\b|(?(sign)(?:k|m|M|bn)\b|(?!)))?"
    rf"(?:{_BLANK}?(?P<unit>per cent\b|degrees [CF]\w+|[%€$£¥]|°?[A-Za-zµμ]{{1,16}}(?:/[A-Za-z]{{1,9}})?(?![A-Za-z])))?"
)
_TIME = re.compile(
    r"(?<![\w.:,])(?P<hour>[01]?\d|2[0-3])(?:[:.](?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?)?"
    r"(?:\s?(?P<half>[ap])(?:m\b|\.m\.?))?(?![\w:]|[.,]\d)",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def amounts(text: str) -> tuple[Amount, ...]:
    """The amounts, measures, times of day and dates in words of a text, in order.

    >>> [(a.value, a.unit) for a in amounts("EUR 1.5m, 12 per cent of 2 000 g at 3:30 pm on May 3")]
    [(1500000.0, 'euro'), (12.0, '%'), (2.0, 'kilogram'), (930.0, 'of day'), ('3 May', 'date')]
    """
    dates = [Amount(*f.span(), words, "date") for f in _DATE.finditer(text) if (words := _in_words(f.group()))]
    times = [time for found in _TIME.finditer(text) if (time := _time(found)) is not None]
    taken = {place for one in (*dates, *times) for place in range(one.start, one.end)}
    read = (_amount(found) for found in _AMOUNT.finditer(text) if found.start("number") not in taken)
    found = (*dates, *times, *filter(None, read))
    return tuple(sorted((one for one in found if not _ends_range(text, one)), key=lambda one: one.start))


def _ends_range(text: str, one: Amount) -> bool:
    """In "3 to 5 km" the 3 is in kilometres too, so the 5 cannot be put in another unit on its own."""
    lettered = one.unit == "of day" or any(c.isalpha() for c in text[one.start : one.end])
    return lettered and _AFTER_ONE.search(text, max(0, one.start - _LONGEST), one.start) is not None


def _time(found: re.Match[str]) -> Amount | None:
    """A time of day: "3 pm", "3.30 p.m.", "15:30"."""
    hour, half = int(found["hour"]), (found["half"] or "").lower()
    if not half and ":" not in found.group():
        return None
    if half and hour <= 12:
        hour = hour % 12 + 12 * (half == "p")
    return Amount(*found.span(), 60 * hour + int(found["minute"] or 0) + int(found["second"] or 0) / 60, "of day")


def _amount(found: re.Match[str]) -> Amount | None:
    """An amount; None for a number without a unit that is more than its value: "007", version 3.10, a long code."""
    value, unit = _value(found), found["unit"] or ""
    start = found.start("minus" if found["minus"] else "number")
    end = found.end("scale" if found["scale"] else "number")
    if found["share"]:
        return Amount(start, end, value, "%")
    if found["words"] and re.split("[ -]", found["words"])[-1].lower() in _RANKS:
        return Amount(start, end, value, "rank")
    if found["sign"]:
        return Amount(found.start(), end, value, _MONEY[re.sub(rf"{_BLANK}$", "", found["sign"])])
    if unit in _MONEY:
        return Amount(start, found.end(), value, _MONEY[unit])
    if unit in ("st", "nd", "rd", "th"):
        return Amount(start, found.end(), value, "rank")
    if unit.lower() in ("%", "percent", "per cent", "pct"):
        return Amount(start, found.end(), value, "%")
    if measured := _in_base_units(value, unit.removeprefix("degrees ")):
        return Amount(start, found.end(), *measured)
    before = "".join(found.string[max(0, start - _LONGEST) : start].lower().split()[-1:])
    if found["roman"]:
        return Amount(start, end, value, f"after {before}")
    digits = re.sub(r"\.00?$", "", in_digits(found["digits"] or ""))
    plain = not digits or found["scale"] or digits == _rounded(abs(value))
    return Amount(start, end, value, after=f"after {before}") if plain else None


def in_digits(number: str) -> str:
    """A number in digits with a point for its decimals and no mark between thousands.

    >>> in_digits("2,500.5"), in_digits("18.450,00"), in_digits("1.234.567")
    ('2500.5', '18450.00', '1234567')
    """
    if re.fullmatch(EUROPEAN, number):
        number = number.replace(".", "").replace(",", ".")
    return re.sub(r"[^\d.]", "", number)


def _value(found: re.Match[str]) -> float:
    """The number as it is written, in digits, words or Roman digits, times its scale."""
    if found["share"]:
        return _SHARES[found["share"].lower()]
    if found["roman"]:
        digits = [_ROMAN[c] for c in found["roman"]]
        return float(sum(-a if a < b else a for a, b in zip(digits, [*digits[1:], 0], strict=True)))
    value = _spelled(found["words"]) if found["words"] else float(in_digits(found["digits"]))
    value *= _SCALES.get((found["scale"] or "").strip(), 1.0)
    return -value if found["minus"] else value


def _spelled(words: str) -> float:
    """The value of a number in words.

    >>> _spelled("Two thousand one hundred and twenty-first")
    2121.0
    """
    total = part = 0.0
    for word in re.findall("[a-z]+", words.lower().replace(" and ", " ")):
        if word == "hundred":
            part *= 100
        elif word in _POWERS:
            total, part = total + part * _POWERS[word], 0.0
        else:
            part += CARDINALS.get(word) or _RANKS.get(word, 0.0)
    return total + part


@lru_cache(maxsize=4096)
def _in_base_units(value: float, unit: str) -> tuple[float, str] | None:
    """A measure in metres, kilograms, seconds and their like; None for other words, and for stop words ("in", "at")."""
    if not unit or unit.lower() in STOP_WORDS:
        return None
    known = unit.lower() if unit in ("Celsius", "Fahrenheit") else unit
    try:
        with np.errstate(all="ignore"):  # a large number of decibels
            base = _units().Quantity(value, _units().parse_units(known)).to_base_units()
    except Exception:  # other words fail in many ways there
        return None
    return (float(base.magnitude), str(base.units)) if math.isfinite(base.magnitude) else None


@cache
def _units() -> Any:
    """The units of measure that pint knows."""
    from pint import UnitRegistry

    return UnitRegistry()


@lru_cache(maxsize=8192)  # every claim of an answer is compared with the same sentences
def values(text: str, *, digits: bool = False) -> frozenset[tuple[float | str, str]]:
    """The values of a text with their units, all or those in digits; a plain "one" may be a pronoun.

    >>> values("One of 5 km at EUR 3") == values("5,000 m, 3 euros")
    True
    """
    found = (one for one in amounts(text) if not digits or any(map(str.isdigit, text[one.start : one.end])))
    return frozenset(one.keys[0] for one in found) - {(1.0, "")}


def fitting_order(claim: str, evidence: str) -> str:
    """The order ("DMY" or "MDY") in which a date like 03/05/2024 is one of the other text; empty where a date tells it.

    >>> fitting_order("Due on 5 March 2024.", "Due on 03/05/2024."), fitting_order("Due on 5 May.", "By 13/05/2024.")
    ('MDY', '')
    """
    if _order(claim) or _order(evidence) or not _SLASHED.search(f"{claim} {evidence}"):
        return ""
    return next((order for order in ("DMY", "MDY") if _dates(claim, order) & _dates(evidence, order)), "")


def either_day(claim: str, evidence: str) -> str:
    """The date like 03/05/2024 that one text has and the other has in words, if it can be another day, too; else empty.

    >>> either_day("Due on 5 March 2024.", "Due on 03/05/2024."), either_day("Due on 03/05/2024.", "On 03/05/2024.")
    ('03/05/2024', '')
    """
    order = fitting_order(claim, evidence)
    both = _dates(claim, order) & _dates(evidence, order) if order else ()
    written = (found.group() for found in _SLASHED.finditer(f"{claim} {evidence}") if found[1] != found[2])
    return next(
        (one for one in written if _in_words(one, order) in both and not (one in claim and one in evidence)), ""
    )


def _dates(text: str, order: str) -> set[float | str]:
    return {one.value for one in amounts(dates_in_words(text, order)) if one.unit == "date"}


def in_one_notation(claim: str, evidence: str) -> tuple[str, str]:
    """Claim and evidence with dates and signs in words, and equal amounts, measures and times as the claim has them.

    >>> in_one_notation("It cost 45 euros at 3 pm.", "On 2024-03-05 it cost EUR 45 or EUR 46 at 15:00.")
    ('It cost 45 euros at 3 pm.', 'On 5 March 2024 it cost 45 euros or EUR 46 at 3 pm.')
    >>> in_one_notation("It takes 0.5 kg.", "It takes 500 g.")[1]
    'It takes 0.5 kg.'
    """
    fitting = fitting_order(claim, evidence)
    claim, evidence = signs_in_words(claim, evidence), signs_in_words(evidence, claim)
    claim, evidence = (
        dates_in_words(claim, _order(evidence) or fitting),
        dates_in_words(evidence, _order(claim) or fitting),
    )
    said = [(one, claim[one.start : one.end]) for one in reversed(amounts(claim))]
    mine = {key: written for one, written in said for key in one.keys}
    kept = {written for _, written in said}
    parts, end = [], 0
    for theirs in amounts(evidence) if mine else ():
        if theirs.start < end:  # "May 12 pm" is a date and a time
            continue
        written = evidence[theirs.start : theirs.end]
        new = written if written in kept else next((mine[key] for key in theirs.keys if key in mine), written)
        parts += [evidence[end : theirs.start], new]
        end = theirs.end
    return claim, "".join([*parts, evidence[end:]])
