"""A guard for the verifier: does a passage give two events in another order than the fact?

"A before B" against "A after B", and against "B before A": a small entailment model calls such pairs supportive, since
every word is shared. "A because of B" is an order, too: the cause comes first. Where no sentence has such a word the
dates of the two events tell, those of the passage before those of the other passages: the date beside an event in the
fact, or in the part of a sentence, or the title, that holds most of its words. Two events of one part, or without a
date, are not compared. No paper's method. Left out: orders told over two sentences, or by the days between two events.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache

from engine.core.text import sentences
from engine.english.notation import MONTHS, dates_in_words
from engine.methods.are.quantities import dates
from engine.methods.are.shared_words import rough_stems

_WORD = re.compile(
    r"\b(?:(?P<before>before|prior to|ahead of|earlier than|preced(?:ed|es|ing))"
    r"|(?P<after>because(?: of)?|due to|owing to|as a result of|after|later than"
    r"|follow(?:ed|s|ing)(?! \w+ (?:day|week|month|year)s? later)))\b"
    r"(?P<by> by\b)?",
    re.IGNORECASE,
)
_OPPOSITES = {
    "before": "after", "after": "before", "prior to": "after", "ahead of": "after", "preceded": "followed",
    "precedes": "follows", "preceding": "following", "followed": "preceded", "follows": "precedes",
    "following": "preceding", "earlier than": "later than", "later than": "earlier than",
}  # fmt: skip
_BREAK = re.compile(r"[,;:()]\s")
_PRONOUN = re.compile(r"\s*(?:it|this|that|these|those|them)\b", re.IGNORECASE)
_YEAR = re.compile(r"\s*,?\s*(\d{4})\b")
_LEAP = 2000  # the year of dates that give none
_SHARED = 2  # words that both sides together must share
_TOLD = 0.6  # share of an event's words that a part of a sentence, or another event, must hold to speak of it
_KNOWN = 3  # words of an event from which another passage is known to speak of it


@dataclass(frozen=True)
class Order:
    """Two events around [start, end), as written (`said`): the one that is named first comes first where `first`.

    `dated`: dates told that it is the other way round, no words. `known`: the passage's two events have most words of
    these; with fewer they may be others.
    """

    start: int
    end: int
    first: bool
    said: tuple[str, str]
    dated: bool = False
    known: bool = True


def orders(text: str) -> list[Order]:
    """The orders that the sentences of the text state, left to right."""
    found = []
    for begin, stop in sentences(text):
        marks = list(_WORD.finditer(text, begin, stop))
        starts, ends = [begin, *(m.end() for m in marks)], [*(m.start() for m in marks[1:]), stop]
        for match, start, end in zip(marks, starts, ends, strict=False):
            first = (match["before"] is not None) != (match["by"] is not None)
            left, right = text[start : match.start()].rstrip(" ,;"), text[match.end() : end]
            *parts, event = _BREAK.split(left)
            if parts and len(rough_stems(event)) < _SHARED:  # "They met in May, shortly after"
                event = f"{parts[-1]}, {event}"
            said = event, _BREAK.split(right)[0]
            # "After the fair, it rained": it rained after the fair
            if not rough_stems(left) and not _PRONOUN.match(right):
                said = (_BREAK.split(right)[1:] or [""])[0], said[1]
            if rough_stems(said[0]) and rough_stems(said[1]):
                found.append(Order(*match.span(), first, said))
    return found


def against(fact: str, passage: str, elsewhere: Sequence[str] = ()) -> Order | None:
    """The order of the fact that the passage turns round; None where it states none of the same events.

    `elsewhere` are dated parts of other passages, which tell where this one is silent.

    >>> against("He left before the storm.", "He left two days after the storm.").first
    True
    >>> against("He left before the storm.", "He left before the storm.") is None
    True
    """
    told = orders(passage)
    for mine in orders(fact):
        near = {other: agreed for other in told if (agreed := _agrees(mine, other)) is not None}
        if near and not any(near.values()):
            return replace(mine, known=any(_has_events(other, mine) for other in near))
        # Dates do not tell a cause, which may lie ahead: "cancelled on 5 May because of the strike on 8 May".
        if near or not turned(fact, mine):
            continue
        days = days_between(*mine.said, dated_parts(passage)) or days_between(*mine.said, elsewhere, _KNOWN) or 0
        if days and (days > 0) != mine.first:
            return replace(mine, dated=True)
    return None


def _agrees(mine: Order, other: Order) -> bool | None:
    """Do two orders agree; None where they are about other events."""
    left, right, their_left, their_right = map(rough_stems, (*mine.said, *other.said))
    same = len(right & their_right), len(left & their_left)
    turned = len(left & their_right), len(right & their_left)
    if sum(same) >= max(_SHARED, sum(turned) + 1) and same[0]:
        return mine.first == other.first
    if sum(turned) >= max(_SHARED, sum(same) + 1) and all(turned):
        return mine.first != other.first
    return None


def _has_events(other: Order, mine: Order) -> bool:
    """Do the two events of the other, either one first, have most words of mine."""

    def holds(event: str, told: str) -> bool:
        own = rough_stems(event)
        return len(own & rough_stems(told)) >= _TOLD * len(own)

    return any(all(map(holds, mine.said, told)) for told in (other.said, other.said[::-1]))


def turned(fact: str, order: Order) -> str:
    """The word or words that state the opposite order, as the fact would write them; empty where none does."""
    old = fact[order.start : order.end]
    bare, _, by = old.partition(" by")
    new = _OPPOSITES.get(bare.casefold(), "")
    if not new:
        return ""
    return (new.capitalize() if old[0].isupper() else new) + (" by" if by or old.endswith(" by") else "")


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


def dated(text: str) -> date | None:
    """The one day that the text names; None where it names none or several, or a day that is not in the calendar.

    >>> dated("sent on 2024-02-06")
    datetime.date(2024, 2, 6)
    """
    text = dates_in_words(text)
    found = dates(text)
    if len(found) != 1:
        return None
    _, end, day, month = found[0]
    year = _YEAR.match(text, end)
    try:
        return date(int(year.group(1)) if year else _LEAP, MONTHS.index(month) + 1, int(day))
    except ValueError:
        return None


@lru_cache(maxsize=2048)  # every fact of an answer is held against the same passages
def dated_parts(text: str, title: str = "") -> tuple[str, ...]:
    """The parts of a passage's sentences that name a day, and its title where it does."""
    parts = [part for start, end in sentences(text) for part in _BREAK.split(text[start:end])]
    return tuple(part for part in (title, *parts) if dates(dates_in_words(part)))


def _told(event: str, parts: Sequence[str], least: int) -> str | None:
    """The part with most of the event's words, at least `_TOLD` of them; None if several parts differ on the day."""
    asked = rough_stems(event)
    shared = [len(asked & rough_stems(part)) for part in parts]
    most = max(shared, default=0)
    best = [part for part, count in zip(parts, shared, strict=True) if count == most]
    agreed = len({dated(part) for part in best}) == 1
    return best[0] if len(asked) >= least and agreed and most >= _TOLD * len(asked) else None
