"""Take coordinations apart: a statement for each part that is true alone, with what it shares (ARE, section 4.1.2).

Each part keeps the subject, auxiliary, article, condition or phrase that it shares with the others. Parts of which
something is said together, in turn, or of one alone stay whole. Left out: "or", "neither", and misread trees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from engine.core.text import word_set
from engine.english.parser import can_be
from engine.english.tree import (
    AUXILIARIES,
    BE,
    CONDITIONS,
    ENDS,
    FINITE,
    MARKS,
    MEASURED,
    NAMING,
    SUBJECTS,
    VERBAL,
    Inserted,
    Statement,
    first_conjunct,
    follows_comma,
    has_child,
    in_brackets,
    in_one_quote,
    is_bare,
    is_instruction,
    is_listed,
    is_negated,
    is_plural,
    is_torn,
    marks_around,
    relative_word,
    shared_be,
    tag_of,
    verb_above,
)

if TYPE_CHECKING:
    from spacy.tokens import Token

_JOINING = word_set("and but & as well also plus both while yet")
_WHENEVER = word_set("when whenever once according excluding without")
_MADE = word_set(  # of several things together
    "number amount sum total average mean ratio product difference mixture blend combination comparison merger union"
    " consist consists consisted composed comprised made"
)
_MUTUAL = word_set(  # verbs that say of their subjects what one of them cannot do alone
    "meet meets met marry married divorce divorced merge merges merged mix mixed combine combines combined share shares"
    " shared differ differs differed separate separated collide collided coincide coincided overlap overlaps overlapped"
)
_EXCEPTING = word_set("except excluding besides")
_OF_A_PAST = {*SUBJECTS, *AUXILIARIES, "dobj", "agent", "attr", "acomp", "ccomp", "xcomp"}
_ALL = word_set("nobody none nothing everyone everybody everything anyone anybody anything all")
_DETERMINING = {"det", "poss", "nummod"}
_TELLING_AMOUNT = {"det", "predet", "amod", "neg"}
_CLAUSES = ("acl", "relcl")
_LENT = word_set("the every each any all these those")  # what is so of all parts is so of each
_AMOUNTS = word_set("no few fewer many most more some several half little less much enough not")
_TOGETHER = word_set("both together respectively each jointly")
_SINGULAR = {"are": "is", "were": "was", "have": "has", "do": "does", "'re": "is"}
_COARSE = {"AUX": "VERB", "PROPN": "NOUN", "PRON": "NOUN", "NUM": "NOUN"}


def split_coordination(statement: Statement) -> Iterator[Statement]:
    """A statement for each part of the first coordination that can be split, each split further."""
    held = {token.i for token in statement.tokens}
    enclosed = in_brackets(statement.words)
    opening = (word for word in statement.tokens if word.dep_ != "conj" and word.i not in enclosed)
    chains = (_conjuncts(word, held) for word in opening if not word.is_ancestor(statement.root))
    series = (found for found in chains if len(found) > 1 and not _shares_clause(found, held))
    chain = next((found for found in series if _can_split(found, statement.root)), None)
    if chain is None:
        yield statement
        return
    for part in chain:
        yield from split_coordination(_with_conjunct(statement, chain, part))


def _conjuncts(word: Token, held: set[int]) -> list[Token]:
    """The word and those coordinated with it, in text order."""
    after = [c for c in word.children if (c.dep_ == "conj" or is_listed(c)) and c.i in held and _is_marked(c)]
    return sorted([word, *(t for c in after for t in _conjuncts(c, held))], key=lambda t: t.i)


def _is_marked(token: Token) -> bool:
    """Is there a mark or conjunction before the part?"""
    at = token.left_edge.i - 1
    while at > 0 and token.doc[at].pos_ == "ADV":
        at -= 1
    return token.doc[at].pos_ in ("CCONJ", "PUNCT", "SYM") or token.doc[at].dep_ in ("cc", "punct")


def _can_split(chain: Sequence[Token], root: Token) -> bool:
    """Is each part true alone: joined by "and" or "but", not inside a name, a condition, a list or "between"?"""
    word, *others = chain
    joints = [c.lower_ for token in chain for c in token.children if c.dep_ in ("cc", "preconj")]
    return _are_alike(chain, joints, root) and not (
        in_one_quote(chain)
        or any(map(is_torn, chain))
        or any(map(_may_share_be, others))
        or _is_named(chain)
        or _is_listing(chain, root)
        or _is_number(chain)
        or _shares_amount(chain)
        or _is_bound(word, root)
        or _is_cut_in_two(word)
        or _has_lost_part(chain)
        or _is_collective(word, joints)
        or _is_excepted(word, joints)
        or _are_pairs(word)
        or _is_nested(chain)
        or _may_be_the_speakers(chain)
        or _shares_end(chain)
        or _shares_standard(chain)
    )


def _are_alike(chain: Sequence[Token], joints: Sequence[str], root: Token) -> bool:
    """Are the parts words of one kind that "and" or "but" joins, without which only verbs are?"""
    word, *others = chain
    coarse = {_COARSE.get(token.pos_, token.pos_) for token in chain}
    bare = {token.tag_ for token in chain if token == word or is_bare(token)}
    kinds = {token.ent_type_ for token in chain if token.ent_type_}
    return not (
        not set(joints) <= _JOINING
        or not (joints or coarse == {"VERB"})
        or {"VERB", "NOUN"} <= coarse
        or "ADV" in coarse
        or (is_instruction(root) and (word != root or coarse != {"VERB"}))  # "stir with ether, chill": nouns, as parsed
        or (word.pos_ not in VERBAL and any(map(is_negated, others)))  # "in Cork but not in Oslo"
        or len({"VB", "VBG", "VBN"} & bare) > 1  # "was dissolved in water and using 20 mL"
        or (len(kinds) > 1 and kinds & MEASURED)  # "EUR 4 left in May and EUR 6 in June"
    )


def _may_share_be(verb: Token) -> bool:
    """Is it a past, or else a participle of the passive before it: "was approved and sent to the states"?"""
    first = first_conjunct(verb)
    passive = any(c.dep_ == "auxpass" for c in first.lefts) and first.lower_ != "born"
    return passive and tag_of(verb) == "VBD" and not has_child(verb, *_OF_A_PAST) and can_be(verb.lower_, "VBN")


def _is_named(chain: Sequence[Token]) -> bool:
    """Are the parts inside one name or a word made of several, or whose something is: "for Ann's and Bea's good"?"""
    word, *others = chain
    name = next((e for e in word.doc.ents if e.start <= word.i < e.end), None)
    return (
        word.dep_ in ("compound", "nmod")  # "the Lee and Cox musical", "Grammy winner and Oscar nominee Ann"
        or any(c.tag_ == "POS" for c in word.children)
        or (name is not None and any(name.start <= token.i < name.end for token in others))
    )


def _is_listing(chain: Sequence[Token], root: Token) -> bool:
    """Do the parts list what the text around them counts: "two towns, Cork and Bonn", "two rules: pay and leave"?"""
    word, *_, last = chain
    opening = word.doc[max(word.left_edge.i - 1, 0) : word.i]
    return (
        (word.dep_ == "appos" and (word != root or is_plural(word.head)))
        or any(c.dep_ == "appos" and c.i > last.i for c in word.children)
        or (word.tag_ == "VB" and any(t.text == ":" for t in opening))
    )


def _is_number(chain: Sequence[Token]) -> bool:
    """Are the parts numbers, or told apart by one ("seasons 2 and 3"), or does one count all ("200 men and women")?

    Or do they tell apart several things: "the first and second floors", "the Irish and US ports".
    """
    word, *others = chain
    told_apart = word.ent_type_ in ("ORDINAL", "NORP", "GPE") and word.dep_ == "amod" and is_plural(word.head)
    numbered = word.pos_ != "NUM" and any(t.pos_ == "NUM" and t.ent_type_ != "DATE" for t in others)
    counted = any(c.dep_ == "nummod" for c in word.lefts) and not any(has_child(t, *_DETERMINING) for t in others)
    return word.dep_ == "nummod" or told_apart or numbered or counted


def _shares_amount(chain: Sequence[Token]) -> bool:
    """Does an amount or "no" in front of the first noun hold for a later one, which has none: "no pool and gym"?"""
    word, *others = chain
    told = (t.lower_ for c in word.lefts if c.dep_ in _TELLING_AMOUNT for t in (c, *c.children))
    return word.pos_ in NAMING and not _AMOUNTS.isdisjoint(told) and not all(map(_has_amount, others))


def _has_amount(noun: Token) -> bool:
    return any(c.dep_ in _DETERMINING or c.lower_ in _AMOUNTS for c in noun.lefts)


def _shares_clause(chain: Sequence[Token], held: set[int]) -> bool:
    """May a clause behind the last of several nouns be of all: "clerks and pilots who fly must sign"?

    Not where the last has an article of its own, or the first a clause.
    """
    first, *others = chain
    last = others[-1]
    own, later = ([c.i for t in part for c in t.rights if c.dep_ in _CLAUSES] for part in ([first], others))
    behind = any(i > last.i and i in held for i in later)
    return behind and held.isdisjoint(own) and first.pos_ in NAMING and not has_child(last, *_DETERMINING)


def _is_bound(word: Token, root: Token) -> bool:
    """Do "between", a condition, a gap or a relative phrase ("in which A is cut and sold") hold the parts together?"""
    relative = relative_word(word) if word.dep_ == "relcl" and word != root else None
    return (
        (relative is not None and relative.dep_ not in SUBJECTS)
        or _may_be_closed(word, root)
        or any(
            above.lower_ in ("between", "among")
            or (above.dep_ in ("prep", "agent") and has_gap(above))
            or any(c.dep_ == "mark" and c.lower_ in CONDITIONS for c in above.children)
            or (above.dep_ == "advcl" and above != root and any(c.lower_ in _WHENEVER for c in above.lefts))
            for above in (word, *word.ancestors)
        )
    )


def _may_be_closed(word: Token, root: Token) -> bool:
    """Is a clause in a series with one that may be the main verb's: "left since it rained, and the mill closed"?"""
    later = (c for c in word.rights if c.dep_ == "conj" and has_child(c, *SUBJECTS))
    return word.dep_ == "advcl" and word != root and any(c.doc[c.left_edge.i - 2].text == "," for c in later)


