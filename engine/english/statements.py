"""Split a clause into atomic facts with its dependency tree (`parser.py`); no language model (ARE, section 4.1.2).

1. Text in brackets becomes a fact about the noun before it. 2. Detach the clauses inside the sentence and state them of
their noun or subject: relative and participial clauses, appositions, clauses with "although" or "whereas". 3. Split
coordinations; each part keeps the subject, auxiliary or article that it shares. 4. Split phrases of time, place and
agent of a statement: one fact for each.
A part that has no subject and finite verb and is not an instruction falls back to its clause. So does a clause if its
facts lack a content word. Left out: "if" and "or" clauses, which say something else alone; pronouns (`pronouns.py`);
other languages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING

from engine.core.text import word_set
from engine.english.brackets import CONTENT, NUMBERED, PART, YEAR, aside, at_dash, without_brackets
from engine.english.coordination import article, conditions, has_gap, is_behind_series, split_coordination
from engine.english.parser import finite, parse
from engine.english.tree import (
    AUXILIARIES,
    BE,
    CLOSING,
    ENDS,
    FINITE,
    MARKS,
    MEASURED,
    NAMING,
    QUOTES,
    SUBJECTS,
    VERBAL,
    Copied,
    Inserted,
    Statement,
    brackets_of,
    finite_tags,
    first_conjunct,
    follows_comma,
    has_child,
    identified,
    in_brackets,
    in_one_quote,
    is_bare,
    is_indefinite,
    is_instruction,
    is_listed,
    is_negated,
    is_plural,
    is_torn,
    is_unreal,
    marks_around,
    relative_word,
    subject_of,
    tag_of,
    verb_above,
    with_auxiliaries,
)

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_MOST = 24  # facts of one clause; a longer list stays whole from there on
_LONGEST = 400  # tokens of a clause that is taken apart: what walks its tree takes the square of them
_TRIED = 10 * _MOST  # statements that may be facts: each "and" of fragments doubles them
_STATED = word_set("although though whereas")  # what they open is so
_TIMED = word_set("when while where")  # what they open is so in the past, or behind a comma
_RESTING = word_set("in on at near under within")  # not "to Cork, where", "from Cork, where"
_ASKING = word_set("must should shall")
_CHOOSING = word_set("whichever whatever whoever whomever")
_SUFFIXES = word_set("jr sr ii iii iv esq inc ltd llc plc corp co gmbh")  # of a name: "Ann Lee, Jr., is"
_BOUNDED = word_set("no every each any all those few only whoever whatever anyone everyone")
_WITH_ARTICLE = ("States", "Kingdom", "Netherlands", "Republic", "Emirates", "Philippines")
_PLACED = ("GPE", "LOC", "FAC", "ORG")  # what a country or town behind a comma is the place of
_BARE = word_set("part north south east west")  # of
_CAUSING = word_set(
    "lead leads led leading cause causes caused causing make makes made making mean means meant meaning allow allows"
    " allowed allowing result resulting force forces forced forcing prompt prompts prompted prompting leaving enable"
    " enables enabled enabling kill kills killed killing"
)
_TENSES = {"is": "VBZ", "are": "VBP", "was": "VBD", "were": "VBD"}
_FREE = word_set(
    "in on at by since near from between as for with during through until alongside under to of into about after before"
    " over against within across throughout despite"
)
_NARROWING = word_set("only mostly mainly especially partially partly largely never rarely hardly almost nearly")
_LEADING = word_set("following including regarding concerning starting beginning depending based compared given")
_PARTING = word_set("and but while whereas")
_COMPLETING = word_set("on for with from as under through to of into about over against")
_TELLING = re.compile(  # verbs with a clause without "that" as their object
    r"(?:say|said|tell|told|think|thought|believe|know|knew|known|claim|report|show|hope|feel|felt|see|saw|hear|heard|"
    r"mean|meant|note|argue|add|announce|agree|state|confirm|conclude|explain|deny|denie|fear|expect|ensure|estimate|"
    r"predict|reali[sz]e|reveal|suspect|understand|understood|warn|wish|assume|admit|find|found|suggest|insist)"
    r"(?:s|d|ed)?"
)


def split(text: str) -> list[str]:
    """The facts of one clause, pronouns as they are; at least one for a text with words.

    >>> split("Tom Brady is a quarterback who has won six titles.")
    ['Tom Brady is a quarterback', 'Tom Brady has won six titles']
    """
    return [words for words, _ in split_with_pieces(text)]


def split_with_pieces(text: str) -> list[tuple[str, list[Copied]]]:
    """The facts with their copied tokens: (offset in the fact, offset in `text`, length). A table's row is one fact."""
    apart = None if "|" in text else _facts(text)
    found: dict[str, list[Copied]] = {}
    for words, pieces in [unsplit(text)] if apart is None else apart:
        if any(c.isalnum() for c in words):
            found.setdefault(words, pieces)
    return list(found.items())[:_MOST]


