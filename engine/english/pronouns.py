"""Replace the pronoun that opens a fact with its name (ARE, appendix A.2), by the parser's names and numbers.

"He" and "she" refer to the last person that was a subject, "it" to the last other subject, "they" to the last plural or
list. Behind "Its roof is new" it remains what has the roof: of 8 such places of public texts it is in 7, but behind
"The mill's roof is new" it is the roof in 7 of 8. Without a subject, or without the parser, the pronoun stays, as does
"it" behind the subject of its own sentence. "This" points at a sentence or list as often as at a subject, and stays.
Left out: pronouns inside a fact.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from engine.english.parser import parse
from engine.english.tree import is_plural, subject_of

_POINTS = r"[Ii]t(?! (?:is|was)\b.*\b(?:that|who)\b)"  # not "It was Ann who sold it"
_THIS = r"[Tt]his(?= (?:is|was|has|had|can|may|will)\b)"  # not "this transfer"
_PRONOUN = re.compile(rf"^(He|She|They|he|she|they|{_POINTS}|{_THIS})(?=\s+\w)")
_POSSESSIVE = re.compile(r"^(His|Her|Its|Their|his|her|its|their)(?=\s+\w)")
_BRACKETS = re.compile(r"\s+\([^()]*\)$")  # "Ada Berg (1901-1977)"
_LONGEST = 8  # words of a subject that is put in
_OWN = {"his": "he", "her": "she", "its": "it", "their": "they"}
_POINTING = ("this", "that", "these", "those", "there", "each", "one")


@dataclass(frozen=True)
class Known:
    """The last subject that each pronoun may refer to."""

    subjects: dict[str, str] = field(default_factory=dict)

    def after(self, text: str, *, its: bool = False) -> Known:
        """With the subject of `text`, where it names something; `its` opened the text, whose "it" stays the same."""
        doc = parse(text)
        subject = subject_of(doc[:].root) if doc else None
        if doc is None or subject is None or subject.pos_ not in ("NOUN", "PROPN", "NUM"):
            return self
        words = doc[subject.left_edge.i : subject.right_edge.i + 1]
        if len(words) > _LONGEST or words[0].lower_ in _POINTING or subject.right_edge.i > doc[:].root.i:
            return self
        if is_plural(subject) or any(child.dep_ == "conj" for child in subject.children):
            kinds: tuple[str, ...] = ("they",)
        elif "PERSON" in (subject.ent_type_, *(c.ent_type_ for c in subject.head.children if c.dep_ == "attr")):
            kinds = ("he", "she")  # also in "Its engineer was Ida Mohr"
        else:
            kinds = ("he", "she", "it") if subject.pos_ == "PROPN" and len(words) == 1 else ("it",)
        if its and kinds == ("it",):
            return self
        name = _BRACKETS.sub("", words.text)
        return Known({**self.subjects, **dict.fromkeys(kinds, name)})

    @property
    def people(self) -> Known:
        """Without things: "it" behind the subject of its own sentence is another noun too often."""
        return Known({kind: name for kind, name in self.subjects.items() if kind != "it"})


def resolve(fact: str, known: Known) -> tuple[str, int]:
    """The fact with its opening pronoun replaced, and how many characters at its start were put in (0: unchanged).

    >>> resolve("He won a medal", Known().after("Ada Berg lived in Cork."))
    ('Ada Berg won a medal', 8)
    """
    match = _PRONOUN.match(fact) or _POSSESSIVE.match(fact)
    low = match.group().lower() if match else ""
    kind = _OWN.get(low, low)
    name = known.subjects.get(kind)
    if match is None or name is None:
        return fact, 0
    owned = "'" if kind == "they" and name.endswith("s") else "'s"
    new = name if match.re is _PRONOUN else name + owned
    return new + fact[match.end() :], len(new)


def opens_with_pronoun(sentence: str) -> bool:
    """Is its first word a pronoun for a name?"""
    return bool(_PRONOUN.match(sentence) or _POSSESSIVE.match(sentence))
