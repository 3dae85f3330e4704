"""The words of `words.toml`: opposites and rewordings, for edits and training pairs; limits; kinds of role, thing."""

from __future__ import annotations

import tomllib
from pathlib import Path

_READ = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
PAIRS: dict[str, str] = _READ["pairs"]
LIMITS = frozenset(_READ["left_out"]["limits"])
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


ANTONYMS = table(PAIRS["opposites"], None)
