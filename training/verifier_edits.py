"""Make contradictions, paraphrases and gaps by changing a sentence in code.

Each function takes a sentence and a seeded `random.Random` and returns a changed sentence, or None if the
sentence has nothing to change. A changed number, date, name, direction or negation contradicts the original; a
dropped detail leaves the original borne out only in part; a rewording, another form of a negation and the passive
voice keep it borne out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from engine.english.parser import parse
from engine.english.words import ANTONYMS, PAIRS, table

SYNONYMS = table(PAIRS["rewordings"], ";")
MONTHS = """January February March April May June July August September October November December""".split()  # noqa: SIM905
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|has|have|had|can|could|will|would|should|may|must|did|does|do)\b(?! not\b)"
)
_NAME = re.compile(r"\b[A-Z][\w'’-]*[a-z](?: (?:of |the |de |van |von )?[A-Z][\w'’-]*[a-z])*")
_NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w]|[.,]\d)")
_NOT = re.compile(r" (?:not|never|n't)\b")
DENIAL = re.compile(r"\b(?:not|no|never|none|nobody|nothing|nor|neither|without|cannot)\b|n't\b", re.IGNORECASE)


def change_number(text: str, rng: Random, names: list[str]) -> str | None:
    """One number replaced by another of the same look (years move by 1 to 40, others by a factor)."""
    found = list(_NUMBER.finditer(text))
    if not found:
        return None
    match = rng.choice(found)
    return text[: match.start()] + _other_number(match.group(), rng) + text[match.end() :]


def _other_number(raw: str, rng: Random) -> str:
    value = float(raw.replace(",", ""))
    if raw.isdigit() and len(raw) == 4 and 1000 <= value <= 2100:
        return str(int(value) + rng.choice([-1, 1]) * rng.choice([1, 1, 2, 3, 5, 10, 20, 40]))
    for _ in range(10):
        digits = len(raw.split(".")[1]) if "." in raw else 0
        moved = rng.choice(
            [value * rng.uniform(1.15, 4), value / rng.uniform(1.15, 4), value + 1, value - 1, value * 10]
        )
        new = f"{abs(moved):,.{digits}f}" if "," in raw else f"{abs(moved):.{digits}f}"
        if rng.random() < 0.2 and raw.isdigit() and len(raw) > 1:
            new = raw[0] + raw[1:][::-1] if raw[1:] != raw[1:][::-1] else new
        if new != raw:
            return new
    return str(int(value) + 7)


def change_date(text: str, rng: Random, names: list[str]) -> str | None:
    """One month replaced by another."""
    found = [m for m in re.finditer(r"\b(" + "|".join(MONTHS) + r")\b", text) if m.group() != "May" or "May " in text]
    if not found:
        return None
    match = rng.choice(found)
    return text[: match.start()] + rng.choice([m for m in MONTHS if m != match.group()]) + text[match.end() :]


def change_name(text: str, rng: Random, names: list[str]) -> str | None:
    """One name inside the sentence replaced by another of `names`."""
    found = [m for m in _NAME.finditer(text) if m.start() > 0 and m.group() not in MONTHS]
    if not found:
        return None
    match = rng.choice(found)
    shape = len(match.group().split())
    others = [n for n in names if n not in text and match.group() not in n and not set(n.split()) & set(text.split())]
    others = [n for n in others if abs(len(n.split()) - shape) <= 1]
    return text[: match.start()] + rng.choice(others) + text[match.end() :] if others else None


def swap_names(text: str, rng: Random, names: list[str]) -> str | None:
    """Swap two names of the sentence, one on each side of a past or passive verb."""
    found = list(_NAME.finditer(text))
    if len(found) < 2:
        return None
    one = rng.randrange(len(found) - 1)
    a, b = found[one], found[one + 1]
    between = text[a.end() : b.start()]
    if a.group() == b.group() or not re.search(r"\b(?:by|than|after|before|from|over|\w+ed|beat|won|lost)\b", between):
        return None
    return text[: a.start()] + b.group() + between + a.group() + text[b.end() :]


def change_word(text: str, rng: Random, names: list[str]) -> str | None:
    """One word replaced by its opposite (or a unit by another)."""
    found = [m for m in re.finditer(r"[A-Za-z]+", text) if m.group().lower() in ANTONYMS]
    if not found:
        return None
    match = rng.choice(found)
    new = rng.choice(ANTONYMS[match.group().lower()])
    new = new.capitalize() if match.group()[0].isupper() else new
    return text[: match.start()] + new + text[match.end() :]


def negate(text: str, rng: Random, names: list[str]) -> str | None:
    """Remove a negation, or add one after the first auxiliary verb."""
    found = _NOT.search(text)
    if found:
        return text[: found.start()] + text[found.end() :]
    match = _AUXILIARY.search(text)
    if not match:
        return None
    return text[: match.end()] + rng.choice([" not", " not", " never"]) + text[match.end() :]


_VERB = "is|are|was|were|has|have|had|can|could|will|would|should|may|must|did|does|do"
_RENEGATED: tuple[tuple[str, tuple[str, ...]], ...] = (
    (rf"\b(?:No|None of the) ((?:[\w'’-]+ ){{1,4}}?)({_VERB})\b", (r"The \1\2 not", r"It is not true that \1\2")),
    (rf"^(?:The|Any) ((?:[\w'’-]+ ){{1,4}}?)({_VERB}) not\b", (r"No \1\2",)),
    (r"\b(has|have|had) not (?:a |an |any )?(?=[a-z])", (r"\1 never ",)),
    (r"\bdoes not have (a |an |any )?", (r"lacks \1", r"is without \1")),
    (r"\bdid not (?=[a-z])", ("failed to ", "didn't ")),
    (r"\b(is|are|was|were) not (?:a |an |any )(?=[a-z])", (r"\1 no ", r"\1 never a ")),
    (r"\b(is|are|was|were|has|have|had|could|would|should|does|do) not\b", (r"\1n't", r"\1 never", r"\1 in no case")),
    (r"\b(can|will|may|must) not\b", (r"\1 never", r"\1 in no case", r"\1 under no circumstances")),
    (r"\b(?:no one|nobody)\b", ("not a single person", "none of the people")),
    (r"\bnever\b", ("not once", "at no time")),
    (r"\bwithout (?:a|an|any) ", ("with no ",)),
)


def renegate(text: str, rng: Random) -> str | None:
    """The first negation of one drawn form, said in another; None without one.

    >>> renegate("He did not leave without a word.", Random(1))
    'He failed to leave without a word.'
    """
    forms = [(pattern, news) for pattern, news in _RENEGATED if re.search(pattern, text)]
    if not forms:
        return None
    pattern, news = rng.choice(forms)
    changed = re.sub(pattern, rng.choice(news), text, count=1)
    return changed[0].upper() + changed[1:]


def passive(text: str) -> tuple[str, str] | None:
    """A sentence "A opened B in May." as "B was opened by A in May.", and with both in each other's place.

    Only for a regular verb in the past with a subject and an object on either side of it; None else, and without the
    parser.

    >>> passive("Hanna Lind opened the old bridge in 1874.")
    ('The old bridge was opened by Hanna Lind in 1874.', 'Hanna Lind was opened by the old bridge in 1874.')
    """
    doc = parse(text)
    verb = next((t for t in doc or () if t.dep_ == "ROOT" and t.tag_ == "VBD" and t.text.endswith("ed")), None)
    if doc is None or verb is None:
        return None
    arms = {t.dep_: t for t in verb.children if t.dep_ in ("nsubj", "dobj")}
    if len(arms) < 2 or arms["nsubj"].pos_ == "PRON" or arms["dobj"].pos_ == "PRON":
        return None
    (a, b), (c, d) = ((t.left_edge.i, t.right_edge.i + 1) for t in (arms["nsubj"], arms["dobj"]))
    if a != 0 or b != verb.i or c != verb.i + 1 or max(b - a, d - c) > 10:
        return None
    subject, thing, rest = doc[a:b].text, doc[c:d].text, doc[d:].text
    if arms["nsubj"].pos_ != "PROPN" and doc[a].ent_iob_ == "O":
        subject = subject[0].lower() + subject[1:]

    def said(first: str, second: str, arm: str) -> str:
        many = "Number=Plur" in arms[arm].morph or any(t.dep_ == "conj" for t in arms[arm].children)
        joint = "" if rest[:1] in (".", ",", "") else " "
        return f"{first[0].upper()}{first[1:]} {'were' if many else 'was'} {verb.text} by {second}{joint}{rest}"

    return said(thing, subject, "dobj"), said(subject, thing, "nsubj")


Change = Callable[[str, Random, list[str]], str | None]
CHANGES: dict[str, tuple[Change, int]] = {
    "number": (change_number, 6),
    "date": (change_date, 3),
    "name": (change_name, 6),
    "swap": (swap_names, 2),
    "word": (change_word, 6),
    "negation": (negate, 3),
}


def contradict(text: str, rng: Random, names: list[str]) -> str | None:
    """`text` with one important change, of a kind drawn by weight among those that apply."""
    order = sorted(CHANGES, key=lambda kind: rng.random() ** (1 / CHANGES[kind][1]), reverse=True)
    for kind in order:
        changed = CHANGES[kind][0](text, rng, names)
        if changed and changed != text:
            return changed
    return None


_DETAILS = (
    re.compile(r",? \((?!born)[^()]{3,60}\)"),
    re.compile(
        rf",? (?:in|on|since|until|by|during|from) (?:early |late )?(?:(?:{'|'.join(MONTHS)})(?: \d+,?)? ?)?\d{{4}}\b"
    ),
    re.compile(r" (?:by|with|from|in|at|near|for) (?:the )?[A-Z][\w'’-]+(?: (?:of |the )?[A-Z][\w'’-]+)*"),
    re.compile(
        r" (?:more than|over|about|approximately|around|at least|nearly) \$?\d[\d,.]*(?: (?:million|billion|percent))?"
    ),
    re.compile(r", (?:which|who|where|whose|including|such as|with|making|leading) [^,.;]{8,80}(?=[,.])"),
    re.compile(r" (?:because|although|while|after|before|so that|in order to) [^,.;]{8,80}(?=[,.])"),
)


def drop_detail(text: str, rng: Random) -> str | None:
    """`text` without one detail (a date, a name, a number, a side clause); None if too little would be left."""
    found = [m for pattern in _DETAILS for m in pattern.finditer(text) if m.start() > 10]
    if not found:
        return None
    match = rng.choice(found)
    left = text[: match.start()] + text[match.end() :]
    return left if len(left.split()) >= 5 else None


def reword(text: str, rng: Random, title: str = "") -> str:
    """The same statement in slightly other words: synonyms, number style, pronoun resolved, date moved, opening cut."""
    text = re.sub(r"^(?:However|Additionally|Moreover|Also|In addition|Furthermore|Then|Finally) ?, ?", "", text)
    if title and rng.random() < 0.8:
        text = re.sub(
            r"^(?:He|She|It|They|The (?:film|series|song|album|book|company|show|city|game)) ", title + " ", text
        )
        text = re.sub(r"^(?:His|Her|Its|Their) ", title + " 's ", text)
    for old in rng.sample(list(SYNONYMS), len(SYNONYMS)):
        if rng.random() < 0.6:
            text = re.sub(rf"\b{old}\b", rng.choice(SYNONYMS[old]), text, count=1) if old in text else text
    moved = re.match(r"^((?:In|On|During|By|After) [^,]{4,40}) ?, (.+?) ?\.$", text)
    if moved and rng.random() < 0.6:
        text = f"{moved.group(2)} {moved.group(1)[0].lower()}{moved.group(1)[1:]}."
    if rng.random() < 0.5:
        text = re.sub(r"(?<=\d),(?=\d{3})", "", text)
    return text[0].upper() + text[1:] if text else text


def first_clause(text: str) -> str | None:
    """The first clause of a sentence joined by ", and", ", but", ";", ", while"; None without one."""
    cut = re.match(r"^(.{25,}?)(?: ?, (?:and|but|while|although|so) | ?; )", text)
    return cut.group(1).rstrip(" ,") + "." if cut and len(cut.group(1).split()) >= 6 else None


def names_in(text: str) -> list[str]:
    """The capitalised runs of `text` that do not open it, in order, without repeats."""
    return list(dict.fromkeys(m.group() for m in _NAME.finditer(text) if m.start() > 0 and m.group() not in MONTHS))
