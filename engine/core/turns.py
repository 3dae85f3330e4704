"""Turns of a transcript: who speaks where, and who asks.

A turn opens with its speaker's label at the start of a line: "Interviewer: ...", "P5: ...", or a name with a time
alone on its line, as programs that write down calls save it. A text is a transcript where a turn ends with a question
and the next one has another label. So fields ("Date: ...") and defined terms are not turns.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

_NAME = r"(?P<{0}>(?![a-z])[^\W_][\w.'’-]*(?: [\w.'’-]+){{0,3}})"  # one to four words, no small letter first
_TIME = r"[\[(]?\d{1,2}(?::\d\d){1,2}(?:[.,]\d{1,3})?[\])]?"
_LABEL = re.compile(
    rf"^[ \t]*(?:(?:{_TIME} +)?{_NAME.format('before')}(?: ?\([^()\n]{{1,40}}\))?(?: {_TIME})?:(?=\s)|"
    rf"{_NAME.format('alone')} +{_TIME}[ \t]*$)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class SpokenTurn:
    """Characters [start, end) of a text; its words begin at `words`. `asks`: the speaker is the one who asks."""

    start: int
    words: int
    end: int
    speaker: str
    asks: bool = False


def turns(*texts: str) -> list[list[SpokenTurn]]:
    """The turns of each text; the texts are parts of one document, and none has turns if it is not a transcript.

    A label that is seen once, outside a question and its reply, may be a word of the speaker before: its turn has no
    speaker. The one who asks is each label of which half the turns end with a question, unless that is all of them.

    >>> told = "Interviewer: You left. Why?\\nLena: Childcare. It was hard.\\nInterviewer: Hm.\\nLena: Yes."
    >>> [(turn.speaker, turn.asks) for turn in turns(told)[0]]
    [('Interviewer', True), ('Lena', False), ('Interviewer', True), ('Lena', False)]
    >>> turns("Date: May\\nPlace: Ward 4")
    [[]]
    """
    found = [_turns(text) for text in texts]
    counts: Counter[str] = Counter()
    questions: Counter[str] = Counter()
    exchanges: set[str] = set()
    for text, own in zip(texts, found, strict=True):
        counts.update(turn.speaker for turn in own)
        asked = [text[turn.words : turn.end].rstrip().endswith("?") for turn in own]
        questions.update(turn.speaker for turn, ends in zip(own, asked, strict=True) if ends)
        for (here, after), ends in zip(pairwise(own), asked, strict=False):
            if ends and here.speaker != after.speaker:
                exchanges |= {here.speaker, after.speaker}
    if not exchanges:
        return [[] for _ in texts]
    speakers = exchanges | {label for label, count in counts.items() if count > 1}
    asking = {label for label in speakers if 2 * questions[label] >= counts[label]}
    asking = asking if asking < speakers else set()
    return [
        [replace(t, speaker=t.speaker if t.speaker in speakers else "", asks=t.speaker in asking) for t in own]
        for own in found
    ]


def turn_at(spoken: Sequence[SpokenTurn], place: int) -> SpokenTurn | None:
    """The turn that has the character at `place`."""
    before = bisect_right(spoken, place, key=lambda turn: turn.start) - 1
    return spoken[before] if before >= 0 and place < spoken[before].end else None


def continued(told: list[SpokenTurn], text: str, speaker: str, *, asks: bool = False) -> list[SpokenTurn]:
    """The turns of a text, first the one that it begins within where `speaker` says whose that is.

    >>> [(turn.start, turn.end) for turn in continued([], "It was hard.", "Lena")]
    [(0, 12)]
    """
    end = told[0].start if told else len(text)
    return [SpokenTurn(0, 0, end, speaker, asks), *told] if speaker and end else told


def speaker_within(text: str, speaker: str, place: int) -> str:
    """Who speaks at `place`, where that is within a turn; `speaker` says it of the text's start. Empty if unknown.

    >>> speaker_within("It was hard.\\nAnn: Why?\\nLena: I left. It rained.", "Lena", 37)
    'Lena'
    """
    if not place:
        return speaker
    turn = turn_at(continued(turns(text)[0], text, speaker), place)
    return turn.speaker if turn and turn.start < place else ""


def labelled(sentence: str) -> tuple[str, str]:
    """The speaker's label that opens a sentence, empty without one, and the words after it.

    >>> labelled("Ann (nurse): I stay."), labelled("I stay.")
    (('Ann', 'I stay.'), ('', 'I stay.'))
    """
    label = _LABEL.match(sentence)
    return (label["before"] or "", sentence[label.end() :].strip()) if label else ("", sentence)


def _labels(text: str) -> Iterator[re.Match[str]]:
    """The labels, which all have a colon: other lines are passed over, as a corpus is read for them."""
    end = 0
    while (colon := text.find(":", end)) >= 0:
        if label := _LABEL.match(text, text.rfind("\n", 0, colon) + 1):
            yield label
        end = text.find("\n", colon)
        if end < 0:
            return


def _turns(text: str) -> list[SpokenTurn]:
    """The turns by their labels alone."""
    labels = list(_labels(text))
    starts = [*(label.start() for label in labels), len(text)]
    return [
        SpokenTurn(start, label.end(), end, label["before"] or label["alone"])
        for label, (start, end) in zip(labels, pairwise(starts), strict=True)
    ]