def _facts(text: str) -> list[tuple[str, list[Copied]]] | None:
    """The facts between semicolons and in brackets; None where a part has no tree."""
    main, origin, asides = without_brackets(text)
    result: list[tuple[str, list[Copied]]] = []
    lost = False
    for start, words, doc in _parts(main):
        if doc is None:
            return None
        sentence, places = Sentence(doc), origin[start:]
        tried = islice((one for whole in sentence.statements() for one in split_coordination(whole)), _TRIED)
        good = (one for one in tried if is_sentence(one))
        facts = list(islice((fact for one in good for fact in split_phrases(one)), _MOST))
        covered = {t.i for fact in facts for t in fact.tokens}
        covered |= {t.i for noun in sentence.antecedents.values() for t in noun if not isinstance(t, Inserted)}
        lost |= any(token.i not in covered and token.pos_ in CONTENT for token in doc)
        for place, content, at in asides:
            before = [t for t in doc if t.idx + start < place <= start + len(words) + 1 and not t.is_punct]
            dashes = text[:at].rstrip().endswith("—")
            stated = aside(sentence.phrase, before[-1], content, at, dashes=dashes) if before else None
            facts += [stated] if stated else []
            lost |= bool(before) and stated is None
        result += [_written(fact, sentence, places) for fact in facts]
    return [*result, *([unsplit(text)] if lost or not result else [])]


def _parts(text: str) -> Iterator[tuple[int, str, Doc | None]]:
    """The parts between semicolons, and on both sides of a misread "and": offset, words, tree."""
    for found in PART.finditer(text):
        start, words = found.start(), found.group().rstrip()
        doc = _read(words)
        while doc is not None and (joint := _misread(doc)) is not None:
            first, behind = words[: joint.idx].rstrip(), joint.idx + len(joint.text) + 1
            yield start, first, _read(first)
            start, words = start + behind, words[behind:]
            doc = _read(words)
        yield start, words, doc


def _read(words: str) -> Doc | None:
    """The tree of a clause; None without the parser and for one that is too long to be taken apart."""
    doc = parse(words)
    return doc if doc is None or len(doc) <= _LONGEST else None


def _misread(doc: Doc) -> Token | None:
    """The "and" before a second clause whose subject the parser takes for a second object; None without one.

    "Ann wrote the notes and Bo built the engine" reads "wrote that the notes and Bo built" or "wrote [...], built".
    """
    for joint in doc:
        second = next((c for c in joint.head.rights if c.dep_ == "conj" and c.i > joint.i), None)
        if joint.dep_ != "cc" or joint.lower_ not in _PARTING or second is None or second.pos_ not in NAMING:
            continue
        at = second.right_edge.i + 1
        if at == len(doc):
            continue
        verb = doc[at].head if doc[at].dep_ in AUXILIARIES else doc[at]
        main, first = verb.head, first_conjunct(second)
        if verb.i < at or main.i > joint.i or not finite_tags(verb) or main.pos_ not in VERBAL:
            continue
        objects = first.dep_ in SUBJECTS and first.head == verb and first.left_edge.i == main.i + 1
        told = verb.dep_ == "ccomp" and objects and not _TELLING.fullmatch(main.lower_)
        if told or (verb.dep_ == "conj" and subject_of(verb) == subject_of(main)):
            return joint
    return None


