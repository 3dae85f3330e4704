"""What an edit may change, and the edits of a language model (ARE, section 4.3 and appendix A.4).

With an entailment model an edit is a replacement of the same kind (`replacements`), which `anchored_edit.py` chooses
and checks: that search is ours. A language model says what is wrong, then writes the fix (`asked_edit`), which is ARE's
way. Left out: nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate

from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.english.notation import MONTHS, in_one_notation
from engine.english.parser import opens_with_name
from engine.english.words import ANTONYMS
from engine.methods.are.names import names
from engine.methods.are.quantities import (
    CURRENCIES,
    Quantity,
    flipped,
    holds,
    months,
    near,
    of_another,
    quantities,
    rival,
)
from engine.methods.are.shared_words import WORD
from engine.methods.are.values import Change, Edit, Exchange
from engine.models.alignment import stem
from engine.models.protocols import Writer
from engine.models.replies import lines
from engine.prompts import ask

CANDIDATES = 16  # replacements that are checked at a time
_MOST_LINES = 20  # of a reply
_WORDS = re.compile(r"\s+|\w+(?:[-'’.,]\w+)*|[^\w\s]")

_AUXILIARY = re.compile(r"\b(?:is|are|was|were|has|have|had|can|could|will|would|should|may|must|did|does|do)\b")
_NOT = re.compile(r"\b(?:not|never|no longer)\s+|n['’]t\b|\s+(?:not|never)\b")
_JOINED = {"can't": "can", "cannot": "can", "won't": "will", "shan't": "shall"}  # more than "n't" has to go
_DENYING = re.compile(r"\b(?:can['’]t|cannot|won['’]t|shan['’]t)\b", re.IGNORECASE)
_WITHOUT = re.compile(r"\b(?:no|nor|neither|none|without|exempt(?:s|ed)?)\b", re.IGNORECASE)
_DATE = re.compile(rf"\b\d{{1,2}} (?:{'|'.join(MONTHS)})\b|\b(?:{'|'.join(MONTHS)}) \d{{1,2}}\b(?!\d)")

# Where a claim and its evidence differ, as replacements of the same kind: the candidates of a smallest edit. Numbers
# with their comparison ("less than 8,000" next to 8,157), dates, names, opposites and negation; which one is right the
# verifier says. No paper's method: a language model does this in ARE, appendix A.4. Left out: other words, which were
# wrong four times of five; rewriting, word order.


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
    if not change.new and (not before or before[-1] == " ") and after[:1] == " ":
        after = after[1:]
    return before + change.new + after if change.new or after else before.rstrip(" ")


def replacements(claim: str, evidence: str) -> list[Replacement]:
    """The replacements worth asking the verifier about, most plausible first; `evidence` is a sentence on the claim."""
    evidence = in_one_notation(claim, evidence)[1]
    found = [
        *_numbers(claim, evidence),
        *_dates(claim, evidence),
        *_names(claim, evidence),
        *_opposites(claim, evidence),
        *_negation(claim, evidence),
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
        if rivals and not right[0] and (mine.limited or not any(right)):
            # "870 oaks" becomes a number of oaks where there is one.
            alike = [q for q in rivals if not of_another(mine, q)] or rivals
            yield from _number_changes(mine, [q for q in alike if q.range or not mine.range], evidence)


def _number_changes(mine: Quantity, rivals: Sequence[Quantity], evidence: str) -> Iterator[Replacement]:
    """The first rivals in the number's place; one end of a range or score is neither put in nor replaced alone."""
    for place, other in enumerate(rivals[:5]):
        weight = 0.9 - 0.1 * place
        new = evidence[slice(*other.range)] if other.range else other.text
        if new[0].isalpha():  # "Seven hundred" opened its sentence
            new = new.capitalize() if mine.text[0].isupper() else new.lower()
        if mine.limited:
            turned = flipped(mine, other)
            if mine.value == other.value:
                yield Replacement(mine.comparison_start, mine.comparison_end, "", "comparison", weight - 0.1)
            elif turned:
                yield Replacement(mine.comparison_start, mine.comparison_end, turned, "comparison", weight)
            weight -= 0.35
        yield Replacement(*(mine.range or (mine.start, mine.end)), new, "number", weight)


def _dates(claim: str, evidence: str) -> Iterator[Replacement]:
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
    known = [name for _, _, name in months(evidence)]
    for start, end, name in months(claim):
        if name not in known:
            for other in dict.fromkeys(known):
                yield Replacement(start, end, other, "date", 0.8)


def _names(claim: str, evidence: str) -> Iterator[Replacement]:
    """A name that the evidence lacks, for a name of the evidence that the claim lacks; a possessive stays one."""
    held = " ".join(evidence.lower().split())
    mine = [_bare(*found) for found in names(claim)]
    lacking = {name for _, _, name in mine if " ".join(name.lower().split()) not in held}
    said = claim.lower()
    theirs = dict.fromkeys(
        name
        for start, _, name in (_bare(*found) for found in names(evidence))
        if name not in CURRENCIES and (" " in name or evidence[:start].strip() or opens_with_name(evidence))
    )
    new = [name for name in theirs if name.lower() not in said]
    for start, end, name in mine:
        if name not in lacking or name in CURRENCIES or any(c.isdigit() for c in name):
            continue
        partly = {w.lower() for w in name.split()} & set(held.split())
        weight = 0.35 if partly or start == 0 else 0.6
        for place, other in enumerate(new[:10]):
            close = abs(len(other.split()) - len(name.split())) <= 1
            yield Replacement(start, end, other, "name", weight - 0.02 * place + (0.1 if close else 0.0))


