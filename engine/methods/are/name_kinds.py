"""The kind of a name: a firm, a person, a place, by its words and its use in the passages.

No paper's method: a small verifier calls "a shop in Orvel Ltd" as supportive as "a shop in Cork". Left out: all that
needs knowledge of the world; a name that nothing speaks of is of no kind, and may stand for any other.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from engine.methods.are.names import LEGAL_FORM, names

Kind = Literal["firm", "person", "place", "quality", ""]

FIRM = re.compile(
    rf"{LEGAL_FORM.pattern}|\b(?:Company|University|Bank|Foundation|Holdings?|Services|Group|Trading|Consulting|Agency|"
    r"Unit|Court|Committee|Council|Association|Society|Institute|Partners(?:hip)?|Commodities|Freight|School|Museum)\b"
)
_PLACED = re.compile(r"(?<!stake )(?<!share )(?<!shares )(?<!interest )\b(?:[Ii]n|[Aa]t|[Nn]ear)\s$")
_TITLE = re.compile(r"(?:Mr|Mrs|Ms|Dr|Sir)\.?\s")
_QUALITY = re.compile(r"[A-Z][a-z]+(?:ish|ese)$")
_BEFORE = 16  # characters before a name that say what it is


@lru_cache(maxsize=64)
def _used(texts: tuple[str, ...]) -> dict[str, set[str]]:
    """Each name of the texts with what its places say of it: "placed", "titled", "inside" a sentence."""
    found: dict[str, set[str]] = {}
    for text in texts:
        for start, _, run in names(text):
            before = text[max(0, start - _BEFORE) : start]
            marks = {"placed"} if _PLACED.search(before) else set()
            marks |= {"titled"} if _TITLE.match(run) or _TITLE.search(before[-4:]) else set()
            marks |= {"inside"} if re.search(r"[\w,;][^\S\n]$", before) else set()
            for name in run.split(" and "):
                found.setdefault(re.sub(r"['’]s?$", "", name), set()).update(marks)
    return found


def kind(name: str, texts: tuple[str, ...]) -> Kind:
    """The kind of a name as the texts use it; empty where nothing tells it.

    >>> texts = ("Orvel Trading Ltd has a shop in Cork.", "Ada Berg left Orvel.")
    >>> kind("Orvel", texts), kind("Cork", texts), kind("Berg", texts), kind("Irish", texts), kind("Zeta", texts)
    ('firm', 'place', 'person', 'quality', '')
    """
    used = _used(texts)
    longer = [other for other in used if other != name and f" {name} " in f" {other} "]
    if FIRM.search(name) or any(FIRM.search(other) and other.startswith(name) for other in longer):
        return "firm"
    if any("titled" in used[other] for other in (name, *longer) if other in used):
        return "person"
    if "placed" in used.get(name, ()):
        return "place"
    if any(_personal(other) for other in (name, *longer) if other in used):
        return "person"
    return "quality" if _QUALITY.match(name) else ""


def _personal(name: str) -> bool:
    """Two or three plain words, each with a capital."""
    words = name.split()
    return len(words) in (2, 3) and all(re.fullmatch(r"[A-Z][a-z'’-]+(?:[A-Z][a-z]+)?", word) for word in words)


def may_replace(new: str, old: str, texts: tuple[str, ...], role: str = "") -> bool:
    """May one name replace the other: they have the same kind, or one of them has none.

    `role` is the preposition before the old name: a firm may do and get what a person does and gets, and has no other
    place in common with one. A single word of no kind stands for no person, and a name with digits for none without.

    >>> texts = ("Ada Berg left.",)
    >>> may_replace("PM-4", "Cork", texts), may_replace("Cork", "Ada Berg", texts), may_replace("Bo", "Zo", texts)
    (False, False, True)
    """
    if any(c.isdigit() for c in new) != any(c.isdigit() for c in old):
        return False
    theirs, mine = kind(new, texts), kind(old, texts)
    if mine == "person" and not theirs:
        return " " in new or " " not in old
    parties = {mine, theirs} == {"firm", "person"} and role in ("", "by", "from", "to", "for")
    return not mine or not theirs or mine == theirs or parties


def in_full(name: str, texts: tuple[str, ...]) -> str:
    """The one longer name of a person that the texts have for a first or last name; else the name itself.

    A name that only opens sentences may hold a word that is none ("Yesterday Ada Berg").

    >>> in_full("Berg", ("He saw Ada Berg.", "Berg left.")), in_full("Berg", ("It was Ada Berg who met Bo Berg.",))
    ('Ada Berg', 'Berg')
    """
    if " " in name:
        return name
    used = _used(texts)
    longer = [other for other in used if other != name and name in other.split() and "inside" in used[other]]
    people = [other for other in longer if kind(other, texts) == "person"]
    return people[0] if len(people) == 1 else name


_GOVERNOR = re.compile(r"\b(by|of|to|for|from|in|at|with|against|through|via|into|on)\s+(?:the |an? )?$", re.IGNORECASE)


def governor(text: str, start: int) -> str:
    """The preposition before what starts there, with at most an article between; empty where there is none.

    >>> governor("sold by the Gate", 12), governor("where Ann sold", 6)
    ('by', '')
    """
    found = _GOVERNOR.search(text, 0, start)
    return found.group(1).lower() if found else ""