class Sentence:
    """A parsed sentence, its statements, and the antecedents of its relative pronouns."""

    def __init__(self, doc: Doc) -> None:
        """Find the statements inside the sentence."""
        self.doc = doc
        self.antecedents: dict[int, tuple[Token | Inserted, ...]] = {}
        self.cuts = {token.i: kind for token in doc if (kind := _cut(token)) and not in_one_quote((token, token.head))}
        self.apart = self.cuts.keys() | {i for place in self.cuts for i in marks_around(doc[place])}

    def below(self, root: Token) -> tuple[Token, ...]:
        """The words that `root` governs, without detached statements."""
        found, waiting = [], [root]  # no recursion: a long series is as deep as it has parts
        while waiting:
            found.append(token := waiting.pop())
            waiting += (child for child in token.children if child.i not in self.apart)
        return tuple(sorted(found, key=lambda t: t.i))

    def phrase(self, noun: Token, *, series: bool = False) -> tuple[Token, ...]:
        """A noun with its modifiers, without coordinated nouns unless the whole `series` is meant."""
        joined = () if series else ("conj", "cc", "preconj")
        gone = {t.i for c in noun.children if c.dep_ in joined for t in c.subtree}
        words = [token for token in self.below(noun) if token.i not in gone]
        while len(words) > 1 and words[-1].is_punct and words[-1].text not in CLOSING:
            words.pop()
        while len(words) > 1 and words[0].is_punct:
            words.pop(0)
        return tuple(words)

    def expanded(self, word: Token | Inserted, forms: dict[int, str]) -> tuple[Token | Inserted, ...]:
        """The word in its changed form, or what a relative pronoun refers to."""
        if isinstance(word, Inserted):
            return (word,)
        return self.antecedents.get(word.i, (Inserted(forms[word.i]) if word.i in forms else word,))

    def statements(self) -> Iterator[Statement]:
        """The main statement, then the detached ones."""
        makers: dict[str, Callable[[Token], Statement]] = {
            "relative": self._relative,
            "participle": lambda verb: self._predication(verb, _told_of(verb)),
            "apposition": lambda noun: self._predication(noun, _told_by(noun)),
            "clause": lambda verb: Statement(verb, self.below(verb)[1:]),
            "adverbial": lambda verb: self._predication(verb, subject_of(verb.head)),
        }
        roots = (sent.root for sent in self.doc.sents)
        yield from (Statement(root, self.below(root)) for root in roots if not self._is_cleft(root))
        yield from (makers[kind](self.doc[place]) for place, kind in self.cuts.items())

    def _is_cleft(self, root: Token) -> bool:
        """Does "It was Ann" say nothing besides the clause "who won" behind it?"""
        known = (c for c in root.children if c.dep_ == "attr" and not any(d.lower_ in ("a", "an") for d in c.children))
        clauses = (c for noun in known for c in noun.children)
        subject = subject_of(root)
        it = root.lower_ in BE and subject is not None and subject.lower_ == "it"
        return it and any(self.cuts.get(c.i) == "relative" and not follows_comma(c) for c in clauses)

    def _predication(self, root: Token, noun: Token | None) -> Statement:
        """A participle or apposition as a sentence about the noun: "losing" is "lost"; else with "is" or "was"."""
        assert noun is not None  # `_cut` found it
        equated = root.dep_ == "acl" or any(c.dep_ == "attr" for c in root.head.rights)
        series = noun != root.head and equated  # "Ann and Bo are clerks, hired in May": both of them were
        series |= root.dep_ == "acl" and is_behind_series(root)
        named = [t for t in self.phrase(noun, series=series) if noun.i > root.i or t.i < root.left_edge.i]
        auxiliary = _auxiliary(root, noun, series=series)
        forms = _finite_forms(root, auxiliary)
        words = self.below(root)
        if root.dep_ == "appos" and all(c.dep_ == "compound" for c in root.lefts):
            if root.ent_type_ == "GPE" and noun.ent_type_ in _PLACED:  # "Cork, Ireland", "Vale Ltd, Cork"
                auxiliary += " in the" if root.text in _WITH_ARTICLE else " in"
                words = tuple(t for t in words if t.i <= root.i)
            elif root.tag_ == "NN" and root.lower_ not in _BARE and not any(t.pos_ == "PROPN" for t in root.lefts):
                auxiliary += f" {article(words[0])}"  # "Bo, clerk of the bank"
        link = () if forms else (Inserted(auxiliary),)
        words = tuple(t for t in words if t.dep_ != "cc" or t.i > root.left_edge.i)  # "But cooped up, he left"
        return Statement(root, (*named, *link, *words), forms)

    def _relative(self, verb: Token) -> Statement:
        """A relative clause with its noun instead of the pronoun."""
        pronoun, noun, words = relative_word(verb), identified(verb.head), self.below(verb)
        assert pronoun is not None  # `_cut` found it
        named = self.below(noun) if noun != verb.head else self.phrase(noun, series=is_behind_series(verb))
        head = tuple(
            t for t in named if t.i < verb.left_edge.i and (t.i == noun.i or t.text != "," or noun != verb.head)
        )
        while head and head[-1].is_punct and head[-1].text not in CLOSING:
            head = head[:-1]
        if pronoun.dep_ in (*SUBJECTS, "poss"):
            owned = Inserted("'" if is_plural(noun) and head and head[-1].text.endswith("s") else "'s")
            self.antecedents[pronoun.i] = head if pronoun.dep_ != "poss" else (*head, owned)
            return Statement(verb, words)
        led = pronoun.head if pronoun.dep_ == "pobj" else None
        rest = tuple(w for w in words if w not in (pronoun, led))
        if pronoun.dep_ == "dobj":
            at = next((n for n, w in enumerate(rest) if w.i > verb.i and w.dep_ != "prt"), len(rest))
            return Statement(verb, (*rest[:at], *head, *rest[at:]))
        subject = subject_of(verb)
        if led is not None and led.lower_ == "of" and subject is not None:  # "90 euros, of which half is rent"
            at = sum(word.i <= subject.right_edge.i for word in rest)
            return Statement(verb, (*rest[:at], led, *head, *rest[at:]))
        place = verb.head.head.lower_ if verb.head.dep_ == "pobj" and verb.head.head.lower_ in _RESTING else "in"
        return Statement(verb, (*rest, led or Inserted(place), *head))


