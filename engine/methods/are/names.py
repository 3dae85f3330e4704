"""Names of a text: runs of capitalised words, without months, days of the week and words that only open a sentence."""

from __future__ import annotations

import re

from engine.core.text import STOP_WORDS
from engine.methods.are.quantities import MONTHS
from engine.models.alignment import NUMBER_WORDS

NEGATIONS = frozenset(("not", "no", "never", "neither", "nor", "none", "without", "nobody", "nothing", "cannot"))
WEEKDAYS = frozenset(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"))
_NO_NAMES = STOP_WORDS | NEGATIONS | NUMBER_WORDS.keys()
_PART = r"[A-Z](?:[\w'’&-]|\.(?=\w))*"
_NAME = re.compile(
    rf"{_PART}(?:(?: (?:of|the|de|van|von|and) (?=[A-Z]))?(?:[ ]?[-–/][ ]?| )?{_PART})*"
    r"(?: \([A-Z]\w+\))?"
)
_FIRST = re.compile(r"\s*(\S+)\s+(?=\S)")


def names(text: str) -> list[tuple[int, int, str]]:
    """Runs of capitalised words with their spans; stop words, negations, numbers, months and weekdays left out.

    >>> [name for _, _, name in names("The Gate met Ada Berg in May; No Viktor came")]
    ['Gate', 'Ada Berg', 'Viktor']
    """
    found = [_trimmed(text, *run.span()) for run in _NAME.finditer(text)]
    return [(start, end, text[start:end]) for start, end in found if not _common(text[start:end])]


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without white space and without first words that are not part of a name ("The Gate", "No Viktor")."""
    while start < end and (found := _FIRST.match(text, start, end)):
        word = found.group(1)
        dated = word in MONTHS and text[:start].rstrip()[-1:].isdigit()  # "5 May Ada Berg", not "May Berg"
        if not dated and (word in MONTHS or word.lower() not in STOP_WORDS | NEGATIONS):
            break
        start = found.end()
    bare = text[start:end].lstrip()
    return end - len(bare), end - len(bare) + len(bare.rstrip())


def _common(name: str) -> bool:
    """A capitalised word at the start of a sentence that is not a name; a month or a day of the week."""
    return name.lower() in _NO_NAMES or name in MONTHS or name in WEEKDAYS or len(name) < 2
