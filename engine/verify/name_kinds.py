"""What a name names: a firm, a person, a place, by its words and by how the passages use it.

No paper's method: a small verifier calls "a shop in Orvel Ltd" as supportive as "a shop in Cork". Left out: all that
needs knowledge of the world; a name that nothing speaks of is of no kind, and may stand for any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from engine.verify.names import LEGAL_FORM, names

Kind = Literal["firm", "person", "place", "quality", ""]

FIRM = re.compile(
    rf"{LEGAL_FORM.pattern}|\b(?:Company|University|Bank|Foundation|Holdings?|Services|Group|Trading|Consulting|Agency|"
    r"Unit|Court|Committee|Council|Association|Society|Institute|Partners(?:hip)?|Commodities|Freight|School|Museum)\b"
)
_PLACED = re.compile(r"\b(?:[Ii]n|[Aa]t|[Nn]ear)\s$")
_TITLE = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Sir)\.?\s$")
_QUALITY = re.compile(r"[A-Z][a-z]+(?:ish|ese|ian)$")


@lru_cache(maxsize=64)
def _used(texts: tuple[str, ...]) -> dict[str, set[str]]:
    """Each name of the texts with what stands before it where that says something of it: "placed", "titled"."""
    found: dict[str, set[str]] = {}
    for text in texts:
        for start, _, name in names(text):
            marks = found.setdefault(name, set())
            if _PLACED.search(text, 0, start):
                marks.add("placed")
            if _TITLE.search(text, 0, start):
                marks.add("titled")
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
    if "titled" in used.get(name, ()):
        return "person"
    if "placed" in used.get(name, ()):
        return "place"
    if _QUALITY.match(name):
        return "quality"
    return "person" if _personal(name) or any(_personal(other) for other in longer) else ""


def _personal(name: str) -> bool:
    """Two or three plain words, each with a capital."""
    words = name.split()
    return len(words) in (2, 3) and all(re.fullmatch(r"[A-Z][a-z'’-]+(?:[A-Z][a-z]+)?", word) for word in words)


def may_replace(new: str, old: str, texts: tuple[str, ...], role: str = "") -> bool:
    """May the one name stand where the other stands: their kinds are the same, or one of them is of no kind.

    `role` is the preposition before the old name: a firm may do and get what a person does and gets, and has no other
    place in common with one. A single word of no kind stands for no person, and a name with digits for none without.

    >>> may_replace("PM-4", "Cork", ()), may_replace("Cork", "Ada Berg", ()), may_replace("Orvel", "Zeta", ())
    (False, False, True)
    """
    if any(c.isdigit() for c in new) != any(c.isdigit() for c in old):
        return False
    theirs, mine = kind(new, texts), kind(old, texts)
    if mine == "person" and not theirs:
        return " " in new or " " not in old
    parties = {mine, theirs} == {"firm", "person"} and role in ("", "by", "from", "to", "for")
    return not mine or not theirs or mine == theirs or parties


def in_full(name: str, texts: Iterable[str]) -> str:
    """The one longer name of a person that the texts have for a first or last name; else the name itself.

    >>> in_full("Berg", ("Berg came.", "Ada Berg left.")), in_full("Berg", ("Ada Berg met Bo Berg.",))
    ('Ada Berg', 'Berg')
    """
    if " " in name:
        return name
    known = tuple(texts)
    longer = {other for other in _used(known) if other != name and name in other.split()}
    longer = {other for other in longer if kind(other, known) == "person"}
    return longer.pop() if len(longer) == 1 else name