def _cut(token: Token) -> str:
    """The kind of statement that the token's subtree makes; empty if it stays with its head."""
    first, doc = token.left_edge.i, token.doc
    joined = first > 1 and doc[first - 1].text == "–" and not doc[first - 2].whitespace_ and token.head.pos_ == "PROPN"
    comma = first > 0 and doc[first - 1].text in (",", "–", "—", "-") and not joined  # "San Diego–Tijuana"
    if token.dep_ == "relcl":
        apart = not _is_on_event(token) if comma else not _is_restrictive(token.head)
        return "relative" if apart and _can_detach(token, comma) else ""
    if token.dep_ == "acl":
        return "participle" if _describes(token, comma) else ""
    if token.dep_ == "appos":
        return "apposition" if comma and _is_apposition(token) else ""
    if token.dep_ == "advcl" and has_child(token, *SUBJECTS):
        return "clause" if _is_so(token, comma) else ""
    return "adverbial" if token.dep_ == "advcl" and _is_of_subject(token, comma) else ""


def _can_detach(verb: Token, comma: bool) -> bool:
    """Can the noun take the place of the relative pronoun?"""
    pronoun = relative_word(verb)
    noun = verb.head
    if pronoun is None or pronoun.lower_ in _CHOOSING or noun.pos_ not in ("NOUN", "PROPN", "PRON", "NUM"):
        return False
    if is_negated(noun) or (noun.dep_ in ("attr", "appos", "conj") and is_negated(noun.head)):
        return False  # "It was Ann, not Bo, who won"
    if pronoun.dep_ in SUBJECTS and not _fits(noun, verb, pronoun):
        return False
    if pronoun.tag_ == "WRB":
        rule = pronoun.lower_ == "when" and not finite_tags(verb) <= {"VBD"}  # "in June, when it rains": of each June
        return comma and pronoun.lower_ in ("where", "when") and pronoun.head == verb and not rule
    own = pronoun.head == verb and pronoun.dep_ in (*SUBJECTS, "dobj")
    led = pronoun.dep_ == "pobj" and pronoun.head.head == verb and not has_child(verb, "conj")
    return (own or led or pronoun.dep_ == "poss") and (comma or pronoun.dep_ in SUBJECTS)


def _fits(noun: Token, verb: Token, pronoun: Token) -> bool:
    """Can the noun be the subject of its relative clause: "who" is nobody's town, and one thing has no "are"?"""
    if pronoun.lower_ == "who" and noun.ent_type_ in ("GPE", "LOC", "DATE"):
        return False
    verbs = {v.lower_ for v in with_auxiliaries(verb) if v.tag_ in FINITE}
    several = is_plural(noun) or has_child(noun, "conj")
    bare = verb.tag_ == "VBP" and len(with_auxiliaries(verb)) == 1
    return several or noun.tag_ not in ("NN", "NNP") or not (bare or verbs & {"are", "were", "have"})


def _is_on_event(verb: Token) -> bool:
    """Is ", which" about the whole event: its noun does not end before the comma, or is a day ("on Monday, which")."""
    noun, pronoun = verb.head, relative_word(verb)
    causes = verb.lower_ in _CAUSING and noun.dep_ not in SUBJECTS
    day = noun.ent_type_ == "DATE" and noun.pos_ in ("PROPN", "NUM")
    return (
        _is_apart(verb)
        or (verb.lower_ in BE and any(t.tag_ == "WRB" for c in verb.rights for t in (c, *c.lefts)))  # "which is why"
        or ((causes or day) and pronoun is not None and pronoun.lower_ == "which")
    )


def _is_apart(part: Token) -> bool:
    """Is the word before the comma not of the noun that the part is about: "sold the mill in May, which"?"""
    before = part.doc[max(part.left_edge.i - 2, 0)]
    return before != part.head and not part.head.is_ancestor(before)


def _is_restrictive(noun: Token) -> bool:
    """Does a clause without comma restrict the noun: a subject, "every clerk", what is only wanted or possible?"""
    return (
        noun.dep_ in SUBJECTS
        or noun.i < noun.sent.root.i  # "in people who have had it, the virus stays"
        or any(t.lower_ in _BOUNDED for t in (noun, *noun.children))
        or (noun.lower_ == "one" and noun.dep_ == "pobj")  # "a number greater than one that"
        or (noun.dep_ in ("attr", "pobj") and noun.pos_ == "NOUN" and [c.lower_ for c in noun.lefts] == ["the"])
        or (is_indefinite(noun) and any(map(is_unreal, noun.ancestors)))
    )


