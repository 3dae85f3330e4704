"""A sentence's brackets, and its clauses with a subject and a verb of their own: the splitter's outermost cuts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from engine.methods.are.phrases import Tokens, phrase_start, trimmed, was
from engine.methods.are.tagging import finite, put_in


def brackets(body: Tokens) -> tuple[Tokens, list[Tokens]]:
    """The sentence without brackets, and a fact for each one: its content, stated of the phrase before it."""
    main: Tokens = []
    aside: list[Tokens] = []
    inside: Tokens | None = None
    for token in body:
        if token.text in "([" and inside is None:
            inside = []
        elif token.text in ")]" and inside is not None:
            head = main[phrase_start(main, len(main)) :]
            if head and inside and main is not inside:
                aside.append([*head, was(head) if inside[0].tag == "part" else put_in("is", "aux"), *inside])
            inside = None
        elif inside is not None:
            inside.append(token)
        else:
            main.append(token)
    return [*main, *(inside or [])], aside


def uncleft(clause: Tokens) -> Tokens:
    """ "It was Ann who sold it" as "Ann sold it", "it was in May that Ann sold it" as "Ann sold it in May".

    "It was not Ann who sold it" stays whole: taken apart, a part would say that it was sold by another.
    """
    if [t.low for t in clause[:2]] not in (["it", "was"], ["it", "is"]) or len(clause) < 3:
        return clause
    if clause[2].low == "not":
        bound = [t.tag == "rel" and before.tag != "," for before, t in pairwise(clause)]
        return [clause[0], *(replace(t, tag="noun") if held else t for t, held in zip(clause[1:], bound, strict=True))]
    last = next((i for i, t in enumerate(clause) if i > 2 and t.low in ("who", "that")), len(clause) - 1)
    phrase, rest = clause[2:last], clause[last + 1 :]
    said = phrase[: next((i for i, t in enumerate(phrase) if t.tag == ","), len(phrase))]
    aside = sum(t.tag == "," for t in phrase) % 2  # ", who" adds to what is there
    if not rest or not said or aside or any(map(finite, said)):
        return clause
    if finite(rest[0]):
        named = phrase[0].named or (phrase[0].tag == "det" and phrase[0].low not in ("a", "an"))
        return [*phrase, *rest] if named else clause
    placed = phrase[0].tag == "prep" and any(t.named or t.tag == "num" for t in phrase)
    return [*rest, *phrase] if placed and any(map(finite, rest)) else clause


def independent(body: Tokens) -> list[Tokens]:
    """Clauses with a subject and a verb of their own: cut at ";" and at "and", "but" before subject and verb."""
    cuts = [0]
    for i, token in enumerate(body):
        verb = any(finite(t) for t in body[cuts[-1] : i])
        if token.text == ";":
            cuts.append(i)
        elif token.tag in ("and",) or (token.low in ("while", "whereas", "although", "though") and i):
            comma = i > 0 and body[i - 1].tag == ","
            if verb and _starts_clause(body, i + 1, comma):
                cuts.append(i)
        elif token.tag == "," and verb and _pronoun_clause(body, i + 1):
            cuts.append(i)
    parts = [body[a:b] for a, b in zip(cuts, [*cuts[1:], len(body)], strict=True)]
    return [clean for part in parts if (clean := trimmed(part))]


def _pronoun_clause(body: Tokens, i: int) -> bool:
    return i + 1 < len(body) and body[i].tag == "pron" and body[i].low != "who" and finite(body[i + 1])


def _starts_clause(body: Tokens, i: int, comma: bool) -> bool:
    """Does a clause with its own subject start at `i`: a noun phrase and then a finite verb, not shared with a list."""
    end = i
    while end < len(body) and body[end].tag in ("noun", "num", "det", "pron", "prep", "adv") and end - i < 9:
        end += 1
    if end == i or end >= len(body) or not finite(body[end]) or (body[i].tag in ("prep", "adv") and not comma):
        return False
    return comma or body[i].tag in ("pron", "det") or body[end].tag == "aux"
