"""Tokens of a sentence with a word class each, told by word lists, endings and neighbours; no model, no download.

The reading aid of the rule-based decomposition: good enough to find verbs, prepositions, conjunctions and where a noun
phrase starts. Left out: everything that needs meaning (what a prepositional phrase belongs to, nouns used as verbs
outside the lists). English only; in other languages no verb is found and a clause stays whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from engine.english.words import CLASSES, FINITE_AUXILIARIES

# A word or mark of a sentence with its class, and what counts as one word.

Tag = Literal[
    "det", "prep", "pron", "aux", "verb", "ing", "part", "to", "and", "sub", "rel", "adv", "num", "noun", ",", "."
]


@dataclass(frozen=True)
class Tagged:
    """A word or mark with its span in the sentence's text; a word that a rule put in has the span (-1, -1)."""

    text: str
    start: int
    end: int
    tag: Tag

    @property
    def low(self) -> str:
        """Lower case."""
        return self.text.lower()

    @property
    def named(self) -> bool:
        """Starts with a capital."""
        return self.text[0].isupper()


def put_in(text: str, tag: Tag) -> Tagged:
    """A word that is not in the sentence."""
    return Tagged(text, -1, -1, tag)


def finite(token: Tagged) -> bool:
    """Is the token a finite verb or auxiliary."""
    return token.tag in ("aux", "verb")


def joined(found: list[Tagged]) -> list[Tagged]:
    """ "as well as" as one conjunction, "per cent" as one word."""
    for i in range(len(found) - 1):
        if found[i].low == "per" and found[i + 1].low == "cent":
            one = Tagged("per cent", found[i].start, found[i + 1].end, "noun")
            return [*found[:i], one, *joined(found[i + 2 :])]
        if [t.low for t in found[i : i + 3]] == ["as", "well", "as"]:
            one = Tagged("as well as", found[i].start, found[i + 2].end, "and")
            return [*found[:i], one, *joined(found[i + 3 :])]
    return found


_TOKEN = re.compile(
    r"(?:[A-Z]\.){2,}|\d{1,2}:\d\d(?!\d)|\d[\d.,]*\d(?:%|st|nd|rd|th|s)?|\w+(?:[-‐‑'’/&.](?=\w)\w+)*|[^\w\s]",
    re.UNICODE,
)


def tokens(text: str) -> list[Tagged]:
    """The tokens of a sentence in order, each with its class.

    >>> [(t.text, t.tag) for t in tokens("He died in 1982.")]
    [('He', 'pron'), ('died', 'verb'), ('in', 'prep'), ('1982', 'num'), ('.', '.')]
    """
    found: list[Tagged] = []
    matches = list(_TOKEN.finditer(text))
    for index, match in enumerate(matches):
        after = matches[index + 1].group().lower() if index + 1 < len(matches) else ""
        found.append(Tagged(match.group(), match.start(), match.end(), _tag(match.group(), found, after)))
    return _with_a_verb(joined(found))


def _with_a_verb(found: list[Tagged]) -> list[Tagged]:
    """A sentence in which no verb was found gets one where a word has a verb's ending and a verb's place."""
    if any(finite(t) for t in found):
        return found
    for i in range(1, len(found) - 1):
        token, before, after = found[i], found[i - 1], found[i + 1]
        ending = re.fullmatch(r"[a-z]+(?:[^su]s|ed)", token.text) and not before.low.endswith("s")
        if (
            ending
            and before.tag in ("noun", "num", "pron", "adv")
            and after.tag in ("det", "num", "prep", "to", "noun")
        ):
            if after.tag == "noun" and not after.named and not token.text.endswith(("izes", "ises", "ates", "ed")):
                continue
            if token.text.endswith("ed") and after.low == "by":
                continue
            return [*found[:i], Tagged(token.text, token.start, token.end, "verb"), *found[i + 1 :]]
    return found


def _tag(word: str, before: list[Tagged], after: str) -> Tag:
    low = word.lower()
    last = before[-1] if before else None
    if word == ",":
        return ","
    if not any(c.isalnum() for c in word):
        return "noun" if word in "&$€£" else "."
    if low in CLASSES["conjunctions"]:
        return "and"
    if low == "to":
        return "to"
    if low in FINITE_AUXILIARIES:
        return "noun" if word == "May" and (before or after.isdigit()) else "aux"
    if low in ("be", "been", "being"):
        return "part"
    if low in CLASSES["relatives"]:
        return "rel"
    if low == "that":
        return "det" if last is None or last.tag in (",", "prep") else "rel" if last.tag == "noun" else "sub"
    return _open_class(word, low, last, before, after)


