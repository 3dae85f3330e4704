"""Lists taken apart: a fact for each of "A, B and C", with what stands before and behind the list."""

from __future__ import annotations

from engine.methods.are.phrases import Tokens, denied, joins
from engine.methods.are.tagging import finite


def distributed(fact: Tokens) -> list[Tokens]:
    """A fact a list item: the first list of the fact is taken apart, then what is left of it."""
    for i, token in enumerate([] if denied(fact) else fact):
        if token.tag == "and" and token.low in ("and", "but", "as well as") and 0 < i < len(fact) - 1:
            items = _items(fact, i)
            if items and _two_clauses(fact, i, items):
                return [*distributed(fact[: i - (fact[i - 1].tag == ",")]), fact[i + 1 :]]
            if items:
                return _one_each(fact, items)
    return [fact]


def _two_clauses(fact: Tokens, at: int, items: list[tuple[int, int]]) -> bool:
    """Is the last "item" the subject of a verb of its own, behind a comma: "paid Ann, and her takings agree"."""
    start, end = items[-1]
    end = next((i for i in range(end, len(fact)) if fact[i].tag not in ("noun", "num", "det", "pron", "and")), at)
    opened = start == at + 1 < end and finite(fact[end]) and fact[at - 1].tag == ","
    return opened and any(finite(t) for t in fact[: items[0][0]])


def _one_each(fact: Tokens, items: list[tuple[int, int]]) -> list[Tokens]:
    """The fact with each item in turn. Lists behind a verb are combined with every item, others with the last alone."""
    prefix, rest = fact[: items[0][0]], fact[items[-1][1] :]
    tails = distributed(rest) if rest else [[]]
    crossed = len(tails) == 1 or any(finite(t) for t in rest)
    result: list[Tokens] = []
    for start, end in items:
        own = tails if crossed or end == items[-1][1] else [[]]
        result.extend([*prefix, *fact[start:end], *tail] for tail in own)
    return result


def _items(fact: Tokens, at: int) -> list[tuple[int, int]]:
    """Spans of the items of the list around the conjunction at `at`; empty where there is none to be taken apart."""
    if at > 0 and any(t.low in ("between", "both") for t in fact[max(0, at - 6) : at]):
        return []
    end = _item_end(fact, at + 1)
    if end == at + 1 or fact[at + 1].low == "not":
        return []
    kind = fact[at + 1].tag
    before = at - 1 if fact[at - 1].tag == "," else at
    middle = _between_commas(fact, before)
    if middle:
        shared = {t.low for a, b in middle for t in fact[a:b] if t.tag == "prep"}
        first_end = middle[0][0] - 1
        start = _item_start(fact, first_end, fact[middle[0][0]].tag, shared)
        spans = [(start, first_end), *middle, (at + 1, end)]
    else:
        start = _item_start(fact, before, kind)
        if start and end < len(fact) - 1 and fact[end].tag in ("prep", "to") and fact[end].low == fact[start - 1].low:
            start, end = _phrase_with_of(fact, start - 1), _item_end(fact, end + 1)  # "A with x and B with y"
        spans = [(start, before), (at + 1, end)]
    return spans if all(a < b for a, b in spans) else []


def _phrase_with_of(fact: Tokens, end: int) -> int:
    """Where the noun phrase that ends at `end` starts, "of" phrases among it."""
    start = end
    while start > 0 and (fact[start - 1].tag in ("noun", "num", "det") or fact[start - 1].low in ("of", "about", "'s")):
        start -= 1
    return start


def _between_commas(fact: Tokens, end: int) -> list[tuple[int, int]]:
    """The items of a list that stand whole between commas, up to `end`; empty for a list of two."""
    commas = [i for i in range(end) if fact[i].tag == "," and not joins(fact, i)]
    while commas and any(finite(t) for t in fact[commas[0] : end]):
        commas.pop(0)
    return list(zip((i + 1 for i in commas), [*commas[1:], end], strict=True)) if commas else []


def _item_end(fact: Tokens, start: int) -> int:
    end = start
    if fact[start].tag in ("prep", "to"):
        end += 1
    while (end < len(fact) and fact[end].tag in ("noun", "num", "det", "part", "adv", "ing")) or _inner(
        fact, start, end
    ):
        end += 1
    return end


def _inner(fact: Tokens, start: int, end: int) -> bool:
    """A mark or "of" inside an item."""
    if not start < end < len(fact) - 1:
        return False
    return fact[end].low == "of" or (fact[end].text in "-'’:&$" and fact[end].tag == ".")


def _item_start(fact: Tokens, end: int, kind: str, shared: set[str] = frozenset()) -> int:  # type: ignore[assignment]
    """Where the item that ends at `end` starts: at the same kind of word as its neighbour, else behind what governs it.

    `shared` are prepositions that the other items hold too: the item may hold one.
    """
    if kind in ("part", "ing", "verb"):
        found = next((i for i in range(end - 1, max(-1, end - 6), -1) if fact[i].tag == kind), end)
        return end if found and fact[found - 1].tag in ("det", "num") else found  # "a boiling tube and using 20 mL"
    if kind in ("prep", "to"):
        return next((i for i in range(end - 1, -1, -1) if fact[i].tag == kind or finite(fact[i])), end)
    start = end
    while start > 0:
        token = fact[start - 1]
        if token.low in shared and start < end:
            return _item_start(fact, start - 1, "noun")
        inner = token.low == "of" and start > 1 and fact[start - 2].tag == "noun" and start < end
        if token.tag == "det":
            start -= 1 if kind == "det" else 0
            if not (kind == "det" and start > 1 and fact[start - 1].low == "of" and fact[start - 2].tag == "noun"):
                return start
        elif token.tag not in ("noun", "num", "part", "ing") and token.text not in "-'’" and not inner:
            return start
        else:
            start -= 1
    return start
