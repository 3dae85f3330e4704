"""The smallest edit that the evidence bears out (ARE, section 4.3 and appendix A.4).

With an entailment model: replacements of the same kind, each checked by the verifier; kept is that with the highest
p(supportive), less `PRICE` a changed word, if it reaches `ENOUGH`, then a second and a third one where they help. With
a language model: it says what is wrong, then writes the fix (`asked_edit`), which is ARE's way; the search is ours.
Left out: nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.core.text import sentences
from engine.english.words import ANTONYMS
from engine.methods.are.names import names
from engine.methods.are.quantities import CURRENCIES, MONTHS, Quantity, flipped, holds, months, near, quantities, rival
from engine.methods.are.shared_words import WORD, is_content, missing, stems
from engine.methods.are.values import Change, Edit, Exchange, Ruling
from engine.models.alignment import stem
from engine.models.protocols import Entailment, Judged, Writer
from engine.models.replies import lines
from engine.prompts import ask

FOCUS = 60  # words of evidence that an edit may draw on
CLOSE = 30  # words of evidence that it is checked against, whole sentences
CANDIDATES = 16  # replacements that are checked at a time
ROUNDS = 2  # spans that one edit may change
PRICE = 0.04  # of p(supportive) a changed word
KIND = 0.35  # what the plausibility of a replacement's kind counts beside p(supportive)
DOUBT = 0.1  # p(editing required) less p(supportive), from which a claim is edited
ENOUGH = 0.4  # p(supportive) that the edited text must reach
SETTLED = 0.75  # p(supportive) from which no further span is changed
_MOST_LINES = 20  # of a reply
_WORDS = re.compile(r"\s+|\w+(?:[-'’.,]\w+)*|[^\w\s]")

_AUXILIARY = re.compile(r"\b(?:is|are|was|were|has|have|had|can|could|will|would|should|may|must|did|does|do)\b")
_NOT = re.compile(r"\b(?:not|never|no longer)\s+|n['’]t\b|\s+(?:not|never)\b")
_DATE = re.compile(rf"\b\d{{1,2}} (?:{'|'.join(MONTHS)})\b|\b(?:{'|'.join(MONTHS)}) \d{{1,2}}\b(?!\d)")

# Where a claim and its evidence differ, as replacements of the same kind: the candidates of a smallest edit. Numbers
# with their comparison ("less than 8,000" next to 8,157), dates, names, opposites, negation, and single words that the
# evidence lacks; which one is right the verifier says. No paper's method: a language model does this in ARE, appendix
# A.4. Left out: rewriting, word order, more than the span.


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


# The edit: which replacements the verifier keeps, and what a language model writes.


def changes(old: str, new: str) -> tuple[Change, ...]:
    """The changes from `old` to `new`, word by word: [start, end) of `old`, the text there, the text instead.

    >>> [(c.start, c.end, c.old, c.new) for c in changes("on 5 March", "on 8 March")]
    [(3, 4, '5', '8')]
    """
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    places = [0]
    for word in a:
        places.append(places[-1] + len(word))
    spans: list[tuple[int, int, int, int]] = []
    for kind, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind != "equal" and spans and not "".join(a[spans[-1][1] : i]).strip():
            spans[-1] = (spans[-1][0], j, spans[-1][2], m)  # nothing but a blank between two changes: one change
        elif kind != "equal":
            spans.append((i, j, k, m))
    return tuple(
        Change(start=places[i], end=places[j], old="".join(a[i:j]), new="".join(b[k:m])) for i, j, k, m in spans
    )


def smallest_edit(claim: str, evidence: str, verifier: Entailment, watch: Watch | None = None) -> Edit | None:
    """The edited claim with what was changed and the verifier's ruling on it; None where no candidate is good enough.

    A claim that the verifier calls supported, or against which it says hardly more than for it, is not edited. What is
    put in comes from the sentences nearest to the claim. A fact against a found passage, which may speak of something
    else, is edited by `anchored_edit.py`.
    """
    before = verifier.judge([(claim, evidence)], watch)[0]
    if before.verdict == "supportive" or before.scores["editing_required"] - before.scores["supportive"] < DOUBT:
        return None
    whole, wide, evidence = evidence, focus(claim, evidence), focus(claim, evidence, CLOSE)
    text, done, score = claim, [], _worth(before, claim, evidence)
    best: Judged | None = None
    for _ in range(ROUNDS):
        found = _best(text, wide, evidence, verifier, watch)
        if found is None or found[2] < score + (0.05 if best is None else 0.1):
            break
        change, best, score = found
        done.append(change)
        text = apply(text, change)
        if best.scores["supportive"] >= SETTLED and _numbers_agree(text, evidence) == 1:
            break
    if best is None or text == claim or best.verdict != "supportive" or best.scores["supportive"] < ENOUGH:
        return None
    if set(missing(text, whole)) - set(missing(claim, whole)):
        return None
    kinds = ", ".join(dict.fromkeys(change.kind for change in done))
    return Edit(
        before=claim,
        after=text,
        changes=changes(claim, text),
        why=f"{kinds} as the evidence has it",
        made_by=f"substitution checked by {verifier.name}",
        ruling=Ruling.of(best, verifier),
    )


def focus(claim: str, evidence: str, words: int = FOCUS) -> str:
    """The sentence of the evidence that shares most of the claim's words, with its neighbours up to `words` words."""
    spans = sentences(evidence)
    if len(evidence.split()) <= words or len(spans) < 2:
        return evidence
    said = stems(claim)
    shared = [len(said & stems(evidence[a:b])) for a, b in spans]
    first = last = max(range(len(spans)), key=shared.__getitem__)
    while True:
        sides = [i for i in (first - 1, last + 1) if 0 <= i < len(spans)]
        sides = [i for i in sides if len(evidence[spans[min(first, i)][0] : spans[max(last, i)][1]].split()) <= words]
        if not sides:
            return evidence[spans[first][0] : spans[last][1]]
        best = max(sides, key=lambda i: shared[i])
        first, last = min(first, best), max(last, best)


