"""Clauses whose verb is said once: "Five were made in Cork, three in Mallow", "Cork took five for EUR 4, Bray two"."""

from __future__ import annotations

from itertools import pairwise

from engine.methods.are.phrases import Tokens, joins, trimmed
from engine.methods.are.tagging import Tagged, finite
from engine.models.alignment import NUMBER_WORDS


def with_the_verb(clause: Tokens) -> list[Tokens]:
    """The clause and its remnants as clauses of their own, the verb copied; the clause alone where nothing is gapped.

    A remnant is a bare number, or a name with a number, and a phrase that opens with a preposition of the predicate;
    the subject has a number, or the number stands behind the verb.
    """
    verb = next((i for i, token in enumerate(clause) if finite(token)), None)
    if verb is None:
        return [clause]
    named = verb + 1 < len(clause) and _number(clause[verb + 1])  # "Cork took five"
    if not named and not any(_number(token) for token in clause[:verb]):
        return [clause]
    starts = [i + 1 for i in range(verb + 1, len(clause) - 2 - named) if _remnant(clause, i, verb, named)]
    if not starts:
        return [clause]
    result = [trimmed(clause[: starts[0]])]
    for start, end in pairwise([*starts, len(clause)]):
        behind = clause[start + 1 + named]
        shared = next(i for i in range(verb + 1, starts[0]) if clause[i].low == behind.low)
        copied = clause[verb : verb + 1] if named else clause[verb:shared]
        result.append([clause[start], *copied, *trimmed(clause[start + 1 : end])])
    return result


def _remnant(clause: Tokens, i: int, verb: int, named: bool) -> bool:
    """Does a remnant start behind the mark or conjunction at `i`."""
    number, behind = clause[i + 1 + named], clause[i + 2 + named]
    parallel = behind.tag == "prep" and any(token.low == behind.low for token in clause[verb:i])
    opens = clause[i].tag in (",", "and") and not joins(clause, i)
    return opens and _number(number) and parallel and (not named or clause[i + 1].named)


def _number(token: Tagged) -> bool:
    return token.tag == "num" or token.low in NUMBER_WORDS