def has_gap(phrase: Token) -> bool:
    """Is a verb left out behind the phrase: "law at Cork and art at Bonn", "in Cork in May and in Bonn in June"?"""
    last, part = phrase.right_edge.i, next((c for c in phrase.children if c.dep_ == "conj"), None)
    beside = [c for c in phrase.head.rights if c.dep_ in ("prep", "agent")]
    later = [c for c in beside if c.i > last]
    if part is not None:
        between = any(phrase.i < c.i < part.i for c in beside) or _is_dated(phrase) != _is_dated(part)
        return (bool(later) and part.lower_ == phrase.lower_ and between) or phrase.lower_ in ENDS - {part.lower_}
    series = [t for noun in phrase.children for t in noun.conjuncts]
    if not series or (phrase.lower_ == "in" and series[-1].pos_ == "PROPN"):  # "in Cork and Kerry in Ireland"
        return False
    if len({c.lower_ for c in beside if c.i <= phrase.i} & {c.lower_ for c in later}) > 1:
        return True  # "sold the house to Ann for 2 euros and the car to Bo for 5"
    same = [c for c in later if c.i <= last + 2 and c.lower_ == phrase.lower_]
    return any(_is_dated(c) == _is_dated(phrase) for c in same)


def _is_dated(phrase: Token) -> bool:
    return any(c.ent_type_ == "DATE" for c in phrase.children)


