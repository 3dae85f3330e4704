"""Facts inside a statement: predicates, relative clauses, participial phrases, titles."""

from __future__ import annotations

import re
from itertools import pairwise

from engine.english.words import BE
from engine.methods.are.phrases import Tokens, behind_subordinator, denied, phrase_start, subject_of, trimmed, was
from engine.methods.are.tagging import finite, put_in


def taken_apart(fact: Tokens) -> list[Tokens]:
    """A fact without the clauses inside it, and those as facts of their own."""
    return [
        last
        for whole in _without_subordinate(fact)
        for plain in _without_relatives(whole)
        for reduced in _without_participles(plain)
        for last in _by_phrase(reduced)
    ]


def _without_subordinate(fact: Tokens) -> list[Tokens]:
    """Cut "although it feeds on fruits", which has subject and verb of its own, into a fact."""
    for i in range(2, len(fact) - 2):
        token = fact[i]
        if token.low in ("although", "though", "when", "while", "because", "where", "whereas") and token.tag != "noun":
            rest = fact[i + 1 :]
            if any(finite(t) for t in fact[:i]) and not finite(rest[0]) and any(finite(t) for t in rest[1:]):
                return [fact[:i], *_without_subordinate(rest)]
    return [fact]


def _without_participles(fact: Tokens) -> list[Tokens]:
    """Cut a participial phrase behind a noun ("a film directed by Lee") into a fact about that noun or the subject."""
    verb = next((i for i, t in enumerate(fact) if finite(t)), None)
    if verb is None:
        return [fact]
    for i in range(verb + 2, len(fact) - 2):
        behind = fact[i + 1].tag in ("prep", "to") or fact[i + 1].tag == "and"
        if fact[i].tag == "part" and fact[i - 1].tag == "noun" and behind and fact[i].low not in BE:
            head = fact[phrase_start(fact, i) : i]
            base = fact[:verb] if _is_identity(fact[:i]) else head
            if not base or any(t.tag in ("rel", "sub", "and", ",") for t in fact[verb:i]):
                continue
            link = fact[verb] if fact[verb].low in BE else was(base)
            return [fact[:i], [*base, put_in(link.text, "aux"), *fact[i:]]]
    return [fact]


_ADJUNCTS = frozenset("in on at by since near from between as for with during through until alongside under".split())  # noqa: SIM905


_SET_PHRASES = [p.split() for p in ("in total", "in truth", "in fact", "in all", "at least", "at most", "for life")]


def _by_phrase(fact: Tokens) -> list[Tokens]:
    """Phrases that each complete a participle ("founded in 1985 by Lee in Cork"): a fact for each of them."""
    verb = next((i for i, t in enumerate(fact) if finite(t)), None)
    if verb is None:
        return [fact]
    start = next((i for i in range(verb + 1, len(fact)) if fact[i].low in _ADJUNCTS), None)
    if start is None or any(t.tag in ("rel", "sub", ",", "to") for t in fact[verb:]):
        return [fact]
    if any(finite(t) or t.tag == "part" for t in fact[start:]):
        return [fact]
    cuts = [i for i in range(start, len(fact)) if fact[i].low in _ADJUNCTS and fact[i - 1].tag != "and"]
    cuts = [i for i in cuts if [t.low for t in fact[i : i + 2]] not in _SET_PHRASES]
    if any(a + 1 == b for a, b in pairwise(cuts)) or len(cuts) < 2:
        return [fact]
    phrases = [fact[a:b] for a, b in zip(cuts, [*cuts[1:], len(fact)], strict=True)]
    parallel = any(
        a[0].low == b[0].low and a[0].low in ("with", "for", "on", "from", "by") and any(t.tag == "and" for t in a)
        for a, b in pairwise(phrases)
    )
    if parallel or any(t.low == "between" for t in fact[start:]):
        return [fact]
    return [[*fact[:start], *phrase] for phrase in phrases]


