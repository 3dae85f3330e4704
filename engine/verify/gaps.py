"""Numbers and names of a fact that its evidence lacks: with one of them missing the evidence bears out part at most.

ARE calls evidence that supports only part of a fact irrelevant (A.3); a small entailment model overlooks a number or
name in a passage that otherwise fits. The rule is applied to its supportive verdicts alone, is said on the ruling,
and can be switched off (`verification.names_and_numbers`).
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from engine.models.alignment import NUMBER_WORDS, stem
from engine.text import STOP_WORDS
from engine.verify.quantities import holds, months, quantities
from engine.verify.values import Ruling

_NAME = re.compile(r"(?<![\w.])[A-Z][\w'’&-]*(?:\.(?=\w)[\w'’&-]+)*")
_POSSESSIVE = re.compile(r"['’]s?$")


def missing(fact: str, evidence: str) -> tuple[str, ...]:
    """Numbers, months and names of the fact that do not stand in the evidence; a comparison counts by value.

    The first word of the fact counts as a name only where it stands capitalised elsewhere or is followed by one.

    >>> missing("Ada moved to Estonia in 1990", "Ada left for Riga in 1990.")
    ('Estonia',)
    """
    theirs = quantities(evidence)
    numbers = [q.text for q in quantities(fact) if not any(holds(q, other) for other in theirs)]
    held = {stem(word.lower()) for word in re.findall(r"[^\W_]+", evidence)}
    named = {name for _, _, name in months(fact)}
    names = []
    for match in _NAME.finditer(fact):
        word = _POSSESSIVE.sub("", match.group())
        parts = [stem(part.lower()) for part in re.findall(r"[^\W_]+", word)]
        if (
            word.lower() in STOP_WORDS
            or word.lower() in NUMBER_WORDS
            or (match.start() == 0 and not _is_name(fact, match))
        ):
            continue
        if not any(part in held for part in parts) and word not in names:
            names.append(word)
    return (*dict.fromkeys(numbers), *names, *(m for m in named if m not in names and stem(m.lower()) not in held))


def _is_name(fact: str, match: re.Match[str]) -> bool:
    """Is the first word a name: another capital follows it, or it is no plain lower-case word with a capital."""
    after = fact[match.end() : match.end() + 2]
    return (after[:1] == " " and after[1:].isupper()) or any(c.isupper() or c.isdigit() for c in match.group()[1:])


def with_gaps(ruling: Ruling, fact: str, evidence: str) -> Ruling:
    """The ruling; a supportive one is turned where the evidence lacks a number or name: it supports part at most.

    Where it holds another number of that kind it asks for an edit, else it is irrelevant.
    """
    if ruling.verdict != "supportive":
        return ruling
    lacking = missing(fact, evidence)
    if not lacking:
        return ruling
    rivals = any(q.text in lacking and _has_rival(q.unit, evidence) for q in quantities(fact))
    verdict = "editing_required" if rivals else "irrelevant"
    said = ", ".join(lacking)
    note = f"{verdict.replace('_', ' ')}, because the passage does not hold {said}; else {ruling.note}"
    return replace(ruling, verdict=verdict, note=note, lacking=lacking)


def _has_rival(unit: str, evidence: str) -> bool:
    return any(q.unit == unit for q in quantities(evidence))