def _is_cut_in_two(word: Token) -> bool:
    """Is the word in front of the comma before the series its first part, as parsed a second subject or attribute?"""
    before = word.left_edge.i - 2
    beside = [c for c in word.head.children if c.dep_ == word.dep_ and c.right_edge.i == before]
    return word.dep_ in (*SUBJECTS, "acomp") and bool(beside) and word.doc[before + 1].text == ","


def _has_lost_part(chain: Sequence[Token]) -> bool:
    """Has the verb above the series two objects, of which the second may be a part of a misread series?

    Or has a part another behind it without mark or conjunction: "gave Ann a book and Bo a pen".
    """
    word, *_ = chain
    unmarked = any(c.dep_ == "conj" and not _is_marked(c) for token in chain for c in token.rights)
    return unmarked or sum(c.dep_ == "dobj" for c in verb_above(word).rights) > 1


def _is_collective(word: Token, joints: Sequence[str]) -> bool:
    """Do the parts of the coordination make up what they are said to be, or is it said of both, or of each in turn?

    "The mill and the port are the main buyers", "the ports are Cork and Galway", "Ann and Bo both left", "the sum of 3
    and 4", "Ann and Bo are twins", "Ann and Bo met".
    """
    verb = word.head
    if word.dep_ == "pobj":
        return verb.lower_ == "of" and verb.head.lower_ in _MADE | _AMOUNTS
    if word.dep_ in SUBJECTS:
        # "The Prince and Me is a film"
        is_one = "and" in joints and any(t.tag_ == "VBZ" or t.lower_ == "was" for t in (verb, *verb.lefts))
        # "age and diabetes are seen as causes"
        roles = (n for c in verb.rights if c.lower_ == "as" for n in c.children if n.dep_ == "pobj")
        together = any(t.lower_ in _TOGETHER and t.dep_ != "preconj" for t in verb.subtree)
        if is_one or together or any(map(is_plural, roles)) or any(map(_is_mutual, (verb, *verb.conjuncts))):
            return True
    wholes = [c for c in verb.children if c.dep_ in ("nsubj", "attr") and c != word and c.pos_ == "NOUN"]
    equated = verb.lower_ in BE and word.dep_ in ("nsubj", "attr") and not is_plural(word)
    return equated and any(map(is_plural, wholes))


