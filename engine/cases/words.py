"""Two texts word by word."""

from __future__ import annotations

import difflib
import re
from typing import Literal

from engine.core.values import Value

Change = Literal["same", "removed", "added"]
_PIECE = re.compile(r"\s+|\[\w+\]|\w+|[^\w\s]")  # white space, a citation marker, a word, a sign


class DiffWord(Value, frozen=True):
    """A run of text that is the same in both texts, or in one alone."""

    text: str
    change: Change


def word_diff(left: str, right: str) -> tuple[DiffWord, ...]:
    """The two texts word by word; the runs marked same and removed spell the left, same and added the right.

    White space alone between two changes is part of them: only words and signs hold a text together.

    >>> [(w.text, w.change) for w in word_diff("Hot tap water.", "Cold salt water.")]
    [('Hot tap', 'removed'), ('Cold salt', 'added'), (' water.', 'same')]
    """
    a, b = _PIECE.findall(left), _PIECE.findall(right)
    found: list[tuple[str, Change]] = []
    removed = added = ""
    for kind, i, j, k, m in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        old, new = "".join(a[i:j]), "".join(b[k:m])
        if kind == "equal" and (old.strip() or left == right):
            found += [(removed, "removed"), (added, "added"), (old, "same")]
            removed = added = ""
        else:
            removed, added = removed + old, added + new
    found += [(removed, "removed"), (added, "added")]
    return tuple(DiffWord(text=text, change=change) for text, change in found if text)
