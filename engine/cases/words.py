"""Two texts word by word."""

from __future__ import annotations

import difflib
import re
from typing import Literal

from engine.types import Value

Change = Literal["same", "removed", "added"]
_PIECE = re.compile(r"\s+|\w+|[^\w\s]")


class Word(Value, frozen=True):
    """A run of text that is the same in both texts, or in one alone."""

    text: str
    change: Change


def word_diff(left: str, right: str) -> tuple[Word, ...]:
    """The two texts word by word; the runs marked same and removed spell the left, same and added the right.

    >>> [(w.text, w.change) for w in word_diff("Hot water.", "Cold water.")]
    [('Hot', 'removed'), ('Cold', 'added'), (' water.', 'same')]
    """
    a, b = _PIECE.findall(left), _PIECE.findall(right)
    found: list[Word] = []
    for kind, i, j, k, m in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind == "equal":
            found.append(Word(text="".join(a[i:j]), change="same"))
            continue
        if j > i:
            found.append(Word(text="".join(a[i:j]), change="removed"))
        if m > k:
            found.append(Word(text="".join(b[k:m]), change="added"))
    return tuple(found)
