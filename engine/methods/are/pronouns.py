"""Replace pronouns at the start of a fact by their names (ARE, appendix A.2), by rules.

"He" and "she" stand for the last person or name that was a subject, "it" for the last other subject, "they" for the
last subject that is a plural or a list. Where none is known the pronoun stays. Left out: pronouns inside a fact, and
all that needs knowledge of the world.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from engine.methods.are.name_kinds import FIRM
from engine.methods.are.tagging import finite, tokens

_PRONOUN = re.compile(r"^(He|She|It|They|he|she|it|they|This|this)(?=\s+\w)")
_POSSESSIVE = re.compile(r"^(His|Her|Its|Their|his|her|its|their)(?=\s+\w)")
_LONGEST = 8  # words of a subject that is put in


@dataclass(frozen=True)
class Known:
    """The last subject that each pronoun may refer to."""

    subjects: dict[str, str] = field(default_factory=dict)

    def after(self, text: str) -> Known:
        """With the subject of `text`, where it names something."""
        subject = _subject(text)
        if subject is None:
            return self
        kind = _kind(subject)
        return Known({**self.subjects, **dict.fromkeys(kind, subject)})


def _subject(text: str) -> str | None:
    """The words before the first finite verb, if they are a noun phrase of some length."""
    found = tokens(text)
    verb = next((i for i, t in enumerate(found) if finite(t)), None)
    if not verb:
        return None
    start = next((i + 1 for i in range(verb - 1, -1, -1) if found[i].tag == ","), 0)
    part = found[start:verb]
    while part and part[-1].tag == "adv":
        part = part[:-1]
    bad = (
        not part
        or len(part) > _LONGEST
        or part[0].tag in ("pron", "prep", "sub", "rel")
        or part[0].low in ("that", "there")
    )
    if bad or part[0].low in ("this", "these", "those", "each", "one"):
        return None
    return text[part[0].start : part[-1].end]


def _kind(subject: str) -> tuple[str, ...]:
    words = subject.split()
    if " and " in subject or words[0].lower() in ("all", "several", "many", "most", "both"):
        return ("they",)
    named = all(w[0].isupper() for w in words if w[0].isalpha()) and words[0].lower() not in ("the", "a", "an")
    if named and not FIRM.search(subject) and len(words) in (1, 2, 3):
        return ("he", "she", "it") if len(words) == 1 else ("he", "she")
    return ("it", "this", "they") if words[-1].endswith("s") and not words[-1][0].isupper() else ("it", "this")


def resolve(fact: str, known: Known) -> tuple[str, int]:
    """The fact with its opening pronoun replaced, and how many characters at its start were put in (0: unchanged).

    >>> resolve("He won a medal", Known().after("Ada Berg lived in Cork."))
    ('Ada Berg won a medal', 8)
    """
    match = _PRONOUN.match(fact) or _POSSESSIVE.match(fact)
    if match is None:
        return fact, 0
    key = {"his": "he", "her": "she", "its": "it", "their": "they"}.get(match.group().lower(), match.group().lower())
    name = known.subjects.get(key)
    if name is None:
        return fact, 0
    new = name if match.re is _PRONOUN else f"{name}'s"
    return new + fact[match.end() :], len(new)


def opens_with_pronoun(sentence: str) -> bool:
    """Is its first word a pronoun for a name?"""
    return bool(_PRONOUN.match(sentence) or _POSSESSIVE.match(sentence))
