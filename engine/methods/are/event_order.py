"""A guard for the verifier: does a sentence give two events in another order than the fact?

"A before B" against "A after B", and against "B before A". A small entailment model calls such pairs supportive, since
every word is shared. Where no sentence has such a word the dates of the two events tell (`event_dates.py`), those of
the passage before those of the other passages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from engine.core.text import sentences
from engine.methods.are.event_dates import LENGTH, dated_parts, days_between, said_days, said_in_days, without_days
from engine.methods.are.shared_words import stems

_WORD = re.compile(
    r"\b(?:(?P<before>before|prior to|ahead of|earlier than|preced(?:ed|es|ing))"
    r"|(?P<after>after|later than|follow(?:ed|s|ing)(?! \w+ (?:day|week|month|year)s? later)))\b"
    r"(?P<by> by\b)?",
    re.IGNORECASE,
)
TURNED = {
    "before": "after", "after": "before", "prior to": "after", "ahead of": "after", "preceded": "followed",
    "precedes": "follows", "preceding": "following", "followed": "preceded", "follows": "precedes",
    "following": "preceding", "earlier than": "later than", "later than": "earlier than", "earlier": "later",
    "later": "earlier", "afterwards": "beforehand", "beforehand": "afterwards",
}  # fmt: skip
_OPENING = re.compile(
    r"(?:\w+ ){0,2}(?:(?P<earlier>before(?=,)|(?:earlier|previously|beforehand)\b(?! than))"
    r"|(?:after(?=,)|(?:later|afterwards|subsequently)\b(?! than))),?\s",
    re.IGNORECASE,
)
_MEASURE = re.compile(rf"\b(?:shortly|soon|immediately|directly|right|just|{LENGTH})\s+$")
_TRAILING = re.compile(
    rf"\b{LENGTH} "
    r"(?P<word>(?P<earlier>earlier|before(?:hand)?)|later|after(?:wards)?)(?=\s*(?:[.,;:()]|$))",
    re.IGNORECASE,
)
_BREAK = re.compile(r"[,;:()]\s")
_JOINT = re.compile(r"[.,;:]\s+|\s+and\s+")
_BARE = re.compile(r"(?:(?:the|a) )?(?:very )?(?:next )?(?:day|week|month|year)", re.IGNORECASE)
_PRONOUN = re.compile(r"\s*(?:it|this|that|these|those|them)\b", re.IGNORECASE)
KNOWN = 3  # words of an event from which another passage is known to speak of it
_SHARED = 2  # words that both sides together must share


@dataclass(frozen=True)
class Order:
    """Two events around [start, end): `left` comes first where `first`; stems of content words, and as written.

    `right` is empty where the text does not name the other event.

    `apart`: the days between them that the text itself says, else 0; `days` from left to right where dates told the
    order, else 0.
    """

    start: int
    end: int
    first: bool
    left: frozenset[str]
    right: frozenset[str]
    said: tuple[str, str] = ("", "")
    apart: int = 0
    days: int = 0


def orders(text: str) -> list[Order]:
    """The orders that the text states, left to right; those between a sentence and what stands before it last."""
    spans = sentences(text)
    inside = [order for span in spans for order in _inside(text, *span)]
    return [*inside, *_between(text, spans), *_trailing(text)]


def _inside(text: str, begin: int, stop: int) -> list[Order]:
    """The orders within the sentence [begin, stop)."""
    found = []
    marks = list(_WORD.finditer(text, begin, stop))
    for number, match in enumerate(marks):
        start = marks[number - 1].end() if number else begin
        end = marks[number + 1].start() if number + 1 < len(marks) else stop
        first = (match.group("before") is not None) != (match.group("by") is not None)
        left, right = text[start : match.start()].rstrip(" ,;"), text[match.end() : end]
        said = _beside(left), _BREAK.split(right)[0]
        if not stems(left) and not _PRONOUN.match(right):  # "After the fair, it rained": it rained after the fair
            said = (_BREAK.split(right)[1:] or [""])[0], said[1]
        if stems(said[1]) and not (_BARE.fullmatch(left) and _PRONOUN.match(right)):  # "the day after that, it rained"
            found.append(_order(match.span(), first, said))
    return found


def _order(span: tuple[int, int], first: bool, said: tuple[str, str]) -> Order:
    """The order of two events as written: "Ann left two days" and "Bea came", or "Bea came by two days"."""
    told = [said_days(event) for event in said]
    apart = next((each[1] for each in told if each), 0)
    left, right = (stems(without_days(event)) for event in said)
    return Order(*span, first, left, right, said, apart)


def _beside(left: str) -> str:
    """The last part of what stands before the word; with the part before it where it only measures: ", two days"."""
    *parts, last = _BREAK.split(left)
    return f"{parts[-1]}, {last}" if parts and _MEASURE.fullmatch(f"{last} ") else last


def _between(text: str, spans: Sequence[tuple[int, int]]) -> list[Order]:
    """The orders of sentences that open with "Four days earlier" and the like, and the sentence before them."""
    found = []
    for before, (start, end) in pairwise(spans):
        match = _OPENING.match(text, start, end)
        if match:
            said = text[match.end() : end], text[slice(*before)]
            first = match.group("earlier") is not None
            found.append(_order((start, match.end()), first, said))
    return found


def _trailing(text: str) -> list[Order]:
    """ "It was opened eleven days before": the order of the event and one that is not named there."""
    found = []
    for match in _TRAILING.finditer(text):
        event = _JOINT.split(text[: match.start("word")])[-1]
        found.append(_order(match.span("word"), match.group("earlier") is not None, (event, "")))
    return found


def against(fact: str, passage: str, elsewhere: Sequence[str] = ()) -> Order | None:
    """The order of the fact that the passage turns round; None where it states none of the same events.

    `elsewhere` are dated parts of other passages, which tell where this one is silent.

    >>> against("He left before the storm.", "He left two days after the storm.").first
    True
    >>> against("He left before the storm.", "He left before the storm.") is None
    True
    """
    for mine in orders(fact):
        said = agrees(mine, passage)
        days = days_between(*mine.said, dated_parts(passage)) or days_between(*mine.said, elsewhere, KNOWN) or 0
        if said is False or (said is None and days and (days > 0) != mine.first):
            return replace(mine, days=0 if said is False else days)
    return None


def agrees(mine: Order, passage: str) -> bool | None:
    """Does the passage give the two events in this order by its words; None where it is silent."""
    told = [*orders(passage), *(_order((0, 0), True, said) for said in sequences(passage))]
    verdicts = [agreed for other in told if (agreed := _agrees(mine, other)) is not None]
    return any(verdicts) if verdicts else None


def confirmed(fact: str, passage: str) -> frozenset[str]:
    """The fact's numbers of days between two events that the passage's dates bear out, as written: "four days after".

    >>> sorted(confirmed("Ann paid four days after she got EUR 90", "She got EUR 90 on 2 May. Ann paid on 6 May."))
    ['four']
    """
    parts = dated_parts(passage)
    found = [(said_days(order.said[0]), order.said) for order in orders(fact)]
    return frozenset(told[0] for told, said in found if told and told[1] == abs(days_between(*said, parts) or 0))


def _agrees(mine: Order, other: Order) -> bool | None:
    """Do two orders agree; None where they are about other events.

    As many days between them say that they are about the same events, if one word or more says which is which.
    """
    if bool(mine.right) != bool(other.right):
        return None
    same = len(mine.right & other.right), len(mine.left & other.left)
    turned = len(mine.left & other.right), len(mine.right & other.left)
    as_far = 0 < mine.apart == other.apart
    least = 1 if as_far else _SHARED
    if sum(same) >= max(least, sum(turned) + 1) and (as_far or same[0]):
        return mine.first == other.first
    if sum(turned) >= max(least, sum(same) + 1) and (as_far or all(turned)):
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


def restated(fact: str, order: Order) -> tuple[int, int, str]:
    """Characters [start, end) of the fact and what states the opposite order there; empty where nothing does.

    A measure in front of the word goes along where dates tell the days.

    >>> restated("It left shortly after the storm", Order(16, 21, False, frozenset(), frozenset(), days=2))
    (8, 21, 'two days before')
    """
    new = turned(fact, order)
    measure = _MEASURE.search(fact, 0, order.start)
    if not (new and order.days and measure):
        return order.start, order.end, new
    return measure.start(), order.end, f"{said_in_days(abs(order.days))} {new}"


# Orders that a passage tells by sequence: "A storm came, so they met", "The deed came and the money two weeks later".
#
# Read in passages only: such words are not turned in a fact. No paper's
# method.

_THEN = re.compile(
    r"(?:[,;]\s+(?:and\s+)?|\s+and\s+)(?:so|then|whereupon|thereupon)\s+(?!(?:that|far|long|much|many)\b)"
)
_LATER = re.compile(
    rf"\b(?P<days>{LENGTH}) (?:(?P<earlier>earlier|beforehand)|later|afterwards)\b(?! than)", re.IGNORECASE
)
_STEP = re.compile(r"[,;:]\s+(?:and\s+)?|\s+and\s+")


def sequences(text: str) -> list[tuple[str, str]]:
    """The first event and the one after it, as written; the days between them, if given, are at the end of one.

    >>> sequences("The deed came next and the money followed two weeks later.")
    [('The deed came next', 'the money followed two weeks')]
    """
    found: list[tuple[str, str]] = []
    before = ""
    for start, end in sentences(text):
        sentence = text[start:end].rstrip(".")
        found += [(sentence[: m.start()], sentence[m.end() :]) for m in _THEN.finditer(sentence)]
        found += [_apart(sentence, before, match) for match in _LATER.finditer(sentence)]
        before = sentence
    return [each for each in found if all(each)]


def _apart(sentence: str, before: str, match: re.Match[str]) -> tuple[str, str]:
    """The two events around "two weeks later": its own part of the sentence, and what stands before that."""
    ends = [joint.span() for joint in _STEP.finditer(sentence, 0, match.start())]
    cuts = [(start, end) for start, end in ends if sentence[end : match.start()].strip()]
    if cuts:  # "The deed came and the money followed two weeks later"
        other, event = sentence[: cuts[-1][0]], sentence[cuts[-1][1] : match.start()]
    elif not sentence[match.end() :].strip():  # "The money followed two weeks later"
        other, event = before, sentence[: match.start()]
    else:  # "The deed came, and two weeks later the money"
        other, event = sentence[: match.start()].strip(" ,") or before, sentence[match.end() :]
    event = f"{event.strip(' ,')} {match.group('days')}"
    return (event, other) if match.group("earlier") else (other, event)
