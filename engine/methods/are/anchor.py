"""The evidence sentence closest to a fact, by word counts: an aid to the verifier.

A small entailment model sees that a passage and a fact differ, not well where. The sentence that holds most of the
fact's content words, rare ones counting more, says what the passage has in place of a number or name; a passage none of
whose sentences holds enough of them speaks of something else. A passage that the answer itself cites comes first where
two hold alike. No paper's method: a large language model does this in ARE, appendices A.3 and A.4.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from engine.core.text import sentences
from engine.english.pronouns import opens_with_pronoun
from engine.methods.are.names import is_named, kind, names, opening_name
from engine.methods.are.quantities import in_other_order
from engine.methods.are.shared_words import WORD, missing, rough_stems
from engine.methods.are.values import Evidence
from engine.models.subject import about

SPEAKS = 0.4  # share of a fact's words from which a sentence speaks of it
AS_NEAR = 0.05  # shares of words within which two sentences speak of a fact alike
GONE = 0.4  # what a word of a lacking number or name counts against a sentence: it may be what is wrong in the fact
OUTER = 0.4  # what a word of a label counts that is in front of another label
_QUALIFYING = ("New", "Old", "North", "South", "East", "West", "Saint", "St", "San", "Great", "Upper", "Lower")
CITED = 0.15  # what a passage that the clause cites counts more, in shares of words


@dataclass(frozen=True)
class Anchor:
    """Characters [start, end) of `considered[evidence]`, the sentence that holds most of a fact's words there.

    `share` in [0, 1] of the content words, by weight, those of `lacking` counted at `GONE` of theirs; `lacking` are
    numbers and names of the fact that the whole passage lacks, title included; `cited`: its clause cites the passage;
    `named` is where the sentence before starts where this one opens with a pronoun, else `start`; `foreign` is the name
    that opens the fact where another passage has it and holds as much of the fact, and this one lacks it and more: it
    seems to speak of another thing.
    """

    evidence: int
    start: int
    end: int
    share: float
    lacking: tuple[str, ...]
    cited: bool
    named: int = 0
    foreign: str = ""

    @property
    def worth(self) -> float:
        """The words by which sentences are compared."""
        return self.share + CITED * self.cited


@dataclass(frozen=True)
class Others:
    """The words of the other passages that an edit must respect.

    `may_go`: numbers and names of the fact that no other passage that speaks of it holds; `nowhere`: those that none at
    all holds; `dated`: the parts of all passages that name a day (`event_order.py`); `texts`: all passages, each with
    its title; `clause`: all that the fact's clause says.
    """

    may_go: frozenset[str]
    nowhere: frozenset[str]
    texts: tuple[str, ...]
    clause: str
    dated: tuple[str, ...]


def others(
    anchor: Anchor, near: Sequence[Anchor], texts: tuple[str, ...], clause: str, dated: tuple[str, ...] = ()
) -> Others:
    """The words of the passages in `near`, besides those of `anchor`."""
    nowhere = frozenset.intersection(*(frozenset(one.lacking) for one in near))
    return Others(contested(anchor, near), nowhere, texts, clause, dated)


def anchors(fact: str, considered: Sequence[Evidence], cited: Collection[int] = ()) -> list[Anchor]:
    """The anchor of each passage, the best first; `cited` are numbers of case passages."""
    texts = [f"{one.title}\n{one.text}" for one in considered]
    weights = _weights(fact, texts)
    full = _given_in_full(fact, tuple(texts))
    found = [_anchor(fact, place, one, weights, cited, full) for place, one in enumerate(considered)]
    if name := opening_name(fact):
        there, own = [is_named(name, text) for text in texts], rough_stems(name)
        most = max((one.worth for one in found if there[one.evidence]), default=-1.0)
        apart = [not there[one.evidence] and one.worth <= most for one in found]
        found = [replace(one, foreign=name) if apart[one.evidence] and _lacks_more(one, own) else one for one in found]
    return sorted(found, key=lambda anchor: (-anchor.worth, anchor.evidence))


def _given_in_full(fact: str, texts: tuple[str, ...]) -> list[str]:
    """The fact's names of several words that a text gives, each word of no other name and no place of the texts.

    Without "New York", which is not known by "York".
    """
    said = (name for _, _, name in names(fact) if " " in name and name.split()[0] not in _QUALIFYING)
    given = [name for name in said if any(name in text for text in texts)]
    theirs = {other for text in texts for _, _, other in names(text) if " " in other} if given else ()

    def is_clear(name: str) -> bool:
        shared = any(other != name and {*other.split()} & {*name.split()} for other in theirs)
        return not shared and not any(kind(part, texts) == "place" for part in name.split())

    return list(filter(is_clear, given))


def _lacks_more(anchor: Anchor, name: frozenset[str]) -> bool:
    """Does the passage lack a number or name of the fact that is not part of this name, which alone may be wrong."""
    return any(not rough_stems(one) <= name for one in anchor.lacking)


def closest(words: str, one: Evidence) -> Anchor:
    """The anchor of a passage on its own, to be quoted; a word counts more the fewer of its sentences hold it."""
    parts = [one.text[start:end] for start, end in sentences(one.text)]
    return _anchor(words, 0, one, _weights(words, parts), ())


def on_fact(fact: str, one: Evidence) -> str:
    """Title and text of a passage, without the sentences, or rows of a table, that the fact is not about."""
    return f"{one.title}\n{about(fact, one.text)}"


def _weights(fact: str, texts: Sequence[str]) -> dict[str, float]:
    """The weight of each word of the fact, by how few of the texts hold it.

    Of the labels in front of it ("Dosage for adults: Severe: 875 mg") words that no text holds are left out, and words
    of a label in front of another count less: the last one says which of several values it is.

    >>> set(_weights("Dose: Severe: 875 mg", ["Severe cases take 500 mg."])) == rough_stems("severe 875 mg")
    True
    """
    held = Counter(word for text in texts for word in rough_stems(text))
    labels, _, said = fact.rpartition(": ")
    label = labels.rpartition(": ")[2]
    own, near = rough_stems(said), rough_stems(f"{label} {said}")
    words = own | {word for word in rough_stems(labels) if word in held or word[0].isdigit()}
    weight = {word: math.log(1 + len(texts) / held.get(word, 0.5)) for word in words}
    return {word: value * (1.0 if word in near else OUTER) for word, value in weight.items()}


def contested(anchor: Anchor, near: Sequence[Anchor]) -> frozenset[str]:
    """The numbers and names that the anchor's passage lacks and no sentence that says as much of the fact has.

    A sentence whose passage lacks a number or name of the fact that this one holds says less of it.
    """
    alike = [other for other in near if other is not anchor and other.worth > anchor.worth - AS_NEAR]
    others = [other for other in alike if set(other.lacking) <= set(anchor.lacking)]
    return frozenset(name for name in anchor.lacking if all(name in other.lacking for other in others))


def _named(text: str, spans: Sequence[tuple[int, int]], best: tuple[int, int]) -> int:
    """Where the sentence before starts, which says who "she" is, if a pronoun opens this one; else where this does."""
    before = [start for start, end in spans if end <= best[0]]
    if not before or not opens_with_pronoun(text[slice(*best)]) or "\n" in text[before[-1] : best[0]].strip():
        return best[0]
    return before[-1]


def _anchor(
    fact: str, place: int, one: Evidence, weights: dict[str, float], cited: Collection[int], full: Sequence[str] = ()
) -> Anchor:
    """The passage's anchor; it has a name of `full`, which another passage gives, also by a part of it."""
    lacking = missing(fact, on_fact(fact, one))
    if full and lacking:
        known = [name for name in full if is_named(name, f"{one.title}\n{one.text}")]
        rest = WORD.findall(functools.reduce(lambda text, name: text.replace(name, " "), known, fact))
        lacking = tuple(word for word in lacking if word in rest or not any(word in name.split() for name in known))
    gone = {word for name in lacking for word in rough_stems(name)}
    asked = {word: weight for word, weight in weights.items() if word not in gone}
    total = sum(asked.values()) + GONE * (sum(weights.values()) - sum(asked.values()))
    title = rough_stems(one.title)

    def share(span: tuple[int, int]) -> float:
        here = rough_stems(one.text[slice(*span)]) | title
        held = sum(weight for word, weight in asked.items() if word in here)
        numbers = [word for word in here if word[0].isdigit()]
        miscopied = [word for word in gone if any(in_other_order(word, other) for other in numbers)]
        known = sum(weights.get(word, 0.0) for word in miscopied)  # counts like a word that is there
        return (held + known) / (total + (1 - GONE) * known) if total else 0.0

    spans = sentences(one.text) or [(0, len(one.text))]
    best = max(spans, key=share)
    return Anchor(
        evidence=place,
        start=best[0],
        end=best[1],
        share=share(best),
        lacking=lacking,
        cited=one.number is not None and one.number in cited,
        named=_named(one.text, spans, best),
    )
