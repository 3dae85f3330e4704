"""Who does what to whom: does a text have two parties of a fact in each other's place.

"Bo paid Ann" against "Ann paid Bo", "from Riga to Cork" against "from Cork to Riga", "is cheaper than": a small
entailment model calls both supportive, because every word is shared. The parser says which word is the subject, the
object or behind which preposition; the agent of a passive is the subject. Left out: one verb for another ("lent to",
"borrowed from"), a noun for a verb ("Ann's payment"), pronouns, what is denied, and verbs that hold both ways ("met").
Without the parser nothing is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, islice, permutations, product
from typing import TYPE_CHECKING

from engine.core.text import Span, sentences, stemmer
from engine.english.notation import MONTHS
from engine.english.parser import lemma, parse
from engine.english.statements import split
from engine.english.tree import (
    MEASURED,
    VERBAL,
    first_conjunct,
    has_child,
    is_negated,
    is_plural,
    relative_word,
    subject_of,
)
from engine.english.words import MUTUAL

if TYPE_CHECKING:
    from spacy.tokens import Token

_WORD = re.compile(r"\w+")
_DATE_BEFORE_NAME = re.compile(rf"(\b\d{{1,2}} (?:{'|'.join(MONTHS)})(?: \d{{4}})?) (?=[A-Z])")  # "May Patel" is none
_SCORE = re.compile(r"(?<![\w.,–-])\d{1,3}[-–]\d{1,3}(?![\w–-])")  # "beat Ann 3-1": the parser takes it for an object
_JOINED = ("case", "punct", "cc", "conj")
_SUBJECT, _OBJECT = "subject", "object"
_PARTIES = ("NOUN", "PROPN", "NUM", "SYM")
_IN_NAME = ("compound", "amod", "nummod", "poss", "nmod", "quantmod")
_MOST = 8  # parties of a place, and verbs of a sentence, that are compared
_LONGEST = 1000  # characters of a sentence that is compared
_TOLD = ("acomp", "attr")  # what "is" says
_BEFORE_PREPOSITION = (*_TOLD, "dobj", "oprd", "advmod")


@dataclass(frozen=True)
class _Party:
    """A noun or name, with the stems of the words of its name."""

    token: Token
    words: frozenset[str]

    @classmethod
    def of(cls, token: Token) -> _Party:
        name = (token, *(child for child in token.children if child.dep_ in _IN_NAME))
        return cls(token, frozenset(map(_stem, name)))

    def is_one_with(self, other: _Party) -> bool:
        """Are both the same noun, or names, with all words of the shorter in the longer: "Lind" and "Ann Lind"."""
        named = self.token.pos_ == other.token.pos_ == "PROPN"
        same = named or _stem(self.token) == _stem(other.token)
        return same and (self.words <= other.words or other.words <= self.words)


@dataclass(frozen=True)
class _Relation:
    """A verb by its lemma, with what "is" says, and its parties by their place.

    That is the subject, the object, a preposition, the subject of what is said ("that"), or whose one of these is.
    """

    verb: tuple[str, ...]
    parties: dict[str, list[_Party]]


@dataclass(frozen=True)
class Exchanged:
    """Two parties of a fact, [start, end) each and in order, and the fact as the text has it.

    `instead` differs from it between the two, or in `over` alone. It is empty where other words would have to change.
    """

    first: Span
    second: Span
    instead: str
    over: Span | None = None

    @property
    def change(self) -> Span:
        """[start, end) of the fact that has other words in `instead`."""
        return self.over or (self.first[0], self.second[1])


def exchanged(fact: str, text: str) -> Exchanged | None:
    """The two parties of the fact that the text has in each other's place, and never as the fact has them.

    >>> found = exchanged("Bo Lind paid Ann 40 euros in May.", "Ann paid Bo Lind 40 euros.")
    >>> found.instead if found else None
    'Ann paid Bo Lind 40 euros in May.'
    >>> exchanged("Bo was paid by Ann.", "Ann paid Bo.") is None
    True
    """
    for mine in _relations(fact):
        told = [other for other in _near(mine, text) if other.verb == mine.verb]
        for here, there in combinations(mine.parties, 2) if told else ():
            places = [(r.parties.get(here, []), r.parties.get(there, [])) for r in told]
            for a, b in product(mine.parties[here], mine.parties[there]):
                turned = not a.is_one_with(b) and _are_together(b, a, places)
                if turned and not _are_together(a, b, places):
                    return _exchange(fact, text, *sorted((a.token, b.token), key=lambda token: token.i))
    return None


def mispaired(fact: str, text: str) -> Exchanged | None:
    """A party and a date or number of the fact that the text has apart in one sentence, each with another party.

    In "sold to Ann in May and to Bo in June" these are Ann and June, if it never has both together. `instead` has May.
    Two names are not compared: of the public claims whose names were found apart, most were borne out.

    >>> found = mispaired("It was sold to Ann in June.", "It was sold to Ann in May and to Bo in June.")
    >>> found.instead if found else None
    'It was sold to Ann in May.'
    """
    for mine in _relations(fact, paired=True):
        near = [_told_in_parts(part) for part in _sentences_near(mine, text)]
        every = [other for told in near for other in told if other.verb == mine.verb]
        for (here, there), told in product(permutations(mine.parties, 2), near if len(every) > 1 else ()):
            pairs = [(r.parties[here], r.parties[there]) for r in told if {here, there} <= r.parties.keys()]
            places = [(r.parties.get(here, []), r.parties.get(there, [])) for r in every]
            for a, b in product(mine.parties[here], filter(_is_value, mine.parties[there])):
                with_a = [others for ones, others in pairs if any(map(a.is_one_with, ones))]
                with_b = [ones for ones, others in pairs if any(map(b.is_one_with, others))]
                if with_a and with_b and not _are_together(a, b, places):
                    first, second = sorted((_name_span(a.token), _name_span(b.token)))
                    (start, end), new = _name_span(b.token), with_a[0][0].token
                    begin, stop = _name_span(new)
                    instead = f"{fact[:start]}{new.doc.text[begin:stop]}{fact[end:]}"
                    return Exchanged(first, second, instead, (start, end))
    return None


def _is_value(party: _Party) -> bool:
    return party.token.pos_ == "NUM" or party.token.ent_type_ in MEASURED


def _span(party: Token) -> Span:
    """[start, end) of the party with all that depends on it."""
    words = [token for token in party.subtree if token.dep_ != "case" and not token.is_space]
    return words[0].idx, words[-1].idx + len(words[-1])


def _name_span(party: Token) -> Span:
    """[start, end) of the party up to its noun."""
    return party.left_edge.idx, party.idx + len(party)


def _sentences_near(mine: _Relation, text: str) -> Iterator[str]:
    """The sentences with two words of the parties or more: a parse is dear."""
    words = frozenset().union(*(party.words for party in chain(*mine.parties.values())))
    parts = (text[start:end] for start, end in sentences(text))
    return (part for part in parts if len(words & _stems(part)) > 1)


@lru_cache(maxsize=1024)
def _told_in_parts(sentence: str) -> tuple[_Relation, ...]:
    """The relations of the sentence's facts."""
    parts = split(sentence) if len(sentence) <= _LONGEST else ()
    return tuple(found for part in parts for found in _relations(part, paired=True))