def _describes(participle: Token, comma: bool) -> bool:
    """Does a participle tell something of a known noun before it: "Ann, hired in May", "the mill built in 1900"?"""
    noun = participle.head
    if participle.i < noun.i or noun.pos_ not in ("NOUN", "PROPN"):
        return False
    if participle.tag_ == "VBG":
        known = comma or identified(noun) != noun
        return known and bool(finite_tags(participle.sent.root)) and not _is_result(participle)
    known = comma or not (_is_restrictive(noun) or noun.dep_ == "ROOT")
    return participle.tag_ == "VBN" and any(True for _ in participle.rights) and known and not _is_vague(participle)


def _is_vague(participle: Token) -> bool:
    """Is it what a rule asks for ("a form, signed by Ann, must be sent") or of an amount ("fell to 4%, driven by")?"""
    asked = any(c.lower_ in _ASKING for c in verb_above(participle).children) and not _is_past(participle)
    return asked or (follows_comma(participle) and participle.head.ent_type_ in MEASURED)


def _is_past(participle: Token) -> bool:
    """Has it a year: "discovered in 1921", not "based in Cork since 1921"?"""
    times = (n for c in participle.children if c.dep_ == "prep" and c.lower_ != "since" for n in c.children)
    return any(YEAR.fullmatch(t.text) for n in times if n.ent_type_ == "DATE" for t in n.subtree)


def _is_apposition(noun: Token) -> bool:
    """Does the noun behind a comma say what the one before it is, and neither an amount nor a part of a list?"""
    listed = is_instruction(noun.sent.root) or is_listed(noun)  # "add salt, water"
    measures = all(any(c.dep_ == "nummod" for c in one.subtree) for one in (noun, noun.head))
    named = {noun.pos_, noun.head.pos_} <= {"NOUN", "PROPN"}
    suffix = noun.left_edge == noun and noun.lower_.rstrip(".") in _SUFFIXES
    return named and not (suffix or listed or measures or is_torn(noun) or _is_misread(noun))


def _is_misread(apposition: Token) -> bool:
    """Is it not of the noun before the comma, is a main clause missing, or is it a list ("a desk, a lamp and")?"""
    head, main = apposition.head, verb_above(apposition.head)
    same = all(any(c.lower_ in ("a", "an") for c in one.lefts) for one in (head, apposition))
    series = any(c.dep_ == "cc" for c in (*head.rights, *head.head.rights) if c.i > apposition.i)
    named = head.tag_ == apposition.tag_ == "NNP"
    joints = {c.lower_ for one in head.rights if one.dep_ == "appos" for c in one.rights if c.dep_ == "cc"}
    lost = main.i > apposition.i and bool(finite_tags(main)) and subject_of(main) is None
    return (
        _is_apart(apposition)
        or any(c.dep_ == "conj" and c.i < apposition.i for c in head.children)  # "Ann and Bo, a clerk"
        or "or" in joints
        or (named and "and" in joints)  # "Ann, Bo and Cy, who": a series of names that a comma closes
        or (same and series)
        or has_child(apposition.sent.root, "mark")
        or lost  # "In her view, a buyer has": the buyer does
    )


def _is_so(verb: Token, comma: bool) -> bool:
    """Does the clause say what is so: with "although", or what was "when" or "where" something was?"""
    opening = verb.left_edge.lower_ if verb.left_edge.head == verb else ""
    happened = finite_tags(verb) == {"VBD"} or (comma and opening != "when")  # ", when it rains" is a condition
    stated = opening in _STATED or (opening in _TIMED and happened)
    return stated and not is_negated(verb.head)


def _is_of_subject(participle: Token, comma: bool) -> bool:
    """Does the subject do what a participle apart from its sentence says: "built in 1900, the mill closed"?"""
    first, after, doc, main = participle.left_edge, participle.right_edge.i + 1, participle.doc, participle.head
    subject = subject_of(main)
    if participle.tag_ not in ("VBN", "VBG") or subject is None:
        return False
    opens = first.i == 0 and after < len(doc) and doc[after].text in (",", ":", "–", "—")
    other = participle.lower_ == "using" or (participle.tag_ == "VBG" and has_child(main, "agent"))
    passive = subject.dep_ == "nsubjpass" and other  # "was dissolved, using 20 mL", "was made by Ann, working"
    dangling = passive or participle.lower_ in _LEADING or is_unreal(main) or _is_result(participle)
    marked = first.head == participle and first.dep_ in ("mark", "advmod")  # "when built"
    return (comma or opens) and not dangling and not marked


