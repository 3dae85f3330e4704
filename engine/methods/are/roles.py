"""What a name does in its sentence, told by the preposition before it: may it stand where another name stands.

No paper's method: a small verifier calls "for Ann" in the place of "by Bea" supportive. Left out: anything that needs a
parse.
"""

from __future__ import annotations

import re

_GOVERNOR = re.compile(r"\b(by|of|to|for|from|in|at|with|against|through|via|into|on)\s+(?:the |an? )?$", re.IGNORECASE)
_MODIFIES = re.compile(r"\ban? $", re.IGNORECASE)  # "an American affiliate"
_ALIKE = ({"to", "for"}, {"from", "by"}, {"to", "into"}, {"through", "via"}, {"by", "of"}, {"of", "from"})


def governor(text: str, start: int) -> str:
    """The preposition before what starts there, with at most an article between; empty where there is none.

    >>> governor("sold by the Gate", 12), governor("where Ann sold", 6)
    ('by', '')
    """
    found = _GOVERNOR.search(text, 0, start)
    return found.group(1).lower() if found else ""


def may_stand(role: str, other: str) -> bool:
    """May what stands behind the preposition `other` take the place of what stands behind `role`.

    A name without a preposition may be anything; "by" and "of" mark who does or has what a subject does or has.
    """
    return not other or other == role or (not role and other in ("by", "of")) or {role, other} in _ALIKE


def modifies(text: str, start: int) -> bool:
    """Does "a" or "an" stand before it: it is said of the noun behind it, as in "an American affiliate"."""
    return _MODIFIES.search(text, 0, start) is not None
