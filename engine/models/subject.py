"""The parts of a text that bear on a claim: rows of a table, or its subject's sentences if its number is in others.

A small model does not bind a number to its subject: "Adults pay 60 euros" is borne out for it by "Adults pay 90 euros.
Seniors pay 60 euros." Of the sentence on adults alone it is not. So a verifier reads that one alone. No paper's method.
Left out: numbers of other parts of one sentence. For names see methods/are/guards.py.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

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
    spans = sentences(text) if words else ()
    held = [len(plain_stems(text[slice(*span)]).intersection(words)) for span in spans]
    most = max(held, default=0)
    return [span for span, count in zip(spans, held, strict=True) if count == most >= share * len(words)]


def goes_with(one: Span, subject: Collection[Span], text: str) -> bool:
    """Whether a sentence is one of these, or next to one where a pronoun opens the later of the two."""
    spans = sentences(text)
    place = spans.index(one)
    after = place + 1 < len(spans) and spans[place + 1] in subject and _continues(text, spans[place + 1])
    before = place > 0 and spans[place - 1] in subject and _continues(text, one)
    return one in subject or before or after


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
    theirs = {value for span in subject for value in values(text[slice(*span)])}
    for value in () if values(claim, digits=True) & theirs else mine - theirs:
        places = [span for span in sentences(text) if value in values(text[slice(*span)])]
        rival = any(unit == value[1] for _, unit in theirs)
        if places and rival and not any(goes_with(span, subject, text) for span in places):
            return subject
    return []


def _continues(text: str, span: Span) -> bool:
    return opens_with_pronoun(text[slice(*span)])


@lru_cache(maxsize=8192)  # every claim of an answer is compared with the same sentences
def plain_stems(text: str) -> frozenset[str]:
    """Stems of the words that are not numbers."""
    return frozenset(word for word in stems(text) if not any(c.isdigit() for c in word))