def _is_result(participle: Token) -> bool:
    """Does ", killing 12" behind the verb say what came of the whole event?"""
    causes = participle.tag_ == "VBG" and participle.lower_ in _CAUSING
    return causes and participle.i > verb_above(participle).i and follows_comma(participle)


def _told_of(participle: Token) -> Token:
    """The noun that a participle describes; behind a comma the subject: "Home is a song by Ann, released in"."""
    noun = first_conjunct(participle.head)
    if follows_comma(participle):
        while noun.dep_ == "pobj" and noun.head.head.pos_ in (*NAMING, "NUM"):
            noun = first_conjunct(noun.head.head)
    return identified(participle.head if identified(noun) == noun else noun)


def _told_by(apposition: Token) -> Token:
    """The noun that an apposition describes: behind "Ann is a clerk," the subject, not behind "The clerk is Ann,"."""
    noun = apposition.head
    return identified(noun) if noun.pos_ == "NOUN" and is_indefinite(noun) else noun


def _auxiliary(root: Token, noun: Token, *, series: bool) -> str:
    """The verb to insert: present for an apposition, else the tense of the main verb."""
    main = root.head
    while not (main.pos_ in VERBAL and finite_tags(main)) and main.head != main:
        main = main.head
    tenses = {"VBZ", "VBP", "MD"} if root.tag_ == "VBG" else {"VBZ", "VBP"}  # "Ann, born in Cork, will"
    present = root.dep_ == "appos" or (finite_tags(main) <= tenses and not _is_past(root))
    noun = noun.head.head if noun.tag_ in ("WDT", "WP") else noun  # "mills that run, using coal"
    said = _is_said_of_several(noun, series=series)
    many = said and (root.dep_ != "appos" or noun.tag_ != "NNPS" or is_plural(root))
    return ("are" if present else "were") if many else "is" if present else "was"


def _is_said_of_several(noun: Token, *, series: bool) -> bool:
    """Is the noun several things: by the "are" or "is" whose subject it is ("The Sharks are"), else by its form?

    `series`: with those that are joined to it. What a verb says of several subjects tells nothing of one of them.
    """
    joined = has_child(noun, "conj")
    subjects = [c for c in noun.head.lefts if c.dep_ in SUBJECTS]
    if noun not in subjects or len(subjects) > 1 or (joined and not series):
        return is_plural(noun)
    told = {v.lower_ for v in with_auxiliaries(noun.head)} & _TENSES.keys()
    return bool(told & {"are", "were"}) if told else joined or is_plural(noun)


def _finite_forms(participle: Token, auxiliary: str) -> dict[int, str]:
    """The finite forms of a present participle and of those coordinated with it, in the tense of the auxiliary.

    With "having" that one alone: "having left" says that it had left. Empty if it is another form, has another
    auxiliary, or is not in the lexicon.
    """
    if having := {c.i: "had" for c in participle.children if c.lower_ == "having" and c.dep_ == "aux"}:
        return having
    if participle.tag_ != "VBG" or has_child(participle, *AUXILIARIES):
        return {}
    verbs = [participle, *(t for t in participle.conjuncts if t.tag_ == "VBG" and t.i > participle.i)]
    forms = {v.i: auxiliary if v.lower_ == "being" else finite(v.lower_, _TENSES[auxiliary]) for v in verbs}
    return forms if all(forms.values()) else {}


def is_sentence(statement: Statement) -> bool:
    """Does the statement have a subject and a finite verb, or is it an instruction?"""
    root, tokens = statement.root, statement.tokens
    if (
        root.i in statement.forms
        or "had" in statement.forms.values()
        or any(isinstance(w, Inserted) and w.text.split()[0] in BE for w in statement.words)
    ):
        return True
    if any(c.dep_ == "mark" and c in tokens for c in root.children) or any(_is_stray(t, root) for t in tokens):
        return False
    subjects = [t for t in tokens if t.i < root.i and first_conjunct(t).dep_ in SUBJECTS]
    if any(t.tag_ in ("WDT", "WP") and root.dep_ == "conj" and t.head == root for t in subjects):
        return False  # "and who left": whose relative clause this is was not found
    if root.dep_ == "conj" and root.tag_ == "VBZ" and any(t.tag_ == "NNS" and t.head == root.head for t in subjects):
        return False  # "countries have closed schools and kindergartens": a noun that is read as a verb
    if subjects and not is_instruction(root):  # "if the mill stops, check the belt" has a subject of another verb
        return bool({tag_of(root), *(t.tag_ for t in tokens if t.dep_ in AUXILIARIES)} & set(FINITE))
    return root.tag_ == "VB" and not any(c.dep_ in (*SUBJECTS, *AUXILIARIES) for c in root.children if c in tokens)


