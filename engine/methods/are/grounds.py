"""What stands for a number, date or name that is put in, where a small verifier doubts the edited fact.

In this order: what stands beside it in the sentence stands beside it in the fact (`pinned.py`); the fact's number is in
no passage, and the sentence has its digits in another order; the sentence holds most other numbers and names of the
fact; it holds most words of the fact, and the verifier speaks for the edited fact more than for the fact. No paper's
method: a large language model does this in ARE, appendix A.4.
"""

from __future__ import annotations

import re

from engine.methods.are.anchor import Anchor, Others
from engine.methods.are.differences import Replacement, apply
from engine.methods.are.gaps import missing
from engine.methods.are.names import names
from engine.methods.are.pinned import held, pinned
from engine.methods.are.quantities import CURRENCIES, months, quantities
from engine.methods.are.rivals import in_other_order
from engine.methods.are.roles import governor
from engine.methods.are.values import Evidence

LEAST = 0.5  # worth of the anchor from which what is pinned is put in
NEARLY = 0.65  # worth of the anchor from which its sentence bears the edited fact out beside a doubtful verifier
FULL = 3  # numbers, months and names from which a sentence that holds so many of a fact's speaks of it
_SINCE = re.compile(r"\b(\w+) (?:hour|day|week|month|year)s? (?:later|earlier)\b")  # since what another sentence says
COUNTED = ("number", "date", "comparison")  # kinds of which words alone can tell whether the sentence has them


def grounds(fact: str, change: Replacement, evidence: Evidence, anchor: Anchor, others: Others, better: bool) -> str:
    """Why the edited fact stands though the verifier doubts it; empty where nothing stands for it.

    `better`: the verifier speaks for the edited fact more than for the fact.
    """
    edited, sentence = apply(fact, [change]), evidence.text[anchor.start : anchor.end]
    left = set(missing(edited, f"{evidence.title}\n{evidence.text}")) - set(_SINCE.findall(fact))
    if pinned(fact, change, sentence) and anchor.worth >= LEAST and held(left, edited):
        return "the sentence has what was put in beside what stands beside it in the fact"
    told = full(fact, change, f"{evidence.title}\n{sentence}")
    if left and (change.kind not in COUNTED or not told or left & others.nowhere):
        return ""  # a name that other passages have may be left out where the sentence has so much else
    if change.kind == "name" and _behind_the_same(fact, change, sentence) and full(fact, change, sentence):
        return "the sentence has it behind the same word, with the other numbers and names of the fact"
    if change.kind not in COUNTED:
        return ""
    if miscopied(fact, change, others):
        return "no passage has the number, and the sentence has its digits in another order"
    if told or (anchor.worth >= NEARLY and better):
        return f"one sentence holds {anchor.share:.0%} of its words and {'most' if left else 'all'} numbers and names"
    return ""


def miscopied(fact: str, change: Replacement, others: Others) -> bool:
    """Is a long number that stands in no passage replaced by one of the same digits in another order."""
    old = fact[change.start : change.end]
    return change.kind == "number" and old in others.nowhere and in_other_order(old, change.new)


def _behind_the_same(fact: str, change: Replacement, sentence: str) -> bool:
    """Does the name that is put in stand behind the preposition that the replaced one stands behind."""
    role = governor(fact, change.start)
    return bool(role) and any(name == change.new and governor(sentence, at) == role for at, _, name in names(sentence))


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
