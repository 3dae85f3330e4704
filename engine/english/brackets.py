"""Brackets and pairs of dashes in a sentence: what they say of the noun before them, as a statement of its own.

Brackets that give a condition, a count or a part of a name stay in the sentence; those that name a source or a part of
it say nothing. A sentence after a single dash is a part of its own. Left out: brackets in brackets, other dashes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from engine.english.notation import MONTHS
from engine.english.parser import can_be, parse
from engine.english.tree import AUXILIARIES, BE, QUOTES, SUBJECTS, Inserted, Statement, is_plural

if TYPE_CHECKING:
    from spacy.tokens import Token

CONTENT = ("NOUN", "PROPN", "NUM", "VERB", "ADJ")
PART = re.compile(r"(?!\s)(?:\([^()]*\)|[^;])+")  # between semicolons outside brackets
NUMBERED = re.compile(  # a list mark, a sign in its place, or a bracket that nothing closes
    r"\s*(?:(?:\d{1,3}[.)]|\(?(?:\d{1,3}|[a-z]|[ivx]{1,4})\)|[-+*•–·▪]|#{1,6}|[\u2190-\u2bff\U0001f300-\U0001faff]\ufe0f?)\s+"
    r"|\((?=[^)]*$))"
)
YEAR = re.compile(r"\d{4}")
_BRACKET = re.compile(  # or a pair of dashes
    r"\s+[(\[]\s*([^()\[\]]*)[)\]](?!\w)|\s?—\s?(?=[^\W\d])([^()\[\]—]{2,120}?)\s?—\s?(?=[^\W\d])"
)
_NAME_BEFORE = re.compile(r"[A-Z]\w*(?:\s+\([^()]*\))*$")  # "the Care (Scotland) Act"
_NAME_AFTER = re.compile(r"(?:\s+\([^()]*\))*\s+[A-Z]")
_KEPT = re.compile(r"[a-z]|[ivx]+|\d{1,2}|\d{4}\s*[-–]\s*\d{4}", re.IGNORECASE)  # "(b)", "(3)", "(1914–1953)"
_SOUNDS = re.compile("[ˈˌː]")  # "Wien [ˈviːn]"; other phonetic letters are in names, too
_LABELLED = re.compile(r"([^\W\d][^:,;]{0,30}?)\s?: (?=\S)")  # "Korean: 대구텍"
_DAY = r"((?:c\.\s?)?(?:\d\d? )?(?:[A-Z][a-z]+\.? )?(?:\d\d?, )?\d{3,4})"
_ASKING = ("WDT", "WP", "WP$")  # "(which is old)"
_LIFE = re.compile(rf"{_DAY}\s*[-–]\s*{_DAY}")  # "April 28, 1930 – August 3, 1983"
_COUNT = re.compile(r"\d|No\.")  # "3 gold", "No. 11"
_COUNTED = re.compile(r"\d[^\s,()]*(?: [^\s,()]+){0,2}$")  # "371 feet"
_PLACE = r"(?:(?:pp?|ss?|secs?|ch|arts?|paras?|figs?|tabs?|eqs?)\.|§+|(?i:page|section|chapter|article|table|figure)s?)"
_UNNAMED = "|".join((*MONTHS, "Spring", "Summer", "Autumn", "Winter"))
_REFERENCE = re.compile(  # "see Table 2", "the lease, s. 4", "Moreno 2018", not "May 2018"
    rf"(?i:sources?|references?|see|cf\.):? .*|(?:.*, )?{_PLACE}\s?[\dIVX][\w.\-–, ]*"
    rf"|(?!(?:{_UNNAMED})\b)[A-Z](?:[^,;()\d]{{0,60}},|[\w'’-]+(?: et al\.?| (?:and|&) [A-Z][\w'’-]+)?) \d{{4}}[a-z]?"
)


def without_brackets(text: str) -> tuple[str, list[int], list[tuple[int, str, int]]]:
    """The text without list number, double blanks and most brackets; source offsets; the brackets to state.

    A bracket is (offset in the result, content, offset of the content in `text`).
    """
    numbered = NUMBERED.match(text)
    at = numbered.end() if numbered else 0
    kept: list[int] = []
    asides, apart = [], set[int]()

    def keep(start: int, end: int) -> None:
        for i in range(start, end):
            if not text[i].isspace() or (kept and not text[kept[-1]].isspace()):
                kept.append(i)

    for match in _BRACKET.finditer(text, at):
        in_name = _NAME_BEFORE.search(text[: match.start()]) and _NAME_AFTER.match(text, match.end())
        place = match.lastindex or 1
        parts = [(f.group().strip(), match.start(place) + f.start()) for f in PART.finditer(match.group(place))]
        counted = _COUNTED.search(text[: match.start()]) is not None
        if in_name or any(_qualifies(part, counted) and not _REFERENCE.fullmatch(part) for part, _ in parts):
            continue
        keep(at, match.start())
        for part, start in parts:
            if part[0].isalnum() and not set(part) & set(QUOTES) and not _REFERENCE.fullmatch(part):
                asides.append((len(kept), part, start))
        at = match.end()
        keep(match.start(), match.start() + 1)  # the words around it stay apart
        apart.add(match.start())
    keep(at, len(text))
    return "".join(" " if i in apart or text[i].isspace() else text[i] for i in kept), kept, asides


def _qualifies(content: str, counted: bool) -> bool:
    """Do brackets say under what condition, how far or how many, rather than what the noun before them is?

    `counted`: they follow an amount, which they give in another unit.
    """
    kinds = ("SCONJ", "ADP", "ADV", "CCONJ", "VERB", "SYM")
    inside = list(parse(content) or ())
    lettered = len(inside) == 1 and content.isupper()  # "(WHO)" and "(OR)" are read as "who" and "or"
    opening = any(w.tag_ in _ASKING or (w.pos_ in kinds and not _is_told(content)) for w in inside[:1] if not lettered)
    opening |= len(inside) == 1 and content.isascii() and inside[0].pos_ in ("ADJ", "INTJ")  # "Ann Lee (right)"
    opening |= "=" in content  # "(n = 38)"
    opening &= not _SOUNDS.search(content)
    amount = _COUNT.match(content) and not (counted or YEAR.fullmatch(content) or _LIFE.fullmatch(content))
    return opening or bool(amount) or _KEPT.fullmatch(content) is not None


def _is_told(content: str) -> bool:
    """Does a participle open the brackets, with words of its own: "born in 1931", and no past as in "died in 1990"?"""
    inside = parse(content)
    if inside is None or len(inside) < 2:
        return False
    return inside[0].tag_ == "VBN" or (inside[0].tag_ == "VBD" and not can_be(inside[0].lower_, "VBD"))


def at_dash(text: str) -> list[tuple[int, str]]:
    """The text, or both sides of its only dash where a sentence follows it, with their offsets.

    >>> at_dash("The river rose—nobody was hurt."), at_dash("It rained—the first time in May.")
    ([(0, 'The river rose'), (15, 'nobody was hurt.')], [(0, 'It rained—the first time in May.')])
    """
    before, dash, after = text.partition("—")
    content = after.strip()
    if not dash or "—" in after or not before.strip() or _qualifies(content, counted=False) or not _is_clause(content):
        return [(0, text)]
    return [(0, before.rstrip()), (len(text) - len(after.lstrip()), after.lstrip())]


def _is_clause(content: str) -> bool:
    """Is it a sentence: "he was eleven", not "A Star Is Born" or "Lind kick", whose verbs may be misread?"""
    for root in (token for token in parse(content) or () if token.head == token):
        subject = next((c for c in root.lefts if c.dep_ in SUBJECTS), None)
        sure = {root.lower_, *(c.lower_ for c in root.lefts if c.dep_ in AUXILIARIES)} & {*BE, "has", "have", "had"}
        if subject is not None and root.text.islower() and (subject.tag_ == "PRP" or sure):
            return True
    return False


def _is_of_another(noun: Token, content: str) -> bool:
    """Do brackets not say what the noun before them is?

    They name the actor of a part ("Rick (Ann Lee)"), a place in a picture ("Rick (centre)"), the year of something in a
    place ("in Cork (1931)"), or a place that has the other, is in it or was it: "Cork (Ireland)", "Ireland (Cork)".
    """
    inside = list(parse(content) or ())
    named = {word.pos_ for word in inside} == {"PROPN"}
    place = named and noun.ent_type_ == "GPE" and not _spelled_out(noun, content)
    year = YEAR.fullmatch(content) and noun.ent_type_ in ("GPE", "LOC", "PERSON")
    kinds = {word.ent_type_ for word in inside}
    dated = kinds == {"DATE"} or ("DATE" in kinds and inside[0].pos_ == "PROPN")  # "Ann Lee (Cork, 4 May 1979 – ...)"
    day = dated and not _LIFE.fullmatch(content)
    actor = named if len(content.split()) > 1 else content.islower()  # "Ann Lee (left)": in a picture
    return bool(year) or place or (noun.ent_type_ == "PERSON" and (day or actor))


def _named_before(last: Token, content: str) -> Token | None:
    """The noun that brackets are about, whose last word is before them; that of "Toy Story 3", None of "at pH 7"."""
    numbered = last.pos_ == "NUM" and last.ent_type_ != "DATE" and last.head.i == last.i - 1
    noun = last.head if numbered and (content[0].isalpha() or YEAR.fullmatch(content)) else last
    about = _SOUNDS.search(content) or not _is_of_another(last, content)
    return noun if noun.pos_ in ("NOUN", "PROPN") and about else None


def aside(
    phrase: Callable[[Token], Sequence[Token]], last: Token, content: str, at: int, *, dashes: bool
) -> Statement | None:
    """The content of brackets as a sentence, about the noun whose `last` word is before them if it is not one itself.

    None if it is not on a noun.

    `phrase` gives the words of a noun with its modifiers; `at` is the content's offset in the source. In `dashes` it is
    about the whole phrase before them, not its last noun: "two clubs in Cork—Alma and Bor—".
    """
    noun = _named_before(last, content)
    if noun is None:
        return None
    while dashes and noun.dep_ == "pobj" and noun.head.head.pos_ in ("NOUN", "PROPN"):
        noun = noun.head.head
    while noun.dep_ == "pobj" and noun.head.lower_ in ("of", "per") and noun.head.head.pos_ in ("PROPN", "NUM"):
        noun = noun.head.head
    words = [Inserted(word.group(), at + word.start()) for word in re.finditer(r"\S+", content)]
    if _is_clause(content):
        return Statement(noun, (*words,))
    if spelled := _spelled_out(last, content):
        first = spelled[0].i
        link = "are" if is_plural(last) and is_plural(last.doc[first : last.i + 1].root) else "is"
        return Statement(noun, (*spelled, Inserted(f"{link} abbreviated as"), *words))
    named = [t for t in phrase(noun) if t.i <= last.i]
    told, many = _is_told(content), is_plural(noun) and noun.tag_ == "NNS"  # a title is one thing
    link = ("were" if told else "are") if many else "was" if told else "is"
    if life := _LIFE.fullmatch(content):
        since, until = (Inserted(life.group(n), at + life.start(n)) for n in (1, 2))
        lived = "lived" if noun.ent_type_ == "PERSON" else link.replace("is", "was")
        return Statement(noun, (*named, Inserted(f"{lived} from"), since, Inserted("to"), until))
    if not told and (label := _LABELLED.match(content)):  # "the Korean for TaeguTec is 대구텍"
        if any(word.dep_ in SUBJECTS for word in parse(content[label.end() :]) or ()):
            return None  # "note: prices may vary"
        value = [word for word in words if word.start >= at + label.end()]
        language = any(word.ent_type_ in ("NORP", "LANGUAGE") for word in parse(label.group(1)) or ())
        led = (Inserted("the"), Inserted(label.group(1), at), Inserted("for" if language else "of"))
        return Statement(noun, (*led, *named, Inserted("is"), *value))
    link += " from" if YEAR.fullmatch(content) else " pronounced" if _SOUNDS.search(content) else ""
    return Statement(noun, (*named, Inserted(link), *words))


def _spelled_out(last: Token, letters: str) -> list[Token]:
    """The words up to `last` whose initials are the letters: "Council on Tall Buildings and Urban Habitat (CTBUH)"."""
    content, every, letters = "", "", letters.replace(".", "")
    for word in reversed(last.doc[: last.i + 1]):
        content, every = word.text[0] * (word.pos_ in CONTENT) + content, word.text[0] + every
        if len(letters) > 1 and letters.upper() in (content.upper(), every.upper()):
            return list(last.doc[word.i - (word.i > 0 and word.nbor(-1).dep_ == "det") : last.i + 1])
    return []
