"""Which of two events came first by the dates that a passage gives them: "on 6 February, before it got the money".

An event is one side of a "before" or "after"; its date stands beside it, in the fact or in the part of a passage's
sentence that holds most of its words. Two events of one part, or without a date, are not compared. No paper's method.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from engine.models.alignment import NUMBER_WORDS, stem
from engine.text import content_words, sentences
from engine.verify.quantities import MONTHS, dates

TOLD = 0.6  # share of an event's words that a part of a sentence must hold to speak of it
_PART = re.compile(r"[,;:]\s")
_YEAR = re.compile(r"\s*,?\s*(\d{4})\b")
_DAYS = re.compile(r"\b([a-z]+|\d{1,3}) (day|week)s?\s*$", re.IGNORECASE)
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


def days_between(left: str, right: str, passage: str) -> int | None:
    """Days from the event `left` to the event `right` by their own dates or the passage's; None where not known."""
    spots = [_told(event, passage) for event in (left, right)]
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
    return (word, int(count) * (7 if match.group(2).lower() == "week" else 1)) if count else None


def _told(event: str, passage: str) -> str | None:
    """The dated part of a sentence that holds most of the event's words, at least `TOLD` of them."""
    asked = _stems(_DAYS.sub("", event))
    best = max(_parts(passage), key=lambda part: len(asked & _stems(part)), default="")
    return best if asked and len(asked & _stems(best)) >= TOLD * len(asked) else None


def _parts(passage: str) -> Iterator[str]:
    for start, end in sentences(passage):
        yield from (part for part in _PART.split(passage[start:end]) if dates(part))


def _stems(text: str) -> set[str]:
    return {stem(word) for word in content_words(text)}
