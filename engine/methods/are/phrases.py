"""Pieces of a tagged sentence that every rule of the decomposition needs: noun phrases, the subject."""

from __future__ import annotations

from dataclasses import replace

from engine.methods.are.tagging import Tagged, finite, put_in

Tokens = list[Tagged]


def phrase_start(body: Tokens, end: int) -> int:
    """Where the noun phrase that ends at `end` starts."""
    start = end
    while start > 0 and _in_phrase(body[start - 1], body[start] if start < end else None):
        start -= 1
        if body[start].tag == "det":
            break
    return start


def _in_phrase(token: Tagged, after: Tagged | None) -> bool:
    if token.tag in ("noun", "num", "det"):
        return True
    linked = token.low in ("of", "de", "von", "van") or token.text in "-'’&"
    return (token.tag in ("part", "ing") and after is not None and after.tag == "noun") or (
        linked and after is not None
    )


def joins(clause: Tokens, i: int) -> bool:
    """Does the comma at `i` belong to a date or a place."""
    if i == 0 or i + 1 >= len(clause):
        return False
    before, after = clause[i - 1], clause[i + 1]
    if before.tag == "num" and after.tag == "num" and len(after.text) == 4 and after.text.isdigit():
        return True
    place = i >= 2 and clause[i - 2].low in ("in", "at", "near", "from", "to") and before.named and after.named
    closed = i + 2 >= len(clause) or clause[i + 2].tag in (",", ".", "and") or finite(clause[i + 2])
    return place and closed and not (i + 2 < len(clause) and clause[i + 2].tag == "and")


def denied(part: Tokens) -> bool:
    """Does "neither" or "nor" deny the words after it: split, a part would say the opposite."""
    return any(token.low in ("neither", "nor") for token in part)


def subject_of(main: Tokens) -> Tokens:
    """The words before the first finite verb; without one, the noun phrase at the end."""
    verb = next((i for i, t in enumerate(main) if finite(t)), None)
    return main[:verb] if verb else main[phrase_start(main, len(main)) :]


def behind_subordinator(main: Tokens) -> Tokens:
    """The last clause of `main` that a subordinator opens, with subject and verb of its own; else all of `main`."""
    for i in range(len(main) - 3, 0, -1):
        own = main[i + 1 :]
        if main[i].tag == "sub" and main[i].low != "that" and not finite(own[0]) and any(map(finite, own)):
            return own
    return main


def relative(segment: Tokens, head: Tokens) -> tuple[Tokens, Tokens]:
    """(subject, predicate) of a relative clause with its head put in.

    "who won" is said of the head, "whose son won" of the head's; "during which Ann won" becomes "Ann won during HEAD",
    "which he bought" "he bought HEAD".
    """
    if segment[0].low == "whose":
        return [*head, put_in("'s", "prep")], segment[1:]
    led = segment[0].tag == "prep"
    rest = segment[2:] if led else segment[1:]
    verb = next((i for i, t in enumerate(rest) if finite(t)), None)
    if segment[led].low not in ("which", "whom", "who", "that") or not verb or (not led and rest[0].tag != "pron"):
        return head, segment[1:] if segment[0].low in ("which", "who", "that") else segment
    if led:
        return rest[:verb], [*rest[verb:], segment[0], *head]
    end = verb + 1
    while end < len(rest) and rest[end].tag in ("part", "adv") and rest[verb].tag == "aux":
        end += 1
    return rest[:verb], [*rest[verb:end], *head, *rest[end:]]


def was(head: Tokens) -> Tagged:
    """ "was" or "were", by the noun that the phrase is about."""
    end = next((i for i, token in enumerate(head) if i and token.tag == "prep"), len(head))
    noun = head[end - 1]
    return put_in("were" if noun.low.endswith("s") and not noun.low.endswith("ss") and not noun.named else "was", "aux")


def apposed(head: Tokens, phrase: Tokens) -> Tokens:
    """The predicate that an apposition makes; of a family ("the Bergs, man and wife") it says both at once."""
    family = len(head) > 1 and head[0].low == "the" and head[-1].named and head[-1].low.endswith("s")
    if family and any(token.tag == "and" for token in phrase):
        return [put_in("are", "aux"), *(replace(t, tag="noun") if t.tag == "and" else t for t in phrase)]
    return [put_in("is", "aux"), *phrase]


def head_of(main: Tokens) -> Tokens:
    """The noun phrase that ends `main`, without its article's modifiers."""
    return main[phrase_start(main, len(main)) :] or main


def trimmed(part: Tokens) -> Tokens:
    """Without marks and conjunctions at its ends."""
    start, end = 0, len(part)
    while start < end and (part[start].tag in (",", "and") or part[start].text in ";:—–"):
        start += 1
    while end > start and (part[end - 1].tag in (",", "and") or part[end - 1].text in ";:—–"):
        end -= 1
    return part[start:end]
