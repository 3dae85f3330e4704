"""The smallest edit of a fact by the sentence that speaks of it (`anchor.py`): what the passage has in its place.

Only numbers, dates, names, opposites, negation and the order of two events are replaced, and only so that fewer numbers
and names of the fact are missing from the passage than before, or no more where a comparison or opposite is turned. The
edit is checked again against that sentence. It is kept if the verifier calls it supportive, a number, date or name also
on other grounds (`grounds`), an order of events if the passages give it (`event_order.py`): a small verifier cannot
tell that. The ruling says what an edit was kept for. Up to four spans are changed: more where the first alone is not
good enough; after a good one, only numbers and dates. A name is checked as the sentence has it; in full, and in the
place of what is said of the old one ("the clerk Ann Berg"), it is put in after that. No paper's method: ARE's language
model edits (appendix A.4). Left out: everything that is not one of these kinds.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from msgspec.structs import replace

from engine.core.progress import Watch
from engine.english.parser import common_nouns
from engine.english.parties import exchanged, mispaired
from engine.methods.are.anchor import Anchor, Others, anchors, on_fact, others
from engine.methods.are.edit import CANDIDATES, Replacement, apply, changes, replacements
from engine.methods.are.event_order import against, turned
from engine.methods.are.names import in_full, may_replace, names
from engine.methods.are.quantities import CURRENCIES, as_large, dates, in_other_order, months, quantities
from engine.methods.are.shared_words import missing, rough_stems
from engine.methods.are.values import Change, Edit, Evidence, Ruling
from engine.models.protocols import Entailment, Judged

_FAR = 60  # characters before a name in which what is said of it is looked for
_DESCRIBED = re.compile(r"\b(?P<article>[Tt]he) (?:[a-z-]+ ){1,3}$")
ORDER, PARTIES = "order of events", "parties"
SPANS = 4  # replacements that one edit may consist of
KIND = 0.35  # what the plausibility of a replacement's kind counts beside p(supportive)
DOUBT = 0.1  # p(editing required) less p(supportive), from which a claim is edited
ENOUGH = 0.4  # p(supportive) that the edited text must reach
DELETED = 0.8  # share of the fact's words that the sentence must hold from which a negation is taken out or put in
PINNED = 0.3  # what counts for a replacement beside which the sentence has what the fact has


def smallest_edit(claim: str, evidence: str, verifier: Entailment, watch: Watch = Watch()) -> Edit | None:
    """The edit of a claim by its evidence, None if nothing is good enough or the verifier hardly contradicts the claim.

    The evidence was given with the claim, so it counts as cited by it.
    """
    before = verifier.judge([(claim, evidence)], watch)[0]
    if before.verdict == "supportive" or before.scores["editing_required"] - before.scores["supportive"] < DOUBT:
        return None
    passage = Evidence(text=evidence, source="case", number=1)
    near = anchors(claim, [passage], cited=[1])
    return anchored_edit(claim, passage, near[0], others(near[0], near, (evidence,), claim), verifier, watch)


def anchored_edit(
    fact: str, evidence: Evidence, anchor: Anchor, others: Others, verifier: Entailment, watch: Watch = Watch()
) -> Edit | None:
    """The edited fact, what was changed and the ruling on it; None where nothing is good enough."""
    sentence = evidence.text[anchor.named : anchor.end]
    text, edit = fact, None
    made: list[Replacement] = []
    for _ in range(SPANS):
        candidates = options(text, evidence, anchor, others)
        candidates = [change for change in candidates if edit is None or change.kind in COUNTED]
        if not candidates:
            break
        texts = [apply(text, change) for change in candidates]
        before, *judged = verifier.judge([(one, sentence) for one in (text, *texts)], watch)
        worths = [
            one.scores["supportive"]
            - one.scores["editing_required"] / 2
            + KIND * change.weight
            + PINNED * (pinned(text, change, sentence) or miscopied(text, change, others))
            for one, change in zip(judged, candidates, strict=True)
        ]
        best = max(range(len(worths)), key=worths.__getitem__)
        change, why = candidates[best], ""
        if edit is not None or not made:  # else the words put in first would speak for the others
            better = judged[best].scores["supportive"] > before.scores["supportive"]
            alike = [one for one, other in zip(candidates, texts, strict=True) if other == texts[best]]
            why = next(filter(None, (grounds(text, one, evidence, anchor, others, better) for one in alike)), "")
        ruling = _ruling(judged[best], why, anchor, verifier)
        made.append(_whole_name(text, change, sentence, others) if change.kind == "name" else change)
        text = apply(text, made[-1])
        if ruling is not None and text != fact:  # the second span may undo the first
            edit = _edit(fact, text, made, ruling, verifier)
        anchor = dataclasses.replace(anchor, lacking=missing(text, on_fact(text, evidence)))
    return edit


def _ruling(judged: Judged, why: str, anchor: Anchor, verifier: Entailment) -> Ruling | None:
    """The ruling on the edited fact as one on its passage, by the verifier or what else speaks for it; None of none."""
    ruling = Ruling.of(judged, verifier)
    ruling = replace(ruling, window=(ruling.window[0] + anchor.named, ruling.window[1] + anchor.named))
    if judged.verdict == "supportive" and judged.scores["supportive"] >= ENOUGH:
        return ruling
    return ruling.because(why) if why else None


def _edit(fact: str, text: str, made: Sequence[Replacement], ruling: Ruling, verifier: Entailment) -> Edit:
    """The edit by what was replaced in turn; a name alone, or two parties exchanged, is one change to decide on."""
    first, alone = made[0], len(made) == 1 and made[0].kind in ("name", PARTIES)
    whole = (Change(start=first.start, end=first.end, old=fact[first.start : first.end], new=first.new),)
    return Edit(
        before=fact,
        after=text,
        changes=whole if alone else changes(fact, text),
        why=f"{', '.join(dict.fromkeys(change.kind for change in made))} as the passage has it",
        made_by=f"substitution checked by {verifier.name}",
        ruling=ruling,
    )


def _whole_name(fact: str, change: Replacement, sentence: str, others: Others) -> Replacement:
    """The replacement with the name in full for a full name, and in the place of what is said of the old one.

    "the clerk Ann Berg" becomes "the Gate" where the sentence has "the Gate", not "the clerk Gate".
    """
    new = in_full(change.new, others.texts) if " " in fact[change.start : change.end] else change.new
    described = _DESCRIBED.search(fact, max(0, change.start - _FAR), change.start)
    if described and re.search(rf"\b[Tt]he {re.escape(new)}(?!\w)", sentence):
        nouns = common_nouns(fact)  # "bank clerk", not "firm paid"
        said = re.compile(r"\w+").finditer(fact, described.end("article"), change.start)
        if all(word.span() in nouns for word in said):
            return dataclasses.replace(change, start=described.start(), new=f"{described['article']} {new}")
    return dataclasses.replace(change, new=new)


def options(fact: str, evidence: Evidence, anchor: Anchor, others: Others) -> list[Replacement]:
    """Replacements after which the passage lacks less of the fact, the most plausible first, at most `CANDIDATES`.

    Names come from the sentence before, too, where a pronoun opens the anchor's.
    """
    sentence, named = (evidence.text[start : anchor.end] for start in (anchor.start, anchor.named))
    whole = on_fact(fact, evidence)
    found = replacements(fact, sentence)
    if (order := against(fact, evidence.text, others.dated)) and (word := turned(fact, order)):
        found.insert(0, Replacement(order.start, order.end, word, ORDER, 1.0))
    swapped = exchanged(fact, evidence.text) or mispaired(fact, evidence.text)
    if swapped and swapped.instead:
        start, end = swapped.change
        new = swapped.instead[start : len(swapped.instead) - len(fact) + end]
        found.insert(0, Replacement(start, end, new, PARTIES, 1.0))
    if named != sentence:
        found += [change for change in replacements(fact, named) if change.kind == "name"]
    return [change for change in found if _fits(fact, change, whole, others, anchor)][:CANDIDATES]


def _fits(fact: str, change: Replacement, whole: str, others: Others, anchor: Anchor) -> bool:
    left = set(missing(apply(fact, change), whole))
    if change.kind == "negation":
        return anchor.share >= DELETED and not left
    if change.kind in (ORDER, PARTIES):
        return not left & others.nowhere  # one event may be told in another passage
    if change.kind == "opposite" or (change.kind == "comparison" and change.new):
        return left <= set(anchor.lacking)
    if _said_already(fact, change, others.clause):
        return False
    if change.kind == "name":
        old = fact[change.start : change.end]
        if anchor.worth < LEAST or not may_replace(change.new, old, others.texts):
            return False
        if not (rough_stems(old) & rough_stems(whole)) <= rough_stems(change.new):
            return False
    gone = set(anchor.lacking) - left
    return left < set(anchor.lacking) and gone <= others.may_go


def _said_already(fact: str, change: Replacement, clause: str = "") -> bool:
    """Does the rest of the fact already contain the new words, or most of a name: they would occur twice.

    A day or number may stand in the rest of the fact's clause as little.

    >>> _said_already("Ann Berg sold it to Bo", Replacement(20, 22, "Ann Berg of Riga", "name"))
    True
    """
    rest = f"{fact[: change.start]} {fact[change.end :]}"
    if change.kind in ("date", "number"):
        old = rf"(?<!\w){re.escape(fact[change.start : change.end])}(?!\w)"
        rest = f"{rest} {re.sub(old, '', clause, count=1)}"
    if change.kind == "name":
        new = rough_stems(change.new)
        return len(new & rough_stems(rest)) * 2 > len(new)
    values, others = ({(q.value, q.unit == "day") for q in quantities(text)} for text in (change.new, rest))
    end = change.start + len(change.new)
    days = {found[2:] for found in dates(apply(fact, change)) if found[0] < end and change.start < found[1]}
    told = not days.isdisjoint(found[2:] for found in dates(rest))
    return told or (change.kind == "number" and not values.isdisjoint(others))


# What speaks for a number, date, name or order of events that is put in, where a small verifier doubts the edited fact.
#
# An order of events was read from the passages. Else, in this order: the sentence has the same next to it as the fact
# (`pinned`); the fact's number is in no passage, and the sentence has its digits in another order; the sentence holds
# most other numbers and names of the fact; it holds most words of the fact, and the verifier speaks for the edited fact
# more than for the fact. No paper's method: a large language model does this in ARE, appendix A.4.

LEAST = 0.5  # worth of the anchor from which what is pinned is put in
NEARLY = 0.65  # worth of the anchor from which its sentence bears the edited fact out beside a doubtful verifier
FULL = 3  # numbers, months and names from which a sentence that holds so many of a fact's speaks of it
COUNTED = ("number", "date", "comparison")  # kinds of which words alone can tell whether the sentence has them


def grounds(fact: str, change: Replacement, evidence: Evidence, anchor: Anchor, others: Others, better: bool) -> str:
    """Why the edited fact is accepted although the verifier doubts it; empty without a reason.

    `better`: the verifier speaks for the edited fact more than for the fact.
    """
    if change.kind == PARTIES:
        return "a sentence of the passage has the two in these places"
    if change.kind == ORDER:
        return f'the passages give the two events in the order of "{change.new}"'
    edited, sentence = apply(fact, change), evidence.text[anchor.start : anchor.end]
    left = set(missing(edited, on_fact(edited, evidence)))
    if pinned(fact, change, sentence) and anchor.worth >= LEAST and held(left, edited):
        return "the sentence has the new words next to the same words as the fact"
    told = full(fact, change, f"{evidence.title}\n{sentence}")
    if change.kind not in COUNTED or (left and (not told or left & others.nowhere)):
        return ""  # a name that other passages have may be left out where the sentence has so much else
    if miscopied(fact, change, others):
        return "no passage has the number; the sentence has its digits in another order"
    if told or (anchor.worth >= NEARLY and better):
        return f"one sentence holds {anchor.share:.0%} of its words and {'most' if left else 'all'} numbers and names"
    return ""


def miscopied(fact: str, change: Replacement, others: Others) -> bool:
    """Is a long number from no passage replaced by one with the same digits in another order?"""
    old = fact[change.start : change.end]
    return change.kind == "number" and old in others.nowhere and in_other_order(old, change.new)


def full(fact: str, change: Replacement, sentence: str) -> bool:
    """Does the sentence hold what is put in and most other numbers, months and names of the fact, `FULL` at least.

    >>> full("Ann paid Bo 45 on 8 May", Replacement(12, 14, "54", "number"), "On 8 May Ann paid 54.")
    True
    """
    rest = f"{fact[: change.start]} {fact[change.end :]}"
    said = {q.text for q in quantities(rest)} | {name for _, _, name in (*names(rest), *months(rest))}
    gone = set(missing(rest, sentence))
    kept = [one for one in said if not set(one.split()) & gone and one not in CURRENCIES]
    return len(kept) >= max(FULL, len(said) / 2) and not missing(change.new, sentence)


_PART = re.compile(r"[;,:]\s|\s(?:and|while|but|whereas|not)\s")
MOST = 0.75  # share of a name's words from which the name is held


def pinned(fact: str, change: Replacement, sentence: str) -> bool:
    """Whether the new text is the only one of its kind in its part of the sentence, near a number or name of the fact.

    A name needs a number beside it, a number another number or a name.

    >>> pinned("The owner is Ann with 80 per cent", Replacement(13, 16, "Bea", "name"), "Bea has 80 per cent, Cy 20.")
    True
    """
    parts = [part for part in _PART.split(sentence) if change.new.lower() in part.lower()]
    if len(parts) != 1 or change.kind not in ("name", "number"):
        return False
    part, rest = parts[0], f"{fact[: change.start]} {fact[change.end :]}"
    kept = [q for q in quantities(rest) if q.unit != "year"]
    told = quantities(part)
    mine = [q for q in told if any(as_large(q, k) for k in kept)]
    others = [q for q in told if q not in mine]
    if change.kind == "name":
        return bool(mine) and {name for _, _, name in names(part)} - {change.new} <= {n for _, _, n in names(fact)}
    beside = mine or any(rough_stems(name) <= rough_stems(part) for _, _, name in names(rest) if name not in CURRENCIES)
    return bool(beside) and [q.text.lower() for q in others] == [q.text.lower() for q in quantities(change.new)]


def held(lacking: set[str], fact: str) -> bool:
    """Is all that is lacking a small part of a longer name: "Kinsale" of "Pelworth Marina Services of Kinsale"."""
    found = [rough_stems(name) for _, _, name in names(fact)]
    gone = {word for name in lacking for word in rough_stems(name)}
    return all(any(one in name and len(name - gone) >= MOST * len(name) for name in found) for one in gone)
