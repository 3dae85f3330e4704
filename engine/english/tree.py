"""Questions to the words of a dependency tree: subjects, finite forms, relative words, series, brackets and quotes.

A `Statement` is the words of one fact with its governing word; statements.py and coordination.py make and take apart
these. Left out: other languages than English.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.core.text import word_set
from engine.english.parser import can_be

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

Copied = tuple[int, int, int]


@dataclass(frozen=True)
class Inserted:
    """Words that the parsed text does not have here; `start` is their offset in the source, or -1."""

    text: str
    start: int = -1


@dataclass(frozen=True)
class Statement:
    """The words of a statement in order, its governing word, and changed verb forms by token index."""

    root: Token
    words: tuple[Token | Inserted, ...]
    forms: dict[int, str] = field(default_factory=dict)

    @property
    def tokens(self) -> list[Token]:
        """The words that the sentence has, without inserted ones."""
        return [word for word in self.words if not isinstance(word, Inserted)]

    def without(self, gone: set[int]) -> Statement:
        """The statement without the tokens at these indices."""
        return replace(self, words=tuple(w for w in self.words if isinstance(w, Inserted) or w.i not in gone))


SUBJECTS = ("nsubj", "nsubjpass", "csubj", "csubjpass", "expl")
AUXILIARIES = ("aux", "auxpass")
FINITE = ("VBD", "VBP", "VBZ", "MD")
BE = word_set("is are was were be been being am 's 're")
CONDITIONS = word_set("if unless whether until")
_NOT_PAST = word_set("is are am 's 're 'm be")
_KINDS = word_set("kind type sort species")
_HAVE = word_set("have has had having 've")
ENDS = word_set("to until till")
_SEVERAL = word_set("they we these those")
_IT = word_set("it this that these there")
VERBAL = ("VERB", "AUX")
NAMING = ("NOUN", "PROPN", "PRON")
MEASURED = {"DATE", "TIME", "MONEY", "PERCENT"}
QUOTES = '"“”«»'
DASHES = ("–", "—", "--")
MARKS = (",", ";", ":", *DASHES)
_OPENING, CLOSING = ("(", "["), (")", "]")


def has_child(word: Token, *relations: str) -> bool:
    """Does another word depend on this one by one of these relations?"""
    return any(child.dep_ in relations for child in word.children)


def is_bare(verb: Token) -> bool:
    """Has the verb neither a subject nor an auxiliary of its own?"""
    return not has_child(verb, *SUBJECTS, *AUXILIARIES)


def verb_above(word: Token) -> Token:
    """The nearest verb that governs the word; the word itself if none does."""
    return next((above for above in word.ancestors if above.pos_ in VERBAL), word)


def with_auxiliaries(verb: Token) -> list[Token]:
    """The verb and the auxiliaries before it."""
    return [verb, *(c for c in verb.lefts if c.dep_ in AUXILIARIES)]


def first_conjunct(token: Token) -> Token:
    """The first word of the series that the token is in; itself outside of one."""
    while token.dep_ == "conj":
        token = token.head
    return token


def follows_comma(token: Token) -> bool:
    """Is a comma in front of the token and what depends on it?"""
    return token.doc[token.left_edge.i - 1].text == ","


def is_plural(noun: Token) -> bool:
    """Is the noun or pronoun a plural."""
    return (noun.tag_ in ("NNS", "NNPS") and noun.ent_type_ != "PERSON") or noun.lower_ in _SEVERAL


def subject_of(verb: Token) -> Token | None:
    """The verb's own subject, or that of the verb that it is coordinated with."""
    found = next((c for c in verb.children if c.dep_ in SUBJECTS), None)
    return subject_of(verb.head) if found is None and verb.dep_ == "conj" else found


def is_instruction(verb: Token) -> bool:
    """Is the verb a bare form without a subject."""
    return verb.tag_ == "VB" and subject_of(verb) is None


def is_negated(verb: Token) -> bool:
    """Is the verb denied by "not" or "never"."""
    return has_child(verb, "neg")


def tag_of(verb: Token) -> str:
    """The verb's tag, corrected to a finite one after a finite verb without auxiliary ("won in May and lost").

    And to a participle after "have", or a "be" that is not in the past, which it shares: "is heated and poured".
    """
    if verb.tag_ == "VBD":
        be = shared_be(verb)
        passive = be is not None and (be.lower_ in _NOT_PAST or has_child(verb, "agent"))
        if passive or (_shares_have(verb) and can_be(verb.lower_, "VBN")):
            return "VBN"
    if verb.dep_ != "conj" or any(has_child(one, *AUXILIARIES) for one in (verb, verb.head)):
        return verb.tag_
    return {("VBN", "VBD"): "VBD", ("VB", "VBP"): "VBP"}.get((verb.tag_, tag_of(verb.head)), verb.tag_)


def _shares_have(verb: Token) -> bool:
    """Has the verb that this one is coordinated with a "have", and this one no subject of its own?"""
    if verb.dep_ != "conj" or not is_bare(verb):
        return False
    return any(c.dep_ in AUXILIARIES and c.lower_ in _HAVE for c in verb.head.lefts) or _shares_have(verb.head)