def _is_mutual(verb: Token) -> bool:
    """Is the verb one of meeting or sharing, without another object than what is shared?"""
    return verb.lower_ in _MUTUAL and (verb.lower_.startswith("share") or all(c.dep_ != "dobj" for c in verb.rights))


def _is_excepted(word: Token, joints: Sequence[str]) -> bool:
    """Is something said of all but the parts ("nobody but Ann and Bo"), or of them alone ("only Ann and Bo")?"""
    phrase = word.head if word.dep_ == "pobj" else word  # "only on Mondays and Fridays"
    alone = "only" in (word.doc[word.left_edge.i].lower_, word.doc[phrase.left_edge.i].lower_)
    return alone or word.head.lower_ in _EXCEPTING or (word.lower_ in _ALL and "but" in joints)


def _are_pairs(word: Token) -> bool:
    """Does each part have an amount of its own: "Ann and Bo own 60% and 40%", "are 6 and 4, respectively"?"""
    verb = verb_above(word)
    if verb == word or word.pos_ not in (*NAMING, "NUM", "ADJ"):
        return False
    governed = (t for t in verb.subtree if t != verb and verb_above(t) == verb)
    series = [t for t in governed if t.dep_ != "conj" and has_child(t, "conj")]
    counted = any((t.ent_type_ in MEASURED or t.pos_ == "NUM") and t.ent_type_ != "DATE" for t in series)
    return (len(series) > 1 and counted) or any(c.lower_ == "respectively" for c in verb.subtree)


def _is_nested(chain: Sequence[Token]) -> bool:
    """Is a later part one of the noun above the word, as parsed a part of the phrase inside it?

    "The purchase of a lamp and the repair of an oven"; "fields untended and villages empty"; "a book in French, a pen
    and a lamp".
    """
    word, *others = chain
    if word.dep_ == "amod":
        return any(part.pos_ == "ADP" for part in chain) or any(part.tag_ == "NNS" for part in others)
    above = {a.lower_ for a in word.ancestors if a.dep_ == "prep" and a.head.pos_ in NAMING}
    repeated = any(c.dep_ == "prep" and c.lower_ in above for part in others for c in part.children)
    if word.dep_ != "pobj":
        return False
    before, last = word.doc[max(word.head.i - 1, 0)], others[-1]
    behind = word.doc[min(last.i + 1, len(word.doc) - 1)]  # wherever it hangs: "art by Ann and songs by Bo"
    again = before.pos_ in NAMING and last.pos_ == "NOUN" and behind.lower_ == word.head.lower_
    listed = before.pos_ == "NOUN" and not _is_one(word) and any(map(_is_one, others))
    return again or listed or (repeated and not has_child(word, "prep"))


def _is_one(noun: Token) -> bool:
    """Has it "a" in front, which is not of a name: "roles in Gaslight, A Star Is Born and Carrie"?"""
    return noun.pos_ == "NOUN" and any(c.lower_ in ("a", "an") for c in noun.lefts)


