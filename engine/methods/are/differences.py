"""Where a claim and its evidence differ, as replacements of the same kind: the candidates of a smallest edit.

Numbers with their comparison ("less than 8,000" beside 8,157), dates, names, opposites, negation, and single words that
the evidence lacks. Each replacement carries how plausible its kind makes it; which one is right the verifier says.
No paper's method: a language model does this in ARE, appendix A.4. Left out: rewriting, word order, more than the span.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.english.words import ANTONYMS
from engine.methods.are.names import names
from engine.methods.are.quantities import CURRENCIES, MONTHS, Quantity, flipped, holds, months, near, quantities, rival
from engine.methods.are.shared_words import WORD, is_content
from engine.models.alignment import stem

_AUXILIARY = re.compile(r"\b(?:is|are|was|were|has|have|had|can|could|will|would|should|may|must|did|does|do)\b")
_NOT = re.compile(r"\b(?:not|never|no longer)\s+|n['’]t\b|\s+(?:not|never)\b")
_DATE = re.compile(rf"\b\d{{1,2}} (?:{'|'.join(MONTHS)})\b|\b(?:{'|'.join(MONTHS)}) \d{{1,2}}\b(?!\d)")


@dataclass(frozen=True)
class Replacement:
    """Characters [start, end) of the claim become `new`; `weight` (0 to 1) is what its kind alone says for it."""

    start: int
    end: int
    new: str
    kind: str = ""
    weight: float = 0.0


def apply(text: str, change: Replacement) -> str:
    """The text with the change; a deletion also removes the adjacent blank."""
    before, after = text[: change.start], text[change.end :]
    if not change.new and (not before or before[-1] == " ") and after[:1] in (" ", ""):
        after = after[1:]
    return before + change.new + after


def replacements(claim: str, evidence: str, *, anchored: bool = False) -> list[Replacement]:
    """All replacements worth asking the verifier about, the most plausible first.

    `anchored`: the evidence is one sentence that is known to speak of the claim (`anchor.py`): its numbers, dates and
    names need share nothing more with the claim's, and no other words are changed.
    """
    found = [
        *_numbers(claim, evidence),
        *_dates(claim, evidence, anchored),
        *_names(claim, evidence, anchored),
        *_opposites(claim, evidence, anchored),
        *_negation(claim, evidence),
        *(() if anchored else _words(claim, evidence)),
    ]
    best: dict[tuple[int, int, str], Replacement] = {}
    for change in sorted(found, key=lambda c: c.weight):
        if claim[change.start : change.end] != change.new:
            best[change.start, change.end, change.new] = change
    return sorted(best.values(), key=lambda c: -c.weight)


def _numbers(claim: str, evidence: str) -> Iterator[Replacement]:
    """A number that the evidence contradicts: its comparison turned round, or the evidence's number in its place."""
    theirs = quantities(evidence)
    for mine in quantities(claim):
        rivals = rival(mine, theirs)
        right = [holds(mine, other) for other in rivals]
        if rivals and not right[0] and (mine.comparison or not any(right)):
            yield from _number_changes(mine, rivals)


def _number_changes(mine: Quantity, rivals: Sequence[Quantity]) -> Iterator[Replacement]:
    for place, other in enumerate(rivals[:5]):
        weight = 0.9 - 0.1 * place
        new = other.text
        if new[0].isalpha():  # "Seven hundred" opened its sentence
            new = new.capitalize() if mine.text[0].isupper() else new.lower()
        if mine.comparison:
            turned = flipped(mine, other)
            if mine.value == other.value:
                yield Replacement(mine.comparison_start, mine.comparison_end, "", "comparison", weight - 0.1)
            elif turned:
                yield Replacement(mine.comparison_start, mine.comparison_end, turned, "comparison", weight)
            yield Replacement(mine.start, mine.end, new, "number", weight - 0.35)
        else:
            yield Replacement(mine.start, mine.end, new, "number", weight)


