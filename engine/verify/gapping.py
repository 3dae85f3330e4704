"""Clauses whose verb is said once: "Five were made in Cork, three in Mallow and two in Youghal"."""

from __future__ import annotations

from itertools import pairwise

from engine.models.alignment import NUMBER_WORDS
from engine.verify.phrases import Tokens, joins, trimmed
from engine.verify.tagging import Token, finite


def with_the_verb(clause: Tokens) -> list[Tokens]:
    """The clause and its remnants as clauses of their own, the verb copied; the clause alone where nothing is gapped.

    A remnant is a bare number and a phrase that opens with a preposition of the predicate; the subject has a number,
    too.
    """
    verb = next((i for i, token in enumerate(clause) if finite(token)), None)
    if verb is None or not any(_number(token) for token in clause[:verb]):
        return [clause]
    starts = [i + 1 for i in range(verb + 1, len(clause) - 2) if _remnant(clause, i, verb)]
    if not starts:
        return [clause]
    result = [trimmed(clause[: starts[0]])]
    for start, end in pairwise([*starts, len(clause)]):
        behind = clause[start + 1]
        shared = next(i for i in range(verb + 1, starts[0]) if clause[i].low == behind.low)
        result.append([clause[start], *clause[verb:shared], *trimmed(clause[start + 1 : end])])
    return result


def _remnant(clause: Tokens, i: int, verb: int) -> bool:
    number, behind = clause[i + 1], clause[i + 2]
    parallel = behind.tag == "prep" and any(token.low == behind.low for token in clause[verb:i])
    return clause[i].tag in (",", "and") and not joins(clause, i) and _number(number) and parallel


def _number(token: Token) -> bool:
    return token.tag == "num" or token.low in NUMBER_WORDS
