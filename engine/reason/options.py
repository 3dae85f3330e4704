"""The problem x with its options, and which option a reply names.

RAISE asks for "the final answer is (X)" (figures 8, 10 and 15). Nothing is guessed from the rest of a reply that names
no option, or one that does not exist: a model that scores is asked for one (solve.py), else the reply counts as wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase

from engine.errors import RecordError
from engine.types import Value

_STATED = re.compile(r"\banswer(?:\s+is|\s*:)[\s:*_]*(?=(?P<said>[^\n]{0,500}))", re.IGNORECASE)
_LETTER = re.compile(
    r"(?:\\boxed\{|\\text\{|[\s*_$])*"
    r"(?:[(\[]\s*(?P<bracketed>[A-Za-z])\s*[)\]]|(?P<bare>[A-Z])(?=[\s*_.,;:})$]*$|[).:,}]))"
)


class Problem(Value, frozen=True):
    """A question, with its options where it is multiple choice."""

    question: str
    options: tuple[str, ...] = ()

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters of the options."""
        return tuple(letter(index) for index in range(len(self.options)))

    @property
    def text(self) -> str:
        """The question and a line an option, as prompts show it.

        >>> Problem(question="Which?", options=("this", "that")).text
        'Which?\\n(A) this\\n(B) that'
        """
        lines = (f"({mark}) {option}" for mark, option in zip(self.letters, self.options, strict=True))
        return "\n".join((self.question, *lines))


def letter(index: int) -> str:
    """A for 0; raise `RecordError` past Z."""
    if index >= len(ascii_uppercase):
        raise RecordError(f"A problem can have {len(ascii_uppercase)} options. Leave some out.")
    return ascii_uppercase[index]


def parse_choice(reply: str, options: Sequence[str]) -> int | None:
    """The index of the option that the reply states last; None where it states none of them.

    >>> parse_choice("So the final answer is **(B)**.", ("this", "that")), parse_choice("It is B, or A.", ("x", "y"))
    (1, None)
    """
    found = None
    for match in _STATED.finditer(reply):
        said = _option(match["said"], options)
        found = said if said is not None else found
    return found


def _option(said: str, options: Sequence[str]) -> int | None:
    """The option that the words after "answer is" name, by letter or by its own whole text."""
    match = _LETTER.match(said)
    if match:
        index = ascii_uppercase.index((match["bracketed"] or match["bare"]).upper())
        return index if index < len(options) else None
    bare = _plain(said)
    same = [index for index, option in enumerate(options) if _plain(option) == bare]
    return same[0] if len(same) == 1 else None


def _plain(text: str) -> str:
    """Without the marks around it, and in one case."""
    return text.strip(" \t*_()[].").casefold()


def stated_answer(reply: str) -> str:
    """The words after the last "the final answer is" of an open reply, else the whole reply.

    >>> stated_answer("Water expands. The final answer is: ice floats.")
    'ice floats.'
    """
    found = re.split(r"final answer is[\s:*_]*", reply, flags=re.IGNORECASE)
    return found[-1].strip(" *_\n") or reply.strip()
