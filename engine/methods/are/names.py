"""Names of a text, and the kind of a name, a place or a party (a person or a firm), by its form and its use.

A name is a run of capitalised words, without months, days of the week and words that only open a sentence. Kinds are no
paper's method: a small verifier calls "a shop in Ada Berg" as supportive as "a shop in Cork". The parser's entities in
their place changed more correct facts (docs/methods/facts.md). Left out: all that needs knowledge of the world; a name
that nothing speaks of is of no kind, and may stand for any other.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from engine.core.text import STOP_WORDS
from engine.english.notation import MONTHS
from engine.english.parser import opens_with_name
from engine.english.words import NUMBER_WORDS
from engine.methods.are.shared_words import rough_stems

NEGATIONS = frozenset(("not", "no", "never", "neither", "nor", "none", "without", "nobody", "nothing", "cannot"))
_DATES = {*MONTHS, "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
_NO_NAMES = STOP_WORDS | NEGATIONS | NUMBER_WORDS.keys()
_PART = r"[A-Z](?:[\w'’&-]|\.(?=\w))*"
_NAME = re.compile(
    rf"{_PART}(?:(?: (?:of|the|de|van|von|and|&) (?=[A-Z]))?(?:[ ]?[-–/][ ]?| )?{_PART})*"
    r"(?: \([A-Z]\w+\))?"
)
_ARTICLES = ("the", "a", "an")
_FIRST = re.compile(r"\s*(\S+)\s+(?=\S)")


def names(text: str) -> list[tuple[int, int, str]]:
    """Runs of capitalised words with their spans; stop words, negations, numbers, months and weekdays left out.

    >>> [name for _, _, name in names("The Gate met Ada Berg in May and June; No Viktor came to Berg & Son; A & Bo")]
    ['Gate', 'Ada Berg', 'Viktor', 'Berg & Son', 'Bo']
    """
    spans = [_trimmed(text, *run.span()) for run in _NAME.finditer(text)]
    found = [(start, end, text[start:end]) for start, end in spans if end - start > 1]
    return [run for run in found if not {*run[2].split(" and ")} <= _DATES and run[2].lower() not in _NO_NAMES]


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without white space and without first words that are not part of a name ("The Gate", "No Viktor")."""
    while start < end and (found := _FIRST.match(text, start, end)):
        word = found.group(1)
        dated = word in MONTHS and text[:start].rstrip()[-1:].isdigit()  # "5 May Ada Berg", not "May Berg"
        if not dated and (word in MONTHS or word.lower() not in STOP_WORDS | NEGATIONS | {"&"}):
            break
        start = found.end()
    bare = text[start:end].lstrip()
    return end - len(bare), end - len(bare) + len(bare.rstrip())


def opening_name(fact: str) -> str:
    """The name that a fact opens with, behind its article; empty where it opens with something else.

    >>> [opening_name(text) for text in ("The Gate's toll is 2 euros", "Aniline boils", "Filed in Cork")]
    ['Gate', 'Aniline', '']
    """
    start, _, name = next(iter(names(fact)), (0, 0, ""))
    before = fact[:start].strip().lower()
    opens = before in _ARTICLES or (not before and (" " in name or opens_with_name(fact)))
    return re.sub(r"['’]s?$", "", name) if opens and ": " not in fact else ""  # a label names nothing


def is_named(name: str, text: str) -> bool:
    """Does a text have all words of a name, or a part of it as a name of its own?

    >>> [is_named("Ada Berg", text) for text in ("Berg left.", "Ada's cousin Bo Berg left.", "Bo Berg left.")]
    [True, True, False]
    """
    own = rough_stems(name)
    return own <= rough_stems(text) or any(rough_stems(other) <= own for _, _, other in names(text))


_PLACED = re.compile(r"(?<!stake )(?<!share )(?<!shares )(?<!interest )\b(?:[Ii]n|[Aa]t|[Nn]ear)\s$")
_INSIDE = re.compile(r"[\w,;][^\S\n]$")
_PARTY = re.compile(r"(?:[A-Z][a-z'’-]+(?:[A-Z][a-z]+)?(?: |$)){2,3}")  # two or three plain words with a capital
_BEFORE = 16  # characters before a name that say what it is


@lru_cache(maxsize=64)
def _used(texts: tuple[str, ...]) -> dict[str, set[str]]:
    """Each name of the texts with what its places say of it: "placed", "inside" a sentence."""
    found: dict[str, set[str]] = {}
    for text in texts:
        for start, _, run in names(text):
            before = text[max(0, start - _BEFORE) : start]
            marks = {mark for mark, form in (("placed", _PLACED), ("inside", _INSIDE)) if form.search(before)}
            for name in run.split(" and "):
                found.setdefault(re.sub(r"['’]s?$", "", name), set()).update(marks)
    return found


def kind(name: str, texts: tuple[str, ...]) -> Literal["party", "place", ""]:
    """The kind of a name as the texts use it; empty where nothing tells it.

    >>> texts = ("Orvel Trading Ltd has a shop in Cork.", "Ada Berg left Orvel.")
    >>> kind("Orvel", texts), kind("Cork", texts), kind("Berg", texts), kind("Zeta", texts)
    ('party', 'place', 'party', '')
    """
    used = _used(texts)
    if "placed" in used.get(name, ()):
        return "place"
    return "party" if any(_PARTY.fullmatch(other) and f" {name} " in f" {other} " for other in used) else ""


def may_replace(new: str, old: str, texts: tuple[str, ...]) -> bool:
    """May one name replace the other: they have the same kind, or one of them has none.

    Never a name with digits and one without, nor a single word of no kind and a party of several words.

    >>> texts = ("Ada Berg left.",)
    >>> may_replace("PM-4", "Cork", texts), may_replace("Cork", "Ada Berg", texts), may_replace("Bo", "Zo", texts)
    (False, False, True)
    """
    if any(c.isdigit() for c in new) != any(c.isdigit() for c in old):
        return False
    theirs, mine = kind(new, texts), kind(old, texts)
    if mine == "party" and not theirs:
        return " " in new or " " not in old
    return not mine or not theirs or mine == theirs


def in_full(name: str, texts: tuple[str, ...]) -> str:
    """The one longer name of a party that the texts have for a part of it; else the name itself.

    A name that only opens sentences may hold a word that is none ("Yesterday Ada Berg").

    >>> in_full("Berg", ("He saw Ada Berg.", "Berg left.")), in_full("Berg", ("It was Ada Berg who met Bo Berg.",))
    ('Ada Berg', 'Berg')
    """
    used = _used(texts)
    longer = [other for other in used if other != name and name in other.split() and "inside" in used[other]]
    parties = [other for other in longer if kind(other, texts) == "party"]
    return parties[0] if " " not in name and len(parties) == 1 else name