def _best(
    text: str, wide: str, evidence: str, verifier: Entailment, watch: Watch | None
) -> tuple[Replacement, Judged, float] | None:
    """The replacement that the verifier and its kind speak for most, with the ruling on it and its worth."""
    candidates = replacements(text, wide)[:CANDIDATES]
    if not candidates:
        return None
    edited = [apply(text, change) for change in candidates]
    judged = verifier.judge([(new, evidence) for new in edited], watch)
    worths = [
        _worth(j, new, evidence) + KIND * c.weight - PRICE * _size(text, c)
        for j, new, c in zip(judged, edited, candidates, strict=True)
    ]
    return max(zip(candidates, judged, worths, strict=True), key=lambda found: found[2])


def _worth(judged: Judged, text: str, evidence: str) -> float:
    """p(supportive) - p(editing required) / 2, and what the numbers say, which a small network reads badly."""
    return judged.scores["supportive"] - judged.scores["editing_required"] / 2 + 0.4 * _numbers_agree(text, evidence)


def _numbers_agree(text: str, evidence: str) -> float:
    """Share of the text's numbers that the number most like them in the evidence bears out; 1 without numbers."""
    theirs = quantities(evidence)
    found = [(q, rival(q, theirs)) for q in quantities(text)]
    marks = [holds(q, others[0]) for q, others in found if others]
    return sum(marks) / len(marks) if marks else 1.0


def _size(text: str, change: Replacement) -> int:
    return max(len(text[change.start : change.end].split()), len(change.new.split()))


def parse_edit(reply: str, fact: str) -> tuple[str, str] | None:
    """(what differs, the corrected fact) of a reply; None without both, or where it is another sentence.

    The fix is the last line that shares half of its words with the fact; what comes behind it is left out.
    """
    said = lines(reply)[:_MOST_LINES]
    mine = fact.lower().split()
    fixes = [
        line
        for line in said[1:]
        if len(line.split()) <= 3 * len(mine)  # else less than half can be shared
        and SequenceMatcher(None, mine, line.lower().split(), autojunk=False).ratio() >= 0.5
    ]
    return (said[0], fixes[-1]) if fixes else None


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
    fact: str, evidence: str, writer: Writer, watch: Watch | None = None, *, demonstrations: int = 0
) -> tuple[Edit | None, Exchange]:
    """A language model's edit, not yet checked, and the exchange; no edit where the reply cannot be parsed.

    `fact` may be a whole answer, so the limit grows with it; a line cut at the limit is not read as a fix.
    """
    prompt = ask("edit", demonstrations, fact=fact, evidence=evidence)
    limit = Decoding(max_new_tokens=max(200, 100 + 2 * len(fact.split())))
    written = writer.generate(prompt, limit, None, watch)
    parsed = parse_edit(written.text if written.finished else written.text.rpartition("\n")[0], fact)
    wrong, fix = parsed or ("", fact)
    fix, edit = in_its_place(fix, fact, evidence), None
    if fix != fact:
        edit = Edit(before=fact, after=fix, changes=changes(fact, fix), why=wrong, made_by=writer.name)
    return edit, Exchange(step="edit", prompt=prompt.text, reply=written.text, parsed=edit is not None)
