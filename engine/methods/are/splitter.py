"""A clause as atomic facts by rules: the decomposition that needs no language model (ARE, section 4.1.2).

Patterns, outermost first: text in brackets, relative clauses, apposition, participial phrases, coordinated predicates
that share their subject, lists ("A, B and C", "thin and short routes") whose items are put into the rest one by one.
Prepositional phrases stay with what they stand behind. A fact that no verb governs falls back to its clause. Left out:
anything that needs a parse or the meaning of words; an instruction and a sentence in which no verb is found stay whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.methods.are.embedded import origins, predicates, taken_apart, titles
from engine.methods.are.independent import brackets, independent, uncleft
from engine.methods.are.lists import distributed
from engine.methods.are.phrases import Tokens, apposed, behind_subordinator, head_of, joins, relative, subject_of, was
from engine.methods.are.tagging import Tagged, finite, put_in, tokens

Copied = tuple[int, int, int]


_QUOTES = ('"', "“", "”", "«", "»")
_BEFORE_CLAUSES = ("after", "before", "since", "until")
_THINGS = ("it", "them")
_MOST = 24  # facts of one clause; a longer list stays whole from there on


def split(text: str) -> list[str]:
    """The facts of one clause, pronouns as they are; at least one for a text with words.

    >>> split("Tom Brady is a quarterback who has won six titles.")
    ['Tom Brady is a quarterback', 'Tom Brady has won six titles']
    """
    return [words for words, _ in split_with_pieces(text)]


def split_with_pieces(text: str) -> list[tuple[str, list[Copied]]]:
    """The facts, each with what of it is copied: (place in the fact, place in `text`, length) a token."""
    found: dict[str, list[Copied]] = {}
    clause = tokens(text)
    apart = [_ended(clause)] if _instructs(clause) else facts(clause)
    governed = [fact for fact in apart if any(map(finite, fact))]
    said = {token.start for fact in governed for token in fact}
    unsaid = any(token.start not in said for fact in apart for token in fact if token.text.isalnum())
    for fact in [*governed, *([_ended(clause)] if unsaid else [])]:
        words, pieces = _written(fact)
        if any(character.isalnum() for character in words):
            found.setdefault(words, pieces)
    return list(found.items())[:_MOST]


def _ended(clause: Tokens) -> Tokens:
    """The clause without quotes and final mark: the fact if the clause has no verb."""
    body = [token for token in clause if token.text not in _QUOTES]
    while body and body[-1].tag in (".", ",") and body[-1].text not in ")]":
        body.pop()
    return body


def _instructs(clause: Tokens) -> bool:
    """Does a verb without a subject open the clause, or follow a phrase that opens it: "Heat the tube", "Weigh 2 g"."""
    start = 0
    if clause and (clause[0].tag in ("to", "prep", "sub") or clause[0].low in _BEFORE_CLAUSES):
        start = next((i + 1 for i, token in enumerate(clause) if token.tag == ","), 0)
    if len(clause) < start + 3 or clause[start].tag != "noun" or not clause[start].text.isalpha():
        return False
    _, second, third = clause[start : start + 3]
    named = third.named or finite(third)  # "Alexander the Great", "Route 66 runs"
    return second.low in _THINGS or (
        not named and (second.tag == "det" or (second.tag == "num" and third.tag == "noun"))
    )


def facts(sentence: Tokens) -> list[Tokens]:
    """The facts of a sentence's tokens; each a list of tokens, some of them put in."""
    body = _ended(sentence)
    if len(body) > 2 and body[0].low in ("no", "yes") and body[1].text in ",.:;–—":
        body = body[2:]
    body, aside = brackets(body)
    result: list[Tokens] = []
    subject: Tokens = []
    for clause in independent(body):
        done, subject = _clause(uncleft(clause), subject)
        result.extend(done)
    result.extend(aside)
    apart = [fact for raw in result for titled in titles(raw) for fact in distributed(titled)]
    return [fact for raw in apart for fact in origins(raw)]


def _written(fact: Sequence[Tagged]) -> tuple[str, list[Copied]]:
    """The tokens as text, neighbours joined as in the source, others by a blank; and the copied ones."""
    kept = list(fact)
    while kept and kept[-1].text in ",;:-–—":
        kept.pop()
    while kept and kept[0].text in ",;:-–—":
        kept.pop(0)
    text, pieces = "", []
    last: Tagged | None = None
    for token in kept:
        touching = last is not None and last.end == token.start and token.start >= 0
        closing = token.text in (*",.;:)]%", "'s")
        text += "" if last is None or touching or closing else " "
        if token.start >= 0:
            pieces.append((len(text), token.start, len(token.text)))
        text += token.text
        last = token
    return text, pieces