def _bare(start: int, end: int, name: str) -> tuple[int, int, str]:
    """A name and its span without a possessive "'s"."""
    bare = re.sub(r"['’]s$", "", name)
    return start, end - len(name) + len(bare), bare


def _opposites(claim: str, evidence: str) -> Iterator[Replacement]:
    """A word that the evidence lacks, for its opposite that the evidence holds."""
    theirs = {stem(m.group().lower()) for m in WORD.finditer(evidence)}
    taken = [span for q in quantities(claim) for span in ((q.comparison_start, q.comparison_end), (q.start, q.end))]
    for match in WORD.finditer(claim):
        low = match.group().lower()
        if stem(low) in theirs or any(a <= match.start() < b for a, b in taken):
            continue
        for other in ANTONYMS.get(low, ()):
            if stem(other) in theirs:
                new = other.capitalize() if match.group()[0].isupper() else other
                yield Replacement(match.start(), match.end(), new, "opposite", 0.85)


def _negation(claim: str, evidence: str) -> Iterator[Replacement]:
    """A negation taken out, unless the evidence denies in another way, or put behind the first auxiliary verb."""
    denied = any(pattern.search(evidence) for pattern in (_NOT, _DENYING))
    if found := _DENYING.search(claim) or _NOT.search(claim):
        if _WITHOUT.search(evidence):
            return
        plain = _JOINED.get(found.group().lower().replace("’", "'"), "")
        new = plain.capitalize() if found.group()[0].isupper() else plain
        yield Replacement(found.start(), found.end(), new, "negation", 0.3 if denied else 0.7)
    elif match := _AUXILIARY.search(claim):
        yield Replacement(match.end(), match.end(), " not", "negation", 0.5 if denied else 0.1)


# What an edit changed, and what a language model writes.


def changes(old: str, new: str) -> tuple[Change, ...]:
    """The changes from `old` to `new`, word by word: [start, end) of `old`, the text there, the text instead.

    >>> [(c.start, c.end, c.old, c.new) for c in changes("on 5 March", "on 8 March")]
    [(3, 4, '5', '8')]
    """
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    places = [0, *accumulate(map(len, a))]
    spans: list[tuple[int, int, int, int]] = []
    for kind, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind != "equal" and spans and not "".join(a[spans[-1][1] : i]).strip():
            spans[-1] = (spans[-1][0], j, spans[-1][2], m)  # nothing but a blank between two changes: one change
        elif kind != "equal":
            spans.append((i, j, k, m))
    return tuple(
        Change(start=places[i], end=places[j], old="".join(a[i:j]), new="".join(b[k:m])) for i, j, k, m in spans
    )


def parse_edit(reply: str, fact: str) -> tuple[str, str] | None:
    """(what differs, the corrected fact) of a reply; None without both, or where it is another sentence.

    The fix is the last line that shares half of its words with the fact; what comes behind it is left out.
    """
    said = lines(reply)[:_MOST_LINES]
    fixes = [line for line in said[1:] if shares_half(fact, line)]
    return (said[0], fixes[-1]) if fixes else None


def shares_half(text: str, other: str) -> bool:
    """Whether two texts share half of their words, in order."""
    mine, theirs = text.lower().split(), other.lower().split()
    if len(theirs) > 3 * len(mine):  # so that half cannot be shared
        return False
    return SequenceMatcher(None, mine, theirs, autojunk=False).ratio() >= 0.5


def in_its_place(fix: str, fact: str, evidence: str) -> str:
    """The fix as its fact is written: one from inside a sentence gets no full stop and no capital of its own.

    >>> in_its_place("The pass opened in 1983.", "that pass opened in 1978", "In 1983 the pass was opened.")
    'the pass opened in 1983'
    """
    if fix.endswith(".") and not fact.endswith((".", "!", "?")):
        fix = fix[:-1]
    first = fix.partition(" ")[0].lower()
    opens = fact[:1].islower() and first in f"{fact} {evidence}".split()  # a name is not written small there
    return first + fix[len(first) :] if opens else fix


def asked_edit(
    fact: str, evidence: str, writer: Writer, watch: Watch = Watch(), *, demonstrations: int = 0
) -> tuple[Edit | None, Exchange]:
    """A language model's edit, not yet checked, and the exchange; no edit where the reply cannot be parsed.

    The limit grows with the fact; a line cut at the limit is not read as a fix.
    """
    prompt = ask("edit", demonstrations, fact=fact, evidence=evidence)
    limit = Decoding(max_new_tokens=max(200, 100 + 2 * len(fact.split())))
    written = writer.generate(prompt, limit, None, watch)
    parsed = parse_edit(written.text if written.finished else written.text.rpartition("\n")[0], fact)
    wrong, fix = parsed or ("", fact)
    fix, edit = in_its_place(fix, fact, evidence), None
    if fix != fact:
        edit = Edit(before=fact, after=fix, changes=changes(fact, fix), why=wrong, made_by=writer.name)
    return edit, Exchange(step="edit", prompt=prompt.text, reply=written.text, parsed=parsed is not None)
