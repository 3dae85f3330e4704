"""A word or mark of a sentence with its class, and what counts as one word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Tag = Literal[
    "det", "prep", "pron", "aux", "verb", "ing", "part", "to", "and", "sub", "rel", "adv", "num", "noun", ",", "."
]


@dataclass(frozen=True)
class Token:
    """A word or mark with its span in the sentence's text; a word that a rule put in has the span (-1, -1)."""

    text: str
    start: int
    end: int
    tag: Tag

    @property
    def low(self) -> str:
        """Lower case."""
        return self.text.lower()

    @property
    def named(self) -> bool:
        """Starts with a capital."""
        return self.text[0].isupper()


def put_in(text: str, tag: Tag) -> Token:
    """A word that does not stand in the sentence."""
    return Token(text, -1, -1, tag)


def finite(token: Token) -> bool:
    """Is the token a finite verb or auxiliary."""
    return token.tag in ("aux", "verb")


def joined(found: list[Token]) -> list[Token]:
    """ "as well as" as one conjunction, "per cent" as one word, "(Ireland)" as a word of the name before it."""
    for i in range(len(found) - 1):
        if _closes_name(found[i : i + 4]):
            one = Token(f"({found[i + 2].text})", found[i + 1].start, found[i + 3].end, "noun")
            return [*found[: i + 1], one, *joined(found[i + 4 :])]
        if found[i].low == "per" and found[i + 1].low == "cent":
            one = Token("per cent", found[i].start, found[i + 1].end, "noun")
            return [*found[:i], one, *joined(found[i + 2 :])]
        if [t.low for t in found[i : i + 3]] == ["as", "well", "as"]:
            one = Token("as well as", found[i].start, found[i + 2].end, "and")
            return [*found[:i], one, *joined(found[i + 3 :])]
    return found


def _closes_name(part: list[Token]) -> bool:
    """Is the part a word of a name and another in brackets, no abbreviation: "Holdings (Ireland)"."""
    if [t.text for t in part[1::2]] != ["(", ")"] or not (part[0].named and part[0].tag == "noun"):
        return False
    return part[2].text.istitle() and part[1].start > part[0].end and part[3].start == part[2].end