def _may_be_the_speakers(chain: Sequence[Token]) -> bool:
    """Is a later past of what somebody said or of the speaker: "ruled that the deal was void and ordered a refund"?"""
    word, *others = chain
    described = word.lower_ in BE and has_child(word, "acomp", "attr")
    earlier = described or any(c.lower_ == "had" for c in word.lefts)
    pasts = (part for part in others if is_bare(part) and not has_child(part, "mark"))
    told = word.dep_ == "ccomp" and word.head.tag_ == "VBD"
    return told and earlier and any(can_be(part.lower_, "VBD") for part in pasts)


def _shares_end(chain: Sequence[Token]) -> bool:
    """Has a part nothing of its own after it that the end of the next one may belong to?

    "They support and extend it"; "the making and selling of looms".
    """
    return any(
        not any(c.i > part.i and c.dep_ not in ("cc", "conj", "punct") for c in part.children)
        and any(c.dep_ == "dobj" or (c.dep_ == "prep" and c.lower_ == "of") for c in after.rights)
        and not has_child(after, *SUBJECTS, *_DETERMINING)
        for part, after in pairwise(chain)
    )


def _shares_standard(chain: Sequence[Token]) -> bool:
    """Is what the first of several comparatives is compared with behind the last: "lighter and cheaper than tin"?"""
    first, last = chain[0], chain[-1]
    compared = next((t.i for t in first.subtree if t.lower_ == "than" and t.i > first.i), -1)
    return compared > last.i and any(t.tag_ in ("JJR", "RBR") for t in (first, *first.lefts))


def _with_conjunct(statement: Statement, chain: Sequence[Token], item: Token) -> Statement:
    """The statement with one part of the coordination instead of all."""
    first, before = chain[0], max(chain[0].left_edge.i - 1, 0)
    in_front = [*first.doc[before : first.i], *(first.head.lefts if first.dep_ == "amod" else ())]
    statement = statement.without({t.i for t in in_front if t.lower_ == "both" and t.dep_ not in SUBJECTS})
    if first.dep_ in SUBJECTS and _is_enclosed(first):
        statement = statement.without({first.right_edge.i + 1})
    held = {token.i for token in statement.tokens}
    whole = {t.i for t in first.subtree} & held
    gone: set[int] = set()
    for other in chain:  # of which each may hang on the one before it
        if other.i > item.i and other.i not in gone:
            gone |= {t.i for t in other.subtree}
    gone |= {t.i for c in item.children if c.dep_ in ("cc", "preconj") for t in c.subtree}  # "as well as"
    mine = {t.i for t in item.subtree} & held - gone
    shared = _shared(first, item) & held if item != first else set()
    at = next(n for n, word in enumerate(statement.words) if not isinstance(word, Inserted) and word.i in whole)
    picked = [t for t in statement.tokens if t.i in mine]
    while picked and picked[-1].text in MARKS:
        picked.pop()
    picked = sorted((*picked, *(t for t in statement.tokens if t.i in shared - mine)), key=lambda t: t.i)
    at_own = next((n for n, word in enumerate(picked) if word.i in mine), 0)
    rest = statement.without(whole).words
    forms = statement.forms
    if first.dep_ in ("nsubj", "nsubjpass") and not is_plural(item):
        forms = forms | _singular(first.head)
    root = item if statement.root == first else statement.root
    words = (*rest[:at], *_article(first, item, picked), *picked[:at_own], *_link(first, item), *picked[at_own:])
    return Statement(root, (*words, *rest[at:]), forms)


def _is_enclosed(subject: Token) -> bool:
    """Are the later subjects between commas: "Ann, as well as Bo, left"?"""
    opened = any(c.dep_ == "cc" and follows_comma(c) for c in subject.children)
    return opened and subject.doc[min(subject.right_edge.i + 1, len(subject.doc) - 1)].text == ","


