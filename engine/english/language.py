"""Whether a text is in another language than English, for which alone facts are split and verifiers are measured.

By stop words, of spaCy for each language: a table or a list has few of any language and counts as English. No paper's
method. Left out: which language it is in another script, and languages that are not among the nine.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module

_LANGUAGES = {
    "da": "Danish",
    "de": "German",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "sv": "Swedish",
}
_QUOTED = re.compile(r"[\"“„«][^\"“”„«»]*[\"”“»]")
_WORD = re.compile(r"[^\W\d_]{2,}")
_SCRIPT = 12  # letters that tell a script: fewer may be symbols of a formula
_LEAST = 3  # words that tell a language
_AHEAD = 0.15  # share of the words by which its stop words are more than those of English


def other_language(text: str) -> str:
    """The language of a text, empty for English and where too few words tell it.

    Only different words in small letters count, outside quotation marks: not "Leonardo da Vinci, Vasco da Gama".

    >>> other_language("Die Brücke wurde 1934 von Anna Weber eröffnet und kostete drei Millionen Mark.")
    'German'
    >>> other_language("The bridge was opened by Anna Weber in 1934."), other_language("Мост открыли в 1934 году.")
    ('', 'another script')
    """
    words = set(_WORD.findall(_QUOTED.sub(" ", text)))
    letters = [letter for letter in text if letter.isalpha()]
    foreign = sum(letter >= "\u0250" for letter in letters)  # before it are the Latin letters, accents too
    if foreign > max(_SCRIPT - 1, len(letters) / 2):
        return "another script"
    told = {code: len(words & _stop_words(code)) for code in ("en", *_LANGUAGES)}
    best = max(_LANGUAGES, key=lambda code: told[code])
    return _LANGUAGES[best] if told[best] - told["en"] >= max(_LEAST, _AHEAD * len(words)) else ""


@cache
def _stop_words(code: str) -> frozenset[str]:
    return frozenset(import_module(f"spacy.lang.{code}.stop_words").STOP_WORDS)
