"""Does a sentence state a fact in the fact's own words.

The fact's words are in the sentence in the same order, and only modifiers are left out: each word keeps the word that
it depends on, up to the main verb, and none of the words left out denies, limits or makes a condition, or narrows what
is counted or compared ("most parents who answered", "the second largest city", "partly covered"). Articles do not
count; the parts between semicolons are sentences. Without the parser nothing is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from engine.english.parser import parse
from engine.english.pronouns import opens_with_pronoun
from engine.english.tree import VERBAL, first_conjunct
from engine.english.words import COUNTS, LIMITS

if TYPE_CHECKING:
    from spacy.tokens import Token

_ARTICLES = ("the", "a", "an")
_AUXILIARIES = ("aux", "auxpass")
_SHARED = ("nsubj", "nsubjpass", *_AUXILIARIES)  # what a later verb of a series has from the first one


def states(sentence: str, fact: str) -> bool:
    """Whether `sentence` says `fact` in its own words; never for a fact about a pronoun.

    >>> text = "Ada Quill, a pilot, flew to Oslo on Monday and wrote to Bo, and Cleo drove home."
    >>> [states(text, f"Ada Quill {said}") for said in ("flew to Oslo", "wrote to Bo", "flew to Bo", "drove home")]
    [True, True, False, False]
    """
    wanted = _words(fact)
    if len(wanted) < 3 or opens_with_pronoun(fact):
        return False
    found = [_words(part) for part in sentence.split(";")]
    ways = ((_picked(words[::way], wanted[::way]), words) for words in found for way in (1, -1))
    return any(kept and _is_whole(kept, words) for kept, words in ways)


def _words(text: str) -> list[Token]:
    """The tokens without marks, blanks and articles."""
    return [t for t in parse(text) or () if not (t.is_punct or t.is_space or t.lower_ in _ARTICLES)]


def _picked(words: Iterable[Token], wanted: Sequence[Token]) -> list[Token]:
    """The wanted ones of the words, in order, each at its first place; empty where one is not there."""
    rest = iter(words)
    kept = [token for word in wanted for token in islice((t for t in rest if t.lower_ == word.lower_), 1)]
    return kept if len(kept) == len(wanted) else []


def _is_whole(kept: Sequence[Token], words: Iterable[Token]) -> bool:
    """Whether the words left out are modifiers that take nothing back."""
    held = {token.i for token in kept}
    series = {first_conjunct(token).i for token in kept}
    gone = [token for token in words if token.i not in held]
    if any(t.lower_ in LIMITS or t.dep_ == "neg" for t in gone):
        return False
    if any(t.head.i in held and (t.dep_ in _SHARED or t.head.like_num or _narrows(t)) for t in gone):
        return False
    return all(_hangs_on(token, held, series) for token in kept)


def _narrows(token: Token) -> bool:
    """Does the word say how far an adjective or participle holds, or of which ones a number, "all" or "best" holds?"""
    head = token.head
    if token.dep_ == "advmod" and (head.pos_ in ("ADJ", "ADV") or head.dep_ == "amod"):
        return True
    near = [t for t in (head, *head.children) if t != token]
    counted = any(t.tag_ in ("JJS", "RBS") or t.like_num or t.lower_ in COUNTS for t in near)
    return counted and head.pos_ not in VERBAL


def _hangs_on(token: Token, held: set[int], series: set[int]) -> bool:
    """Whether the word that a kept one depends on is kept too, or the one is the main verb or in a series with it."""
    first = first_conjunct(token)
    if first.head == first or first.head.i in held:
        return True
    return token.dep_ in _SHARED and first_conjunct(token.head).i in series