def _shared(first: Token, item: Token) -> set[int]:
    """Token indices that a later part shares: a verb's subject and auxiliaries, a noun's article and phrase."""
    taken: list[Token] = []
    if first.pos_ in VERBAL and (item.pos_ in VERBAL or has_child(item, *SUBJECTS)):
        lent = ["mark"] if not has_child(item, "mark") else []
        taken = conditions(first)
        if not has_child(item, *SUBJECTS):
            lent += SUBJECTS
            taken += _in_front(first, item)
            if tag_of(item) not in FINITE and not has_child(item, *AUXILIARIES):
                lent += AUXILIARIES
        taken += [c for c in first.lefts if c.dep_ in lent]
    elif item.pos_ == "NOUN" and first.pos_ == "NOUN":
        taken = [c for c in first.rights if c.dep_ in ("prep", *_CLAUSES) and c.i > item.i and is_behind_series(c)]
        if not has_child(item, *_DETERMINING):
            taken += [c for c in first.lefts if c.dep_ == "poss" or c.lower_ in _LENT]
    return {t.i for c in taken for t in c.subtree}


def is_behind_series(part: Token) -> bool:
    """Is the phrase or clause of the first noun of a series behind a later one?"""
    before = part.left_edge.i - 1
    before -= part.dep_ in _CLAUSES and follows_comma(part)
    return before > 0 and part.doc[before] in part.head.conjuncts


def conditions(verb: Token) -> list[Token]:
    """The phrases in front of a verb that say when or according to whom it holds ("if asked"), with their commas."""
    before = [c for c in verb.lefts if c.dep_ in ("advcl", "prep") and _is_condition(c.doc[c.left_edge.i])]
    return _with_marks(verb, before)


def _is_condition(opening: Token) -> bool:
    """Does the word open a condition, also by its place in front of the subject: "had it rained"?"""
    return opening.lower_ in CONDITIONS | _WHENEVER or opening.dep_ in AUXILIARIES


def _in_front(verb: Token, item: Token) -> list[Token]:
    """The phrases in front of the verb and its subject, with their commas, which a later verb of the subject shares.

    Not one of time if the later verb has its own, or another tense: "In May he came and left in June", "and is here".
    """
    own = any(t.ent_type_ == "DATE" for t in item.subtree)
    timed = own or has_child(item, *AUXILIARIES) or tag_of(item) != tag_of(verb)
    before = [c for c in verb.lefts if c.dep_ == "prep" and any(d.dep_ in SUBJECTS and d.i > c.i for d in verb.lefts)]
    before = [c for c in before if not (timed and any(t.ent_type_ == "DATE" for t in c.subtree))]
    return _with_marks(verb, before)


def _with_marks(verb: Token, phrases: Sequence[Token]) -> list[Token]:
    """Phrases in front of the verb with the commas around them."""
    around = {i for phrase in phrases for i in marks_around(phrase)}
    return [*phrases, *(c for c in verb.lefts if c.i in around)]


def _article(first: Token, item: Token, words: Sequence[Token]) -> tuple[Inserted, ...]:
    """The article that a later part of "is a clerk and pilot" shares, in front of its words."""
    indefinite = first.dep_ == "attr" and any(c.lower_ in ("a", "an") for c in first.children)
    shares = item != first and indefinite and item.tag_ == "NN" and not has_child(item, *_DETERMINING)
    return (Inserted(article(words[0])),) if shares else ()


def article(word: Token) -> str:
    """The indefinite article in front of a word."""
    return "an" if word.lower_.startswith((*"aeiou", "heir", "hour", "hono")) else "a"


def _link(first: Token, item: Token) -> tuple[Inserted, ...]:
    """The "is" that a later participle shares in "is open and closed"."""
    shares = item != first and first.lower_ in BE and tag_of(item) == "VBN" and shared_be(item) is not None
    return (Inserted(first.text),) if shares else ()


def _singular(verb: Token) -> dict[int, str]:
    """Singular forms of a verb and of those coordinated with it, for one subject instead of several."""
    forms: dict[int, str] = {}
    for word in (verb, *(c for c in verb.children if c.dep_ in (*AUXILIARIES, "conj"))):
        low = word.lower_
        if low in _SINGULAR and word.tag_ in ("VBP", "VBD"):
            forms[word.i] = _SINGULAR[low]
        elif word.tag_ == "VBP":
            plain = low[:-1] + "ie" if re.search(r"[^aeiou]y$", low) else low
            forms[word.i] = plain + ("es" if re.search(r"(?:s|x|z|ch|sh|o)$", low) else "s")
    return forms