def _near(mine: _Relation, text: str) -> list[_Relation]:
    return [found for part in _sentences_near(mine, text) for found in _relations(part)]


def _are_together(one: _Party, other: _Party, places: Sequence[tuple[list[_Party], list[_Party]]]) -> bool:
    """Has a relation the one in its first and the other in its second place?"""
    return any(any(map(one.is_one_with, here)) and any(map(other.is_one_with, there)) for here, there in places)


def _stem(word: Token) -> str:
    return str(stemmer().stemWord(word.lower_))


@lru_cache(maxsize=2048)
def _stems(sentence: str) -> frozenset[str]:
    return frozenset(stemmer().stemWords(_WORD.findall(sentence.lower())))


@lru_cache(maxsize=1024)
def _relations(sentence: str, *, paired: bool = False) -> tuple[_Relation, ...]:
    """The relations of at least two parties that a sentence asserts, but for those that hold both ways.

    `paired`: these too, and with the nouns behind a preposition of another one ("to 2 euros in May").
    """
    apart = _DATE_BEFORE_NAME.sub(r"\1,", sentence)  # as long as before
    if not paired:
        apart = _SCORE.sub(lambda found: " " * len(found.group()), apart)
    read = parse(apart) if len(sentence) <= _LONGEST else None
    verbs = (token for token in read or () if token.pos_ in VERBAL and not is_negated(token))
    found = (_relation(verb, paired) for verb in islice(verbs, _MOST))
    return tuple(one for one in found if len(one.parties) > 1 and (paired or MUTUAL.isdisjoint(one.verb)))


