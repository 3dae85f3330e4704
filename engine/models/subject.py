"""The parts of a text that bear on a claim: rows of a table, or its subject's sentences if its number is in others.

A small model does not bind a number to its subject: "Adults pay 60 euros" is borne out for it by "Adults pay 90 euros.
Seniors pay 60 euros." Of the sentence on adults alone it is not. So a verifier reads that one alone. No paper's method.
Left out: names, and numbers of another part of the sentence (methods/are/guards.py).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import pairwise

from engine.core.text import Span, sentences, stems
from engine.english.notation import values
from engine.english.pronouns import opens_with_pronoun
from engine.models.tables import readings, tables, without_other_rows
from engine.models.verdicts import WINDOW_WORDS


def read_for(claim: str, text: str, words: int = WINDOW_WORDS) -> list[tuple[Span, str]]:
    """The parts of a text that a verifier reads for a claim, with what is read there, about `words` words at most."""
    alone = [] if tables(text) else subject_sentences(claim, text)
    return [(span, text[slice(*span)]) for span in alone] or readings(claim, text, words)


def about(claim: str, text: str) -> str:
    """The text without the rows of its tables, or the sentences, that the claim is not about.

    >>> about("Adults pay 60 euros.", "Adults pay 90 euros. Seniors pay 60 euros.")
    'Adults pay 90 euros.'
    """
    if tables(text):
        return without_other_rows(claim, text)
    return "\n".join(text[slice(*span)] for span in subject_sentences(claim, text)) or text


def on_subject(words: Collection[str], text: str, share: float) -> list[Span]:
    """Spans of the sentences that hold most of these stems; none where they hold less than `share` of them."""
    spans = sentences(text)
    return [spans[place] for place in holding_most(words, [text[slice(*span)] for span in spans], share)]


def holding_most(words: Collection[str], parts: Sequence[str], share: float) -> list[int]:
    """Places of the parts that hold most of these stems; none where they hold less than `share` of them, or of none.

    >>> holding_most({"adult", "pay"}, ["Adults pay 90", "Seniors pay 60"], 0.5)
    [0]
    """
    held = [len(plain_stems(part).intersection(words)) for part in parts]
    most = max(held, default=0)
    return [place for place, count in enumerate(held) if count == most >= share * len(words) > 0]


def with_pronouns(subject: Collection[Span], text: str) -> set[Span]:
    """These sentences, and those next to one of them where a pronoun opens the later of the two, and so on."""
    found = set(subject)
    for one, other in pairwise(sentences(text)):
        if not found.isdisjoint((one, other)) and opens_with_pronoun(text[slice(*other)]):
            found |= {one, other}
    return found


def subject_sentences(claim: str, text: str) -> list[Span]:
    """Spans of the sentences on the claim's subject; empty where they have a number of its own, or the text lacks it.

    They share most words with the claim, half of them at least, and have another number of the same unit. A claim that
    has one of their numbers in digits may put together what several sentences say.

    >>> text = "Adults pay 90 euros. Seniors pay 60 euros."
    >>> [text[a:b] for a, b in subject_sentences("Adults pay 60 euros.", text)]
    ['Adults pay 90 euros.']
    >>> subject_sentences("Adults pay 90 euros.", text), subject_sentences("Adults pay 30 euros.", text)
    ([], [])
    """
    mine = values(claim)
    subject = on_subject(plain_stems(claim), text, 0.5) if mine else []
    near = with_pronouns(subject, text)
    theirs = {value for span in subject for value in values(text[slice(*span)])}
    for value in () if values(claim, digits=True) & theirs else mine - theirs:
        places = [span for span in sentences(text) if value in values(text[slice(*span)])]
        rival = any(unit == value[1] for _, unit in theirs)
        if places and rival and near.isdisjoint(places):
            return subject
    return []


@lru_cache(maxsize=8192)  # every claim of an answer is compared with the same sentences
def plain_stems(text: str) -> frozenset[str]:
    """Stems of the words that are not numbers."""
    return frozenset(word for word in stems(text) if not any(c.isdigit() for c in word))
