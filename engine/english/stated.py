"""Does a sentence state a fact in the fact's own words.

The fact's words are in the sentence in the same order, and only modifiers are left out: each word keeps the word that
it depends on, up to the main verb, and none of the words left out denies, limits or makes a condition. Articles do not
count; the parts between semicolons are sentences. Without the parser nothing is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from engine.english.parser import parse
from engine.english.pronouns import opens_with_pronoun
from engine.english.statements import first_conjunct
from engine.english.words import LIMITS

if TYPE_CHECKING:
    from spacy.tokens import Token

_ARTICLES = ("the", "a", "an")
_AUXILIARIES = ("aux", "auxpass")
_SHARED = ("nsubj", "nsubjpass", *_AUXILIARIES)  # what a later verb of a series has from the first one


def states(sentence: str, fact: str) -> bool:
    """Whether `sentence` says `fact` in its own words; never for a fact about a pronoun.

    >>> text = "Ada Quill, a pilot, flew to Oslo on Monday and wrote to Bo."
    >>> [states(text, f"Ada Quill {said}") for said in ("flew to Oslo", "wrote to Bo", "flew to Bo")]
    [True, True, False]
    """
    wanted = _words(fact)
    if len(wanted) < 3 or opens_with_pronoun(fact):
        return False
    return any(_state(_words(part), wanted) for part in sentence.split(";"))


def _state(found: Sequence[Token], wanted: Sequence[Token]) -> bool:
    """Whether the wanted words are among those found, and whole."""
    forwards = _places([t.lower_ for t in found], [t.lower_ for t in wanted])
    if forwards is None:
        return False
    backwards = _places([t.lower_ for t in found[::-1]], [t.lower_ for t in wanted[::-1]]) or []
    ways = ([found[i] for i in forwards], [found[::-1][i] for i in backwards])
    return any(_is_whole(way, found) for way in ways)


def _words(text: str) -> list[Token]:
    """The tokens without marks, blanks and articles."""
    return [t for t in parse(text) or () if not (t.is_punct or t.is_space or t.lower_ in _ARTICLES)]


def _places(words: Sequence[str], wanted: Sequence[str]) -> list[int] | None:
    """Where the wanted words are, in order, each at its first place; None where one is not."""
    places, at = [], -1
    for word in wanted:
        at = next((i for i in range(at + 1, len(words)) if words[i] == word), -1)
        if at < 0:
            return None
        places.append(at)
    return places


def _is_whole(kept: Sequence[Token], words: Iterable[Token]) -> bool:
    """Whether the words left out are modifiers that take nothing back."""
    held = {token.i for token in kept}
    series = {first_conjunct(token).i for token in kept}
    gone = [token for token in words if token.i not in held]
    if any(t.lower_ in LIMITS or t.dep_ == "neg" for t in gone):
        return False
    if any(t.head.i in held and (t.dep_ in _AUXILIARIES or t.head.like_num) for t in gone):
        return False
    return all(_hangs_on(token, held, series) for token in kept)


def _hangs_on(token: Token, held: set[int], series: set[int]) -> bool:
    """Whether the word that a kept one depends on is kept too, or the one is the main verb or in a series with it."""
    first = first_conjunct(token)
    if first.head == first or first.head.i in held:
        return True
    return token.dep_ in _SHARED and first_conjunct(token.head).i in series