def predicates(fact: Tokens, subject: Tokens) -> list[Tokens]:
    """The coordinated predicates of a fact, each with the subject: "X won and lost" gives two."""
    start = len(subject)
    cuts: list[int] = []
    for i in range(start + 1, len(fact)):
        joined = fact[i].tag == "and" and i + 1 < len(fact) and _predicate_start(fact, i + 1)
        if joined or (fact[i].tag == "," and i + 1 < len(fact) and finite(fact[i + 1])):
            cuts.append(i)
    if not cuts or not subject or denied(fact):
        return [fact]
    parts = [trimmed(fact[a:b]) for a, b in zip([start, *cuts], [*cuts, len(fact)], strict=True)]
    parts = [part for part in parts if part]
    lead = parts[0][0] if parts else None
    if len(parts) > 1 and len(parts[0]) <= 2 and parts[0][-1].tag in ("verb", "part", "prep") and len(parts[-1]) > 1:
        parts = [parts[0] + parts[-1][1:], *parts[1:]]
    inner = behind_subordinator(fact[: cuts[0]])
    named = subject if len(inner) == cuts[0] else subject_of(inner)  # "because a clerk keyed it and left"
    result = []
    for part in parts:
        helper = (
            [lead] if lead and lead.tag == "aux" and part[0].tag in ("part", "ing") and part is not parts[0] else []
        )
        result.append([*(subject if part is parts[0] else named), *helper, *part])
    return result


def _predicate_start(fact: Tokens, i: int) -> bool:
    token = fact[i]
    if token.tag == "adv" and i + 1 < len(fact):
        token = fact[i + 1]
    if finite(token):
        return True
    if token.tag == "part" and i + 1 < len(fact) and fact[i + 1].tag in ("prep", "to"):
        return any(t.tag == "part" for t in fact[:i])
    return False


def _without_relatives(fact: Tokens) -> list[Tokens]:
    """Cut a relative clause without a comma ("a player who won") into a fact of its own."""
    for i in range(1, len(fact)):
        if fact[i].low in ("who", "which", "that") and fact[i].tag == "rel" and i + 1 < len(fact):
            if not finite(fact[i + 1]) and fact[i + 1].tag != "adv":
                continue
            head = fact[phrase_start(fact, i) : i]
            if not head or not any(finite(t) for t in fact[:i]):
                continue
            named = subject_of(fact) if _is_identity(fact[:i]) else head
            return [*_without_relatives(fact[:i]), *predicates([*named, *fact[i + 1 :]], named)]
    return [fact]


def _is_identity(main: Tokens) -> bool:
    """Does the main clause say that its subject is the phrase that follows ("X is a player")."""
    verb = next((i for i, t in enumerate(main) if finite(t)), None)
    return verb is not None and main[verb].low in BE and not any(t.tag == "part" for t in main[verb:])


def titles(fact: Tokens) -> list[Tokens]:
    """ "the director Tim Burton" as a fact of its own, and the fact with the bare name."""
    for i in range(len(fact) - 2):
        name = _name_end(fact, i)
        if name - i < 2 or i == 0 or fact[i - 1].tag != "noun" or fact[i - 1].named or not fact[i - 1].text.isalpha():
            continue
        start = i - 1
        while start > 0 and fact[start - 1].tag in ("noun", "and") and not fact[start - 1].named:
            start -= 1
        if start > 0 and fact[start - 1].tag in ("noun", "num"):
            continue
        title = fact[start:i]
        article = start - 1 if start > 0 and fact[start - 1].tag == "det" else start
        bare = [*fact[:article], *fact[i:]]
        return [bare, [*fact[i:name], put_in("is", "aux"), *fact[article:start], *title]]
    return [fact]


def _name_end(fact: Tokens, i: int) -> int:
    end = i
    while end < len(fact) and fact[end].tag == "noun" and fact[end].named and fact[end].text.isalpha():
        end += 1
    return end


_ORIGIN = re.compile(
    r"[A-Z]\w+(?:ian|ean|can|man|ish|ese|inian|iard|ani|aqi)$|(?:French|Greek|Dutch|Czech|Swiss|Welsh)$"
)


def origins(fact: Tokens) -> list[Tokens]:
    """ "X is an American film" also says that X is American."""
    verb = next((i for i, t in enumerate(fact) if finite(t)), None)
    if verb is None or not 0 < verb < len(fact) - 3 or fact[verb].low not in BE:
        return [fact]
    for i in range(verb + 1, min(verb + 5, len(fact) - 1)):
        if _ORIGIN.match(fact[i].text) and fact[i + 1].text.islower() and fact[i + 1].tag == "noun":
            return [fact, [*fact[: verb + 1], fact[i]]]
        if fact[i].tag not in ("det", "noun", "adv"):
            break
    return [fact]
