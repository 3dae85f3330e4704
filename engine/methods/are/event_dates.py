"""Which of two events came first by the dates that passages give them: "on 6 February, before it got the money".

An event is one side of a "before" or "after"; its date stands beside it, in the fact or in the part of a passage's
sentence, or the title, that holds most of its words. Two events of one part, or without a date, are not compared. No
paper's method.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from functools import lru_cache

from engine.core.text import sentences
from engine.methods.are.quantities import MONTHS, dates
from engine.methods.are.shared_words import stems
from engine.models.alignment import NUMBER_WORDS

TOLD = 0.6  # share of an event's words that a part of a sentence must hold to speak of it
_PART = re.compile(r"[,;:]\s")
_YEAR = re.compile(r"\s*,?\s*(\d{4})\b")
LENGTH = r"(?:[a-z]+|\d{1,3}) (?:day|week|month|year)s?"  # "two weeks", "9 days"
_DAYS = re.compile(r"\b([a-z]+|\d{1,3}) (day|week|month|year)s?[\s.]*$", re.IGNORECASE)
_LONG = {"day": 1, "week": 7, "month": 30, "year": 365}
_SPELLED_TO = 12  # numbers up to it are written in words
_LEAP = 2000  # the year of dates that give none


def dated(text: str) -> date | None:
    """The one day that the text names; None where it names none or several, or a day that is not in the calendar.

    >>> dated("sent on 6 February 2024")
    datetime.date(2024, 2, 6)
    """
    found = dates(text)
    if len(found) != 1:
        return None
    _, end, day, month = found[0]
    year = _YEAR.match(text, end)
    try:
        return date(int(year.group(1)) if year else _LEAP, MONTHS.index(month) + 1, int(day))
    except ValueError:
        return None


def days_between(left: str, right: str, parts: Sequence[str], least: int = 1) -> int | None:
    """Days from the event `left` to the event `right` by their own dates or those of `parts`; None where not known.

    An event of fewer than `least` words is not known again.
    """
    spots = [_told(event, parts, least) for event in (left, right)]
    days = [dated(event) or (dated(spot) if spot else None) for event, spot in zip((left, right), spots, strict=True)]
    if days[0] is None or days[1] is None or (spots[0] == spots[1] and not (dated(left) or dated(right))):
        return None
    if _LEAP in (days[0].year, days[1].year):
        days = [day.replace(year=_LEAP) if day else None for day in days]
    return (days[1] - days[0]).days if days[0] and days[1] else None


def said_days(left: str) -> tuple[str, int] | None:
    """The number, as written, and the days that stand before the word of order; None where none do.

    >>> said_days("Ann left two weeks")
    ('two', 14)
    """
    match = _DAYS.search(left)
    if match is None:
        return None
    word = match.group(1)
    count = 1 if word.lower() in ("a", "one") else int(word) if word.isdigit() else NUMBER_WORDS.get(word.lower(), 0)
    return (word, int(count) * _LONG[match.group(2).lower()]) if count else None


def without_days(event: str) -> str:
    """The event without the number of days at its end.

    >>> without_days("Ann left two weeks")
    'Ann left '
    """
    return _DAYS.sub("", event)


def said_in_days(count: int) -> str:
    """A number of days as prose writes it.

    >>> said_in_days(1), said_in_days(2), said_in_days(40)
    ('one day', 'two days', '40 days')
    """
    word = next((word for word, value in NUMBER_WORDS.items() if value == count), "") if count <= _SPELLED_TO else ""
    return f"{word or count} day{'' if count == 1 else 's'}"


@lru_cache(maxsize=2048)  # every fact of an answer is held against the same passages
def dated_parts(text: str, title: str = "") -> tuple[str, ...]:
    """The parts of a passage's sentences that name a day, and its title where it does."""
    parts = [part for start, end in sentences(text) for part in _PART.split(text[start:end])]
    return tuple(part for part in (title, *parts) if dates(part))


def _told(event: str, parts: Sequence[str], least: int = 1) -> str | None:
    """The part with most of the event's words, at least `TOLD` of them; None if several parts differ on the day.

    >>> _told("the old corn fair", ["the old corn fair of 2 May", "the old corn fair of 3 May"]) is None
    True
    """
    asked = stems(without_days(event))
    shared = [len(asked & stems(part)) for part in parts]
    most = max(shared, default=0)
    best = [part for part, count in zip(parts, shared, strict=True) if count == most]
    agreed = len({dated(part) for part in best}) == 1
    return best[0] if len(asked) >= least and agreed and most >= TOLD * len(asked) else None
