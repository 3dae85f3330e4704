"""The values of a decomposition: an answer as clauses, verbatim, and their atomic facts (ARE, section 4.1.2).

Offsets are characters into the answer.
"""

from __future__ import annotations

from engine.core.values import Value


class Piece(Value, frozen=True):
    """`length` characters of a fact from `fact` on are the answer's from `answer` on, copied."""

    fact: int
    answer: int
    length: int


class Fact(Value, frozen=True):
    """An atomic fact; `pieces` say which of its characters stand in the answer, `made_by` who made it.

    `fallback` is True where a language model's reply could not be parsed and the rules stepped in.
    """

    text: str
    made_by: str
    pieces: tuple[Piece, ...] = ()
    fallback: bool = False


class Clause(Value, frozen=True):
    """A molecular clause: the answer's characters [start, end), verbatim, and its facts."""

    start: int
    end: int
    text: str
    facts: tuple[Fact, ...] = ()


class Exchange(Value, frozen=True):
    """One question to a language model, its raw reply, and whether it could be parsed.

    `probabilities` are the shares of the allowed answers where their likelihood decided; the reply is then what was
    written before, if anything.
    """

    step: str
    prompt: str
    reply: str
    parsed: bool
    probabilities: dict[str, float] = {}


class Decomposition(Value, frozen=True):
    """An answer as clauses in order; `fallbacks` counts the replies that the rules stood in for.

    `text`, where not empty, stands for the answer: its facts joined, each its own clause (ARE without molecular
    clauses); every offset is then into it.
    """

    clauses: tuple[Clause, ...]
    made_by: str
    fallbacks: int = 0
    exchanges: tuple[Exchange, ...] = ()
    text: str = ""