def _dates(claim: str, evidence: str, anchored: bool) -> Iterator[Replacement]:
    """A day with its month that the evidence lacks, for one that it holds; a month alone likewise."""
    held = list(_DATE.finditer(evidence))
    for match in _DATE.finditer(claim):
        around = near(claim, match.start(), match.end())
        alike = [d for d in held if d.group()[0].isdigit() == match.group()[0].isdigit()]
        alike.sort(key=lambda d: -len(around & near(evidence, d.start(), d.end(), 4)))
        if match.group() not in {d.group() for d in held}:
            for place, other in enumerate(dict.fromkeys(d.group() for d in alike[:6])):
                weight = 0.95 - 0.1 * place - 0.3 * (not set(match.group().split()) & set(other.split()))
                yield Replacement(match.start(), match.end(), other, "date", weight)
    known = [] if anchored else [name for _, _, name in months(evidence)]
    for start, end, name in months(claim):
        if name not in known:
            for other in dict.fromkeys(known):
                yield Replacement(start, end, other, "date", 0.8)


def _names(claim: str, evidence: str, anchored: bool) -> Iterator[Replacement]:
    """A name that the evidence lacks, for a name of the evidence that the claim lacks."""
    held = " ".join(evidence.lower().split())
    mine = names(claim)
    lacking = {name for _, _, name in mine if " ".join(name.lower().split()) not in held}
    said = claim.lower()
    theirs = dict.fromkeys(name for _, _, name in names(evidence) if name not in CURRENCIES)
    new = [name for name in theirs if name.lower() not in said]
    for start, end, name in mine:
        if name not in lacking or name in CURRENCIES or (anchored and any(c.isdigit() for c in name)):
            continue
        partly = {w.lower() for w in name.split()} & set(held.split())
        weight = 0.35 if partly or start == 0 else 0.6
        for place, other in enumerate(new[:10]):
            close = abs(len(other.split()) - len(name.split())) <= 1
            yield Replacement(start, end, other, "name", weight - 0.02 * place + (0.1 if close else 0.0))


def _opposites(claim: str, evidence: str, anchored: bool) -> Iterator[Replacement]:
    """A word whose opposite the evidence holds, or that the evidence lacks."""
    theirs = {stem(m.group().lower()) for m in WORD.finditer(evidence)}
    taken = [span for q in quantities(claim) for span in ((q.comparison_start, q.comparison_end), (q.start, q.end))]
    for match in WORD.finditer(claim):
        low = match.group().lower()
        if low not in ANTONYMS or any(a <= match.start() < b for a, b in taken):
            continue
        lacking = stem(low) not in theirs
        for other in ANTONYMS[low]:
            if anchored and not (lacking and stem(other) in theirs):
                continue
            weight = 0.85 if stem(other) in theirs and lacking else 0.5 if stem(other) in theirs else 0.3
            new = other.capitalize() if match.group()[0].isupper() else other
            yield Replacement(match.start(), match.end(), new, "opposite", weight if lacking else weight - 0.25)


def _negation(claim: str, evidence: str) -> Iterator[Replacement]:
    """A negation taken out, or put behind the first auxiliary verb."""
    denied = _NOT.search(evidence) is not None
    if found := _NOT.search(claim):
        yield Replacement(found.start(), found.end(), "", "negation", 0.3 if denied else 0.7)
    elif match := _AUXILIARY.search(claim):
        yield Replacement(match.end(), match.end(), " not", "negation", 0.5 if denied else 0.1)


def _words(claim: str, evidence: str) -> Iterator[Replacement]:
    """A content word that the evidence lacks, for a word of the evidence that the claim lacks."""
    mine, theirs = list(WORD.finditer(claim)), list(WORD.finditer(evidence))
    held, said = {stem(m.group().lower()) for m in theirs}, {stem(m.group().lower()) for m in mine}
    new = [m.group() for m in theirs if is_content(m.group()) and stem(m.group().lower()) not in said]
    for match in mine:
        old = match.group()
        if not is_content(old) or stem(old.lower()) in held or months(old):
            continue
        for other in new[:8]:
            word = other.capitalize() if old[0].isupper() and not match.start() else other
            weight = 0.2 + (0.1 if word[0].isupper() == old[0].isupper() else 0.0)
            yield Replacement(match.start(), match.end(), word, "word", weight)
