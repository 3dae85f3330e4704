"""Orders that a passage tells by sequence: "A storm came, so they met", "The deed came and the money two weeks later".

Beside "before" and "after" (`event_order.py`). Read in passages only: such words are not turned in a fact. No paper's
method.
"""

from __future__ import annotations

import re

from engine.core.text import sentences
from engine.methods.are.event_dates import LENGTH

_THEN = re.compile(
    r"(?:[,;]\s+(?:and\s+)?|\s+and\s+)(?:so|then|whereupon|thereupon)\s+(?!(?:that|far|long|much|many)\b)"
)
_LATER = re.compile(
    rf"\b(?P<days>{LENGTH}) (?:(?P<earlier>earlier|beforehand)|later|afterwards)\b(?! than)", re.IGNORECASE
)
_JOINT = re.compile(r"[,;:]\s+(?:and\s+)?|\s+and\s+")


def sequences(text: str) -> list[tuple[str, str]]:
    """What came first and what came after it, as written; the days between them stand at the end of one, where said.

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
    ends = [joint.span() for joint in _JOINT.finditer(sentence, 0, match.start())]
    cuts = [(start, end) for start, end in ends if sentence[end : match.start()].strip()]
    if cuts:  # "The deed came and the money followed two weeks later"
        other, event = sentence[: cuts[-1][0]], sentence[cuts[-1][1] : match.start()]
    elif not sentence[match.end() :].strip():  # "The money followed two weeks later"
        other, event = before, sentence[: match.start()]
    else:  # "The deed came, and two weeks later the money"
        other, event = sentence[: match.start()].strip(" ,") or before, sentence[match.end() :]
    event = f"{event.strip(' ,')} {match.group('days')}"
    return (event, other) if match.group("earlier") else (other, event)