def _relation(verb: Token, paired: bool) -> _Relation:
    parties: dict[str, list[_Party]] = {}
    for place, party in _places(verb, paired):
        heads = islice((party, *party.conjuncts), _MOST)
        named = [one for token in heads for one in _called(token) if one.pos_ in _PARTIES]
        owners = [c for token in named for c in token.children if c.dep_ == "poss" and c.pos_ in _PARTIES]
        for at, tokens in ((place, named), (f"{place}'s", owners)):
            if place not in MUTUAL and tokens:
                parties.setdefault(at, []).extend(map(_Party.of, tokens))
    told = (c.lower_ for c in verb.children if c.dep_ in _TOLD)
    return _Relation((lemma(verb.lower_), *told), {place: found[:_MOST] for place, found in parties.items()})


def _called(party: Token) -> Iterator[Token]:
    """The party and its names in apposition: "her rival Bo", "the chair, Ann Lind", "a hiker named Cleo"."""
    yield party
    for child in party.children:
        if child.dep_ == "appos":
            yield child
        elif child.dep_ == "acl" and child.lower_ in ("named", "called"):
            yield from (name for name in child.children if name.dep_ in ("oprd", "attr", "dobj"))


def _places(verb: Token, paired: bool) -> Iterator[tuple[str, Token]]:
    """Each party of the verb with its place."""
    reduced = verb.dep_ == "acl"  # "the bill signed by Ann"
    passive = has_child(verb, "nsubjpass", "auxpass", "agent") or (reduced and verb.tag_ == "VBN")
    subject = verb.head if reduced else subject_of(verb)
    if subject is None and verb.dep_ == "xcomp" and not has_child(verb.head, "dobj"):
        subject = subject_of(verb.head)  # "Ann agreed to pay Bo"
    if subject is not None and verb.dep_ == "relcl" and subject == relative_word(verb):
        subject = first_conjunct(verb.head)
    if subject is not None:
        yield _OBJECT if passive else _SUBJECT, subject
    for child in verb.children:
        if child.dep_ == "dobj" and not passive:
            yield _OBJECT, child
        elif child.dep_ == "dative" and child.pos_ != "ADP":
            yield "to", child
        elif child.dep_ == "ccomp":
            yield from (("that", noun) for noun in child.children if noun.dep_ == "nsubj")
    for word in (verb, *(c for c in verb.children if c.dep_ in _BEFORE_PREPOSITION)):
        yield from _behind_prepositions(word, paired)


def _behind_prepositions(word: Token, paired: bool, depth: int = 2) -> Iterator[tuple[str, Token]]:
    """The nouns behind the prepositions of a word, and of these ("from Cork to Riga"); the agent is a subject.

    `paired`: and behind those of these nouns.
    """
    for child in word.children if depth else ():
        if child.dep_ in ("prep", "agent") or (child.dep_ == "dative" and child.pos_ == "ADP"):
            place = _SUBJECT if child.dep_ == "agent" else child.lower_
            nouns = [noun for noun in child.children if noun.dep_ == "pobj"]
            yield from ((place, noun) for noun in nouns)
            for inner in (child, *(nouns if paired else ())):
                yield from _behind_prepositions(inner, paired, depth - 1)


def _moved(fact: str, text: str, party: Token, other: Token) -> Span | None:
    """[start, end) of what changes places; None where the text does not tell.

    That is the party with all that depends on it. More than an "of" behind its noun may be the verb's: the name alone
    where the text has the rest behind the other one, as in "succeeded Ann as chair" for "succeeded Bo as chair".
    """
    start, end = _span(party)
    name, rival = (fact[slice(*_name_span(one))].lower() for one in (party, other))
    whole, told = fact[start:end].lower(), text.lower()
    more = any(child.dep_ not in _JOINED and child.lower_ != "of" for child in party.rights if not child.is_space)
    if not more or whole in told:
        return start, end
    return _name_span(party) if whole.replace(name, rival, 1) in told else None


def _exchange(fact: str, text: str, first: Token, second: Token) -> Exchanged:
    """The exchange of two parties; a first word is small where the text has it so."""
    spans = _moved(fact, text, first, second), _moved(fact, text, second, first)
    (start, end), (begin, stop) = spans[0] or _span(first), spans[1] or _span(second)
    words = [token for token in first.doc if start <= token.idx < end or begin <= token.idx < stop]
    apart = all(spans) and end <= begin and is_plural(first) == is_plural(second)
    if not apart or any(t.pos_ in VERBAL or t.dep_ == "appos" or t.ent_type_ in MEASURED for t in words):
        return Exchanged((start, end), (begin, stop), "")
    front, back = fact[begin:stop], fact[start:end]
    if not fact[:start].strip():
        small = words[0].lower_
        front = front[0].upper() + front[1:]
        back = small + back[len(small) :] if small in _WORD.findall(text) else back
    return Exchanged((start, end), (begin, stop), fact[:start] + front + fact[end:begin] + back + fact[stop:])