def _is_stray(verb: Token, root: Token) -> bool:
    """Is it a second finite verb that has no subject and depends on no other verb?"""
    if verb == root or verb.tag_ not in ("VB", "VBP", "VBZ", "VBD") or verb.dep_ in (*AUXILIARIES, "relcl"):
        return False
    if verb.dep_ == "conj":
        return verb.head.pos_ not in VERBAL or (verb.tag_ in ("VBZ", "VBD") and verb.head.tag_ == "VB")
    return is_bare(verb) and not has_child(verb, "mark", "advmod")


def split_phrases(statement: Statement) -> list[Statement]:
    """A statement for each phrase of time, place or agent of the governing verb."""
    held, verb = {token.i for token in statement.tokens}, statement.root
    if verb.pos_ not in VERBAL or is_negated(verb) or is_instruction(verb):
        return [statement]  # "put the acid into the flask with water": without one phrase it asks for something else
    beside = [c for c in verb.rights if c.i in held and c.dep_ in ("prep", "agent") and c.lower_ in _FREE]
    said = {c.lower_ for c in beside}
    if (
        ("from" in said and said & ENDS)  # "rose from 2 in March to 3 in June"
        or any(map(has_gap, beside))
        or any(map(is_negated, beside))  # "in Cork but not in Oslo"
        or any(c.dep_ == "conj" and c.pos_ not in VERBAL for c in verb.rights)  # "by 2% in Cork and 5% in Oslo"
        or not all(any(c.children) for c in beside)  # misread: "within" alone in "within 30 days after the trip"
        or any(map(_is_counted, beside))
    ):
        return [statement]
    if beside and verb.lower_ in BE and not has_child(verb, "attr", "acomp"):
        beside.pop(0)  # "was in use"
    if beside and beside[0].i == verb.i + 1 and verb.tag_ != "VBN" and beside[0].lower_ in _COMPLETING:
        beside.pop(0)  # "relied on it"
    free = [{t.i for t in c.subtree} for c in beside]
    objects = {t.i for c in beside for noun in c.children if noun.dep_ == "pobj" for t in noun.subtree}
    others = (t for t in statement.tokens if t.i not in objects)
    if len(free) < 2 or any(t.tag_ in ("JJS", "RBS") or t.lower_ in _NARROWING for t in others):
        return [statement]  # what has a superlative or "only" holds for all phrases of the verb together
    commas = {min(one) - 1 for one in free if verb.doc[min(one) - 1].text == ","}  # "made in Cork, for 40 euros"
    return [statement.without(commas.union(*(one for one in free if one is not kept))) for kept in free]


def _is_counted(phrase: Token) -> bool:
    """Is it a bare number, which may be of the noun before it: "led in sacks with 11", "for those under 12"?"""
    numbers = [n for n in phrase.children if n.pos_ == "NUM"]
    return any(n.ent_type_ != "DATE" or (n.is_digit and not YEAR.fullmatch(n.text)) for n in numbers)


def _written(statement: Statement, sentence: Sentence, origin: Sequence[int]) -> tuple[str, list[Copied]]:
    """The statement as text, spaced as in the source, with its copied tokens."""
    held = {token.i for token in statement.tokens}
    words = [w for w in statement.words if isinstance(w, Inserted) or not _is_orphan(w, held)]
    kept: list[Token | Inserted] = []
    for mark, run in groupby(words, lambda word: not isinstance(word, Inserted) and word.text in MARKS):
        group = list(run)
        if not mark:
            kept += [part for word in group for part in sentence.expanded(word, statement.forms)]
        elif len(group) == 1:  # two marks in a row were on both sides of words that are gone
            kept += group
    enclosed = in_brackets(kept)
    gone = {a for a, b in brackets_of(sentence.doc).items() if enclosed.isdisjoint(range(min(a, b), max(a, b)))}
    kept = [word for word in kept if isinstance(word, Inserted) or word.i not in gone]
    while kept and _is_edge_mark(kept[-1]):
        kept.pop()
    while kept and _is_edge_mark(kept[0]):
        kept.pop(0)
    kept = [_fitting(word, kept[place + 1 : place + 2]) for place, word in enumerate(kept)]
    text, pieces = "", []
    for place, word in enumerate(kept):
        start = word.start if isinstance(word, Inserted) else origin[word.idx]
        text += "" if not place or _is_attached(kept[place - 1], word) else " "
        small = int(bool(place) and not isinstance(word, Inserted) and _opens(word))  # its first letter is not copied
        if start >= 0:
            pieces.append((len(text) + small, start + small, len(word.text) - small))
        text += word.text[:small].lower() + word.text[small:]
    return text, pieces


