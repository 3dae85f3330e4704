"""How a text states a fact: in the fact's own words, or only as a plan, a possibility, a condition or a claim.

In its own words: they are in a sentence in the same order, and only modifiers are left out. Each word keeps the word
that it depends on, up to the main verb, and none of the words left out denies, limits or makes a condition, or narrows
what is counted or compared ("most parents who answered", "the second largest city", "partly covered"). Articles do not
count; the parts between semicolons are sentences.

Left open: a small entailment model takes "plans to open", "may open" and "is said to open" for "opened". The fact's
main verb, or what its "is" says, is looked up in the text, and the words that govern it there in `words.toml` (the
veridicality of an event: Saurí and Pustejovsky, 2009). Left out: the verb in other words than the fact's, degrees of
certainty, and a word that governs over several sentences. Without the parser nothing is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from engine.core.text import sentences, word_set
from engine.english.parser import lemma, parse
from engine.english.pronouns import opens_with_pronoun
from engine.english.tree import AUXILIARIES, BE, SUBJECTS, VERBAL, first_conjunct, has_child, is_instruction, is_negated
from engine.english.words import COUNTS, LEAVE_OPEN, LIMITS

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_ARTICLES = ("the", "a", "an")
_SHARED = ("nsubj", "nsubjpass", *AUXILIARIES)  # what a later verb of a series has from the first one
_WHICH = ("det", "predet", "amod", "nummod", "compound", "prep", "relcl", "acl")  # what tells of which ones
_EACH = word_set("all both every each these those")
_IF = word_set("if unless whether")
_UNDER_WILL = _IF | word_set("may might could possibly perhaps unlikely")  # less than "will"
_NOT_YET = word_set("yet still")
_IN_PART = re.compile(r"\b(?:in (?:part|theory|principle)\b(?! of)|subject to\b)", re.IGNORECASE)
_DENYING = word_set("deny refute dispute fail refuse")  # leave open, unless they or the fact are denied
_AS_MUCH = {"can": word_set("may permission right"), "must": word_set("require need should demand")}  # as the fact says
_TOLD_TO = _AS_MUCH["must"] | word_set("must ought recommend advise")  # an instruction says as much
_DEPENDENT = ("xcomp", "ccomp", "acl", "pcomp", "acomp", "oprd", "prep")


def states(sentence: str, fact: str) -> bool:
    """Whether `sentence` says `fact` in its own words; never for a fact about a pronoun.

    >>> text = "Ada Quill, a pilot, flew to Oslo on Monday and wrote to Bo, and Cleo drove home."
    >>> [states(text, f"Ada Quill {said}") for said in ("flew to Oslo", "wrote to Bo", "flew to Bo", "drove home")]
    [True, True, False, False]
    """
    wanted = _words(fact)
    if len(wanted) < 3 or opens_with_pronoun(fact):
        return False
    found = [_words(part) for part in sentence.split(";") if len(_IN_PART.findall(part)) <= len(_IN_PART.findall(fact))]
    ways = ((_picked(words[::way], wanted[::way]), words) for words in found for way in (1, -1))
    return any(kept and _is_whole(kept, words) for kept, words in ways)


def _words(text: str) -> list[Token]:
    """The tokens without marks, blanks and articles."""
    return [t for t in parse(text) or () if not (t.is_punct or t.is_space or t.lower_ in _ARTICLES)]


def _picked(words: Iterable[Token], wanted: Sequence[Token]) -> list[Token]:
    """The wanted ones of the words, in order, each at its first place; empty where one is not there."""
    rest = iter(words)
    kept = [token for word in wanted for token in islice((t for t in rest if t.lower_ == word.lower_), 1)]
    return kept if len(kept) == len(wanted) else []


def _is_whole(kept: Sequence[Token], words: Iterable[Token]) -> bool:
    """Whether the words left out are modifiers that take nothing back."""
    held = {token.i for token in kept}
    series = {first_conjunct(token).i for token in kept}
    gone = [token for token in words if token.i not in held]
    if any(t.lower_ in LIMITS or t.dep_ == "neg" for t in gone):
        return False
    if any(t.head.i in held and (t.dep_ in _SHARED or t.head.like_num or _narrows(t) or _restricts(t)) for t in gone):
        return False
    return all(_hangs_on(token, held, series) for token in kept)


def _restricts(token: Token) -> bool:
    """Does the word say which ones are meant where the subject is a bare plural: "most birds", "men over 50"?"""
    head = token.head
    bare = head.tag_ == "NNS" and head.dep_ in SUBJECTS
    return bare and token.dep_ in _WHICH and token.lower_ not in _EACH and not _has_article(head)


def _has_article(noun: Token) -> bool:
    return any(child.lower_ in _ARTICLES or child.dep_ == "poss" for child in noun.children)


def _narrows(token: Token) -> bool:
    """Does the word say how far an adjective or participle holds, or of which ones a number, "all" or "best" holds?"""
    head = token.head
    if token.dep_ == "advmod" and (head.pos_ in ("ADJ", "ADV") or head.dep_ == "amod"):
        return True
    near = [t for t in (head, *head.children) if t != token]
    counted = any(t.tag_ in ("JJS", "RBS") or t.like_num or t.lower_ in COUNTS for t in near)
    return counted and head.pos_ not in VERBAL


def _hangs_on(token: Token, held: set[int], series: set[int]) -> bool:
    """Whether the word that a kept one depends on is kept too, or the one is the main verb or in a series with it."""
    first = first_conjunct(token)
    if first.head == first or first.head.i in held:
        return True
    return token.dep_ in _SHARED and first_conjunct(token.head).i in series


def left_open(text: str, fact: str) -> str:
    """The word by which the text leaves open what the fact says plainly; empty where it says so, or nothing of it.

    >>> [left_open(text, "The plant opened in May.") for text in ("It plans to open.", "It opened. More may open.")]
    ['plans', '']
    """
    said = parse(fact)
    main = _main(said) if said is not None else None
    if said is None or main is None:
        return ""
    own = {form for token in said if token.pos_ != "PROPN" for form in _forms(token)}  # "May" is no "may"
    weigh = _UNDER_WILL if "will" in own else LEAVE_OPEN | _IF
    helping = _auxiliaries(main)
    weigh = weigh.difference(*(_AS_MUCH.get(token.lower_, ()) for token in helping))
    weigh = weigh - _TOLD_TO if is_instruction(main) else weigh
    weigh = weigh if is_negated(main) else weigh | _DENYING
    past = any(token.tag_ == "VBD" for token in (main, *helping)) or any(lemma(t.lower_) == "have" for t in helping)

    def opened(word: Token) -> str:
        if past and any(token.lower_ == "will" for token in _auxiliaries(first_conjunct(word))):
            return "will"
        told = (token for token in _governing(word, own) if weigh & _forms(token))
        kept = (token.text for token in told if not (is_negated(token) and _DENYING & _forms(token)))
        return _to_come(word) or next(kept, "")

    if opened(main):
        return ""
    first = ""
    for part in sentences(text):
        for mention in _mentions(main, text[slice(*part)]):
            by = opened(mention)
            if not by:
                return ""
            first = first or by
    return first


def _main(said: Doc) -> Token | None:
    """The main verb; of "is" what it says."""
    root = next((token for token in said if token.head == token), None)
    told = (c for c in root.children if c.dep_ in ("attr", "acomp")) if root is not None and root.pos_ == "AUX" else ()
    return next(iter(told), root)


def _auxiliaries(verb: Token) -> list[Token]:
    return [child for child in verb.children if child.dep_ in AUXILIARIES]


def _to_come(word: Token) -> str:
    """The infinitive of what is to come: "was to open", "has yet to open", "a road to be opened"; else empty.

    Not "the first road to be opened".
    """
    to = next((child for child in word.children if child.tag_ == "TO"), None)
    late = word.head.lower_ in BE or any(child.lower_ in _NOT_YET for child in word.head.children)
    counted = any(child.tag_ == "JJS" or child.lower_ in COUNTS for child in word.head.children)
    by_itself = word.dep_ in ("acl", "advcl", "relcl") and has_child(word, "auxpass") and not counted
    return word.doc[to.i : word.i + 1].text if to and (by_itself or (late and word.dep_ == "xcomp")) else ""


def _mentions(main: Token, sentence: str) -> Iterator[Token]:
    """The words of the sentence with the same lemma."""
    said = lemma(main.lower_)
    if any(lemma(word.strip(".,;:()\"'").lower()) == said for word in sentence.split()):
        yield from (token for token in parse(sentence) or () if lemma(token.lower_) == said)


def _governing(word: Token, own: set[str]) -> Iterator[Token]:
    """The words that may leave open what the word says: around it, around the fact's words, and above it."""
    yield from (t for t in word.doc if t.dep_ == "advmod" and lemma(t.head.lower_) in own and not t.head.like_num)
    yield from _above(word)


def _above(word: Token) -> Iterator[Token]:
    for child in word.children:
        if child.tag_ == "MD" or child.dep_ == "mark":
            yield child
        if child.dep_ == "advcl":
            yield from (mark for mark in child.children if mark.lower_ in _IF)
    if word.dep_ == "conj":  # it shares what is above the first verb, unless it has a subject of its own
        yield from () if has_child(word, *SUBJECTS) else _above(word.head)
    elif word.head != word and (word.dep_ in _DEPENDENT or word.head.pos_ == "AUX"):
        yield word.head
        yield from _above(word.head)


def _forms(token: Token) -> set[str]:
    return {token.lower_, lemma(token.lower_)}
