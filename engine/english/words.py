"""The words of `words.toml`: opposites and rewordings, for edits and training pairs; limits; kinds of role, thing.

And the words of numbers.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from engine.core.text import TO_TWELVE

_READ = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
PAIRS: dict[str, str] = _READ["pairs"]
LIMITS = frozenset(_READ["left_out"]["limits"])
COUNTS = frozenset(_READ["left_out"]["counts"])
LEAVE_OPEN = frozenset(_READ["left_open"]["words"].split())
MUTUAL = frozenset(_READ["mutual"]["words"].split())
WHO: list[str] = _READ["roles"]["who"]
WHAT: list[str] = _READ["roles"]["what"]


def table(text: str, separator: str | None) -> dict[str, list[str]]:
    """Each member of each slash-separated group with the other members.

    >>> table("hot/cold a/b", None)["cold"]
    ['hot']
    """
    result: dict[str, list[str]] = {}
    for group in " ".join(text.split()).split(separator):
        members = group.strip().split("/")
        for member in members:
            result.setdefault(member, []).extend(other for other in members if other != member)
    return result


_TEENS = "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
CARDINALS = {word: float(i) for i, word in enumerate(f"{TO_TWELVE} {_TEENS}".split())} | {
    word: 10.0 * i for i, word in enumerate(_TENS.split(), start=2)
}
ORDINALS = {word: float(i) for i, word in enumerate(_ORDINALS.split())}
NUMBER_WORDS = CARDINALS | ORDINALS

ANTONYMS = table(PAIRS["opposites"], None)
