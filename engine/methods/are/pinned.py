"""Is a replacement pinned: its neighbours in the sentence are its neighbours in the fact.

"Bea has 80 per cent and Ann 20" says who has 80, whatever else a fact about the one with 80 says. No paper's method: a
small verifier reads such pairs badly.
"""

from __future__ import annotations

import math
import re

from engine.methods.are.differences import Replacement
from engine.methods.are.names import names
from engine.methods.are.quantities import CURRENCIES, Quantity, quantities
from engine.methods.are.shared_words import stems

_PART = re.compile(r"[;,:]\s|\s(?:and|while|but|whereas|not)\s")
MOST = 0.75  # share of a name's words from which the name is held


def pinned(fact: str, change: Replacement, sentence: str) -> bool:
    """Is the new value the only one of its kind in its part of the sentence, next to a number or name of the fact?

    A name needs a number beside it, a number another number or a name.

    >>> pinned("The owner is Ann with 80 per cent", Replacement(13, 16, "Bea", "name"), "Bea has 80 per cent, Cy 20.")
    True
    """
    parts = [part for part in _PART.split(sentence) if change.new.lower() in part.lower()]
    if len(parts) != 1 or change.kind not in ("name", "number"):
        return False
    part, rest = parts[0], f"{fact[: change.start]} {fact[change.end :]}"
    kept = [q for q in quantities(rest) if q.unit != "year"]
    mine, others = _apart(quantities(part), kept)
    if change.kind == "name":
        return bool(mine) and {name for _, _, name in names(part)} - {change.new} <= {n for _, _, n in names(fact)}
    beside = mine or any(stems(name) <= stems(part) for _, _, name in names(rest) if name not in CURRENCIES)
    return bool(beside) and [q.text.lower() for q in others] == [change.new.lower()]


def held(lacking: set[str], fact: str) -> bool:
    """Is all that is lacking a small part of a longer name: "Kinsale" of "Pelworth Marina Services of Kinsale"."""
    found = [stems(name) for _, _, name in names(fact)]
    gone = {word for name in lacking for word in stems(name)}
    return all(any(one in name and len(name - gone) >= MOST * len(name) for name in found) for one in gone)


def _apart(found: list[Quantity], kept: list[Quantity]) -> tuple[list[Quantity], list[Quantity]]:
    """The numbers that are among `kept`, and the rest."""
    mine = [q for q in found if any(math.isclose(q.value, k.value, rel_tol=1e-6) for k in kept)]
    return mine, [q for q in found if q not in mine]