def _clause(clause: Tokens, inherited: Tokens) -> tuple[list[Tokens], Tokens]:
    """The facts of a clause with one main predicate or several, and its subject."""
    segments = _segments(clause)
    if not segments:
        return [], inherited
    opening, segments = _opening(segments)
    if not segments:
        return [opening], inherited
    main, extra = _main_and_rest(segments)
    verb = next((i for i, t in enumerate(main) if finite(t)), None)
    subject = main[:verb] if verb else list(inherited)
    if verb == 0 and inherited:
        main = [*inherited, *main]
    result: list[Tokens] = []
    lead = opening if opening and opening[0].tag != "adv" else []
    if lead and lead[0].tag in ("ing", "part") and subject:
        result.append([*subject, *([was(subject)] if lead[0].tag == "part" else []), *lead])
        lead = []
    for number, fact in enumerate(predicates(main, subject)):
        result.extend([*([] if number or later else lead), *one] for later, one in enumerate(taken_apart(fact)))
    governed = any(map(finite, main))
    for number, (head, rest) in enumerate(extra):
        base = head or subject
        if not rest:  # "The film, who"
            continue
        if base and rest[0].tag == "part":  # without another verb the last participle is a past: "The shop burnt"
            aside = governed or number + 1 < len(extra)
            rest = [was(base), *rest] if aside else [replace(rest[0], tag="verb"), *rest[1:]]
        for fact in predicates([*base, *rest], base):
            result.extend(taken_apart(fact))
    return result, subject or inherited


def _segments(clause: Tokens) -> list[Tokens]:
    """The clause cut at commas; not inside dates ("July 24, 1982") and places ("Scarborough, Ontario")."""
    found: list[Tokens] = [[]]
    for i, token in enumerate(clause):
        if token.tag == "," and not joins(clause, i):
            found.append([])
        else:
            found[-1].append(token)
    return [s for s in found if s]


def _opening(segments: list[Tokens]) -> tuple[Tokens, list[Tokens]]:
    """A phrase that opens the clause before its subject ("In 2009,", "Born in Cork,", "However,"), and the rest."""
    first = segments[0]
    phrase = not any(finite(t) for t in first) and first[0].tag in ("prep", "adv", "ing", "part", "to")
    clausal = first[0].tag == "sub" or (first[0].low in _BEFORE_CLAUSES and any(finite(t) for t in first))
    subordinate = clausal and len(segments) > 1 and segments[1][0].tag != "and"
    if len(segments) > 1 and (phrase or subordinate):
        return first, segments[1:]
    return [], segments


def _main_and_rest(segments: list[Tokens]) -> tuple[Tokens, list[tuple[Tokens, Tokens]]]:
    """The main predicate with its lists, and (head, rest) for parts that can be separate from a head."""
    main: Tokens = list(segments[0])
    extra: list[tuple[Tokens, Tokens]] = []
    target = main
    for i in range(1, len(segments)):
        segment = segments[i]
        first = segment[0]
        if first.tag == "rel" or (first.tag == "prep" and len(segment) > 1 and segment[1].tag == "rel"):
            if head_of(main)[-1].tag == "num":
                target.extend(segment)
                continue
            extra.append(relative(segment, head_of(main)))
            target = extra[-1][1]
        elif _is_list(segments, i) or _closes_subject(main, segment):
            target.append(put_in(",", ","))
            target.extend(segment)
        elif not any(finite(t) for t in main) and any(finite(t) for t in segment) and finite(segment[0]):
            main.extend(segment)
            target = main
        elif first.tag in ("ing", "part"):
            extra.append(
                (
                    subject_of(main)
                    if first.tag == "ing"
                    else (subject_of(main) if any((finite(t) for t in main)) else head_of(main)),
                    list(segment),
                )
            )
            target = extra[-1][1]
        elif first.tag in ("det", "noun") and not any(map(finite, segment)) and head_of(target):
            extra.append((head_of(target), apposed(head_of(target), segment)))
        elif finite(first) and any(finite(t) for t in main):
            extra.append((subject_of(behind_subordinator(main)), list(segment)))
            target = extra[-1][1]
        else:
            target = main if not any(finite(t) for t in main) else target
            target.extend(segment)
    return main, extra


def _is_list(segments: list[Tokens], i: int) -> bool:
    """Is segment `i` an item of a list: this one or a later one in the run opens with, or holds, a conjunction."""
    if segments[i][0].tag == "and":
        return True
    kind = _kind(segments[i])
    if kind == "noun" and not any(finite(t) for s in segments[:i] for t in s):
        closing = next((s for s in segments[i:] if any(finite(t) for t in s)), [])
        if _closes_subject(segments[0], closing):
            return True
    for later in range(i, len(segments)):
        segment = segments[later]
        if later > i and segment[0].tag == "and":
            return kind != "clause"
        if segment[0].tag in ("rel", "ing", "part", "sub") or _kind(segment) != kind or kind == "clause":
            return False
        if later > i and any(t.tag == "and" for t in segment):
            return True
    return any(t.tag == "and" for t in segments[i][1:5]) and i >= 2 and kind == "noun"


def _closes_subject(main: Tokens, segment: Tokens) -> bool:
    """Does the segment end a list of subjects: no verb so far, a conjunction before the segment's verb."""
    verb = next((i for i, t in enumerate(segment) if finite(t)), None)
    return verb is not None and not any(finite(t) for t in main) and any(t.tag == "and" for t in segment[:verb])


def _kind(segment: Tokens) -> str:
    first = segment[0]
    if finite(first):
        return "verb"
    if any(finite(t) for t in segment):
        return "clause"
    return first.tag if first.tag in ("prep", "ing", "part", "to") else "noun"