def shared_be(verb: Token) -> Token | None:
    """The form of "be" of the verb that this one is coordinated with, if it has no subject of its own."""
    if verb.dep_ != "conj" or not is_bare(verb) or not can_be(verb.lower_, "VBN"):
        return None
    first = verb.head
    if first.lower_ in BE:
        be = first if has_child(verb, "agent") or has_child(first, "acomp") else None
    else:
        be = next((c for c in first.lefts if c.dep_ == "auxpass"), None) or shared_be(first)
    acts = has_child(verb, "dobj") and not has_child(verb, "prt")  # "poured over the grounds": "over" is read as "prt"
    return None if acts and be is not None and be.lower_ != "be" else be  # no past follows "should be cleaned and"


def finite_tags(verb: Token) -> set[str]:
    """The finite forms of the verb and its auxiliaries."""
    return {tag_of(verb), *(c.tag_ for c in verb.children if c.dep_ in AUXILIARIES)} & set(FINITE)


def relative_word(verb: Token) -> Token | None:
    """The relative pronoun or adverb of a relative clause."""
    return next((t for t in verb.subtree if t.tag_ in ("WDT", "WP", "WP$", "WRB") and t.i <= verb.i), None)


def is_listed(token: Token) -> bool:
    """Is what is parsed as an apposition the second of a list ("met Ann, Bea and Cleo"): no comma closes it."""
    while _is_behind_comma(token):  # "Ann, Bea, Cleo and Dora": each before the last is one if that is
        if has_child(token, "conj"):
            return _is_unclosed(token)
        later = (c for c in token.head.rights if c.i > token.i and _is_behind_comma(c) and has_child(c, "conj"))
        if any(map(_is_unclosed, later)):
            return True
        token = token.head
    return False


def _is_behind_comma(token: Token) -> bool:
    """Is it an apposition behind a comma, not a number."""
    return token.dep_ == "appos" and token.tag_ != "CD" and follows_comma(token)


def _is_unclosed(token: Token) -> bool:
    """Does the token with what depends on it end without a comma, colon or dash behind it?"""
    doc, after = token.doc, token.right_edge.i + 1
    return after == len(doc) or doc[after].text not in (",", ":", "–", "—")


def identified(noun: Token) -> Token:
    """The subject that a form of "be" equates with the noun ("Ann is a clerk who"), else the noun itself."""
    first = first_conjunct(noun)
    if first.dep_ == "pobj" and first.head.lower_ == "of" and first.head.head.lower_ in _KINDS:
        return identified(first.head.head)  # "a type of map drawn by": no article tells which map
    if first.dep_ != "attr" or first.head.lower_ not in BE or is_negated(first.head):
        return noun
    subject = subject_of(first.head)
    return noun if subject is None or subject.lower_ in _IT else subject


def is_indefinite(noun: Token) -> bool:
    """Does "a" or no article, possessive or number tell which one the noun is: "a solution", "solutions"?"""
    return not any(c.dep_ in ("det", "poss", "nummod") and c.lower_ not in ("a", "an") for c in noun.children)


def is_unreal(verb: Token) -> bool:
    """Does the word say what should, may or must not be, so that what it names need not exist?"""
    return (
        any(c.tag_ == "MD" for c in verb.children)
        or is_negated(verb)
        or (verb.pos_ == "VERB" and is_instruction(verb))
        or any(c.lower_ in CONDITIONS for c in verb.lefts)
    )


def marks_around(root: Token) -> tuple[int, ...]:
    """Token indices of the marks on both sides of a subtree, or of the one at its inner side.

    A dash behind a part that opens with a comma belongs to what follows: "the ship, built in 1930 – a schooner – sank".
    """
    doc, before, after = root.doc, root.left_edge.i - 1, root.right_edge.i + 1
    while doc[after - 1].text in DASHES:
        after -= 1
    opened = before < 0 or doc[before].text in MARKS
    closed = after >= len(doc) or doc[after].is_punct
    if not (opened and closed):
        return ()
    following = after < len(doc) and doc[after].text in DASHES and before >= 0 and doc[before].text == ","
    return tuple(i for i in (before, after) if 0 <= i < len(doc) and not (i == after and following))


def brackets_of(doc: Doc) -> dict[int, int]:
    """The indices of brackets that have another half, each with that of the other half."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for token in doc:
        if token.text in _OPENING:
            opened.append(token.i)
        elif token.text[0] in CLOSING and opened:  # "):" is one token
            found |= {(first := opened.pop()): token.i, token.i: first}
    return found


def in_brackets(words: Sequence[Token | Inserted]) -> set[int]:
    """The indices of the tokens in brackets whose two halves are among the words."""
    tokens = [word for word in words if not isinstance(word, Inserted)]
    held = {token.i for token in tokens}
    pairs = brackets_of(tokens[0].doc).items() if tokens else ()
    return {i for a, b in pairs if a in held and b in held for i in range(a + 1, b)} & held


def in_one_quote(tokens: Sequence[Token]) -> bool:
    """Are two of the tokens between the same quotes: somebody else's words stay together."""
    marks = [token.i for token in tokens[0].doc if token.text in QUOTES]
    spans = zip(marks[::2], marks[1::2], strict=False)
    return any(len({t.i for t in tokens if first < t.i < last}) > 1 for first, last in spans)


def is_torn(token: Token) -> bool:
    """Is the token apart from the rest of its word: "vice" from "president", "owned" from "-and-operated"?"""
    doc = token.doc
    for step in (-1, 1):
        hyphen, other = token.i + step, token.i + 2 * step
        if not (0 <= other < len(doc)) or doc[hyphen].text != "-":
            continue
        if doc[hyphen].whitespace_ or doc[min(hyphen, token.i) if step > 0 else other].whitespace_:
            continue
        if doc[other].dep_ == "cc" or not token.is_ancestor(doc[other]):
            return True
    return False