def _open_class(word: str, low: str, last: Tagged | None, before: list[Tagged], after: str) -> Tag:
    if low in CLASSES["subordinators"]:
        return "sub"
    if low in CLASSES["determiners"]:
        return "det"
    if low in CLASSES["prepositions"]:
        return "prep"
    if low in CLASSES["pronouns"]:
        return "pron"
    if word[0].isdigit():
        return "num"
    if low in CLASSES["adverbs"] or (
        low.endswith("ly") and low not in CLASSES["not_adverbs"] and len(low) > 4 and word.islower()
    ):
        return "adv"
    if word[0].isupper() and before:
        return "noun"
    return _verbal(low, last, before, after)


def _verbal(low: str, last: Tagged | None, before: list[Tagged], after: str) -> Tag:
    """Verb, participle or noun: by form, then by what stands before."""
    if last is not None and last.low in ("he", "she", "it", "they", "we"):
        return "verb"
    if (low.endswith("ing") and len(low) > 5) or low in ("using", "going", "doing", "lying", "dying"):
        return "noun" if last and last.tag in ("det",) else "ing"
    past = low in CLASSES["irregular_past"] or (low.endswith("ed") and len(low) > 4)
    participle = low in CLASSES["irregular_participles"] or (low.endswith("ed") and len(low) > 4)
    if past or participle:
        return _past(low, last, before, after, past, participle)
    dated = last is not None and bool(re.fullmatch(r"\d{4}", last.text))  # "the sums of May 2024 come to"
    if last is None or (last.tag in ("det", "prep", "num", "and") and not dated and not _verb_before(before)):
        return "noun"
    if last.low.endswith(("'s", "’s")):
        return "noun"
    if low in CLASSES["irregular_present"] or (low.endswith("s") and _stem(low) in CLASSES["regular"]):
        return "verb" if last.tag in ("noun", "pron", "adv", "rel", "and", ",", "num") else "noun"
    plain = low in CLASSES["regular"] or low in CLASSES["irregular_plural"]
    if plain and last.tag in ("pron", "to", "aux", "adv", "rel"):
        return "verb" if last.tag != "aux" else "part"
    if plain and last.tag == "," and after in CLASSES["pronouns"] and len(before) > 2 and not _verb_before(before):
        return "verb"  # "the rules, read in May, make him heir"
    if (
        plain
        and last.tag in ("noun", "num")
        and (last.low.endswith("s") or last.named or dated)
        and not _verb_before(before)
    ):
        return "verb"
    return "noun"


def _past(low: str, last: Tagged | None, before: list[Tagged], after: str, past: bool, participle: bool) -> Tag:
    if last is None:
        return "part"
    if last.tag == "det":
        return "noun"
    auxiliary = any(t.tag == "aux" or t.low in ("be", "been", "being") for t in before[-3:] if t.tag != "adv")
    beside = last.tag in ("aux", "adv", "part")
    if (
        auxiliary
        and participle
        and beside
        and all(t.tag in ("aux", "adv", "part", "pron", "noun", "and") for t in before[-2:])
    ):
        return "part"
    if not past:
        return "part"
    if last.tag in ("pron", "rel", "adv"):
        return "verb" if last.tag != "adv" or not auxiliary else "part"
    if participle and (after == "by" or last.tag in ("prep", ",")):
        return "part"
    if last.tag in ("noun", "num", "."):
        return "part" if participle and _verb_before(before) and after in CLASSES["prepositions"] else "verb"
    return "verb" if last.tag == "and" and _verb_before(before) else "part"


def _verb_before(before: list[Tagged]) -> bool:
    """Is there a finite verb since the last clause boundary: a mark, a subordinator, or ", and" before a subject."""
    for i in range(len(before) - 1, -1, -1):
        token = before[i]
        if token.tag in ("rel", "sub") or token.text in ";:":
            return False
        if token.tag == "and" and 0 < i < len(before) - 1 and before[i - 1].tag == ",":
            return False
        if token.tag in ("aux", "verb"):
            return True
    return False


def _stem(low: str) -> str:
    """The plain form of a word in -s.

    >>> [_stem(w) for w in ("covers", "carries", "reaches")]
    ['cover', 'carry', 'reach']
    """
    if low.endswith("ies"):
        return low[:-3] + "y"
    if low.endswith("es") and low[:-2] in CLASSES["regular"]:
        return low[:-2]
    return low[:-1]