def _is_orphan(word: Token, held: set[int]) -> bool:
    """Is it a quote, or a conjunction that lost the words it joins?"""
    joined = [c.i in held for c in word.head.children if c.dep_ == "conj"]
    return word.text in QUOTES or (word.dep_ in ("cc", "preconj") and bool(joined) and not any(joined))


def _is_edge_mark(word: Token | Inserted) -> bool:
    """A mark or conjunction that cannot open or end a fact."""
    return not isinstance(word, Inserted) and (word.text in (*MARKS, "-", ".", "!", "?", "…") or word.dep_ == "cc")


def _fitting(word: Token | Inserted, after: Sequence[Token | Inserted]) -> Token | Inserted:
    """The word; an article in the form for what now follows it: "a" in "a fine and open book" before "open"."""
    moved = [w for w in after if not isinstance(w, Inserted) and not isinstance(word, Inserted) and w.i != word.i + 1]
    if isinstance(word, Inserted) or not moved or word.text not in ("a", "an") or not moved[0].is_alpha:
        return word
    return word if article(moved[0]) == word.text else Inserted(article(moved[0]))


def _is_attached(last: Token | Inserted, word: Token | Inserted) -> bool:
    """Does the word follow the last one without a blank?"""
    if isinstance(word, Inserted):
        return word.text in ("'s", "'")
    beside = not isinstance(last, Inserted) and last.i + 1 == word.i and not last.whitespace_
    return beside or word.tag_ == "POS" or word.text in ",.;:)]%"


def _opens(word: Token) -> bool:
    """Does the word have a capital only because it opens the sentence?"""
    return word.i == 0 and len(word.text) > 1 and word.text.istitle() and word.pos_ != "PROPN" and not word.ent_type_


def unsplit(text: str) -> tuple[str, list[Copied]]:
    """The clause in one piece, without list mark, quotes, final mark and double blanks, and its copied words."""
    numbered = NUMBERED.match(text)
    words = list(re.compile(r"[^\s\"“”«»]+").finditer(text, numbered.end() if numbered else 0))
    written, pieces = "", []
    for place, word in enumerate(words):
        apart = place > 0 and words[place - 1].end() < word.start()
        written += " " if apart and not re.match(r"[.,;:?!)\]]", word.group()) else ""
        pieces.append((len(written), word.start(), len(word.group())))
        written += word.group()
    end = len(written.rstrip(" .,;:!?–—-"))
    return written[:end], [(a, b, min(n, end - a)) for a, b, n in pieces if a < end]


def clause_starts(sentence: str) -> list[int]:
    """Character offsets where a further clause with its own subject and verb starts.

    A clause starts after a semicolon or a dash, after ", and", ", but", ", while" if its verb has its own subject, and
    after a colon if it is an instruction.

    >>> text = "The film won; it opened in May, and she left."
    >>> [text[a:] for a in clause_starts(text)]
    ['it opened in May, and she left.', 'she left.']
    """
    main, origin, _ = without_brackets(sentence)
    found: list[int] = []
    for start, part in ((f.start() + at, part) for f in PART.finditer(main) for at, part in at_dash(f.group())):
        found += [origin[start]] if start else []
        found += [origin[start + token.idx] for token in _clause_openings(_read(part.rstrip()) or ())]
    return found


def _clause_openings(doc: Iterable[Token]) -> Iterator[Token]:
    """The first word of each clause after a comma and "and", "but", "while" or "whereas", or of an order after ":"."""
    for token in doc:
        if token.dep_ == "conj" and token.tag_ == "VB" and token.doc[token.i - 1].text == ":":  # "It is hot: cool it."
            yield token
            continue
        behind = token.left_edge.i + (token.dep_ == "advcl")
        opened = any(c.dep_ in SUBJECTS and c.left_edge.i == behind for c in token.children) and finite_tags(token)
        joined = token.dep_ in ("conj", "advcl") and behind > 1 and token.doc[behind - 2].text == ","
        shared = token.dep_ == "conj" and any(conditions(first_conjunct(token)))  # "If it rains, A stops, and B waits"
        if opened and joined and token.doc[behind - 1].lower_ in _PARTING and not shared:
            yield token.doc[behind]


def is_governed(text: str) -> bool:
    """Does a finite verb govern the text, or is it an instruction; True without the parser.

    >>> [is_governed(text) for text in ("The crystals are white.", "white crystals", "Dry the crystals.")]
    [True, False, True]
    """
    doc = parse(text)
    return doc is None or any(t.tag_ in FINITE or (t.tag_ == "VB" and t.dep_ == "ROOT") for t in doc)
