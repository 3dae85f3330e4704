"""Reading what models write around the lines that were asked for. Pure functions, linear in the length of a reply.

Taken away: code fences, list marks, bold, quotes around a line, labels ("Fact 2:"), an opening ("Sure, here are the
facts:") and talk to the reader after a blank line. What is left keeps its words: nothing is completed or repaired.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_FENCE = re.compile(r"^[^\S\n]*(?:```|~~~).*\n", re.MULTILINE)
_LISTED = re.compile(r"^(?:[-–*•+]|\(?\d{1,2}[.):])\s+")
_LABEL = re.compile(
    r"^(?:(?:the|my|final|search|atomic|corrected|fixed)\s){0,2}(?:facts?|clauses?|phrases?|questions?|quer(?:y|ies)|answer|fix|difference)"
    r"(?:\s\d{1,2})?\s?:(?:\s+|$)",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"(?:sure|certainly|of course|okay|ok|absolutely|yes|here|below|the following|these are|this is|i|i'll|i've|let"
    r"|based|the (?:text|clause|sentence|fact|answer) (?:can|may|is|splits))\b",
    re.IGNORECASE,
)
_TO_READER = (
    r"let me know|i hope\b|hope this|feel free|is there anything|would you like|do you (?:want|need|have)"
    r"|if you (?:want|need|have|would like)(?: to know| any| more| further| help| me)\b|can i help|how can i|thank"
    r"|(?:please note(?: that)? )?(?:i am|i['’]m) an ai(?: language)?(?: model| assistant)?\W*$"
    r"|(?:please note(?: that)? )?(?:(?:i am|i['’]m) an ai and )?this is not (?:\w+ ){0,2}advice\W*$"
)
_TALK = re.compile(
    rf"(?:{_TO_READER}|please\b|note(?: that\b|:)|these (?:facts|clauses|phrases|lines|(?:\w+ )?questions)\b)",
    re.IGNORECASE,
)
_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’", "«": "»", "`": "`"}
_MARKS = " \t*_`'\"“”‘’«»()[]{}<>.!,;$\\#|-–•"


def lines(reply: str) -> list[str]:
    """The lines of a reply that carry content, without marks; empty ones left out.

    >>> lines("Sure, here are the facts:\\n\\n1. **Ice melts.**\\n2. Steam rises.\\n\\nLet me know if you need more!")
    ['Ice melts.', 'Steam rises.']
    """
    return [line for raw in content(reply) if (line := bare(raw))]


def bare(line: str) -> str:
    """A line without list mark, bold, label and the quotes around it.

    >>> bare('- **Fact 1:** "Ice melts."'), bare("2. It opened in 1990")
    ('Ice melts.', 'It opened in 1990')
    """
    text = _LISTED.sub("", line.strip()).replace("**", "").strip()
    text = _LABEL.sub("", text)
    inner = text[1:-1]
    quoted = len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and not {text[0], text[-1]} & set(inner)
    return inner.strip() if quoted else text


def content(reply: str) -> list[str]:
    """The lines inside code fences if there are any, else those between an opening and talk to the reader."""
    parts = _FENCE.split("".join(f"{line}\n" for line in reply.splitlines()))
    rest, fenced = ("".join(parts[side::2]).splitlines() for side in (0, 1))
    if any(line.strip() for line in fenced):
        return fenced
    filled = [i for i, line in enumerate(rest) if line.strip()]
    start = next((i for i in filled[:3] if not opens_reply(rest[i])), 0)
    return list(_until_talk(rest[start:]))


def opens_reply(line: str) -> bool:
    """Does the line announce what follows: "Here are the facts:"?"""
    text = line.strip().strip("*_ ")
    return text.endswith((":", "!")) and _OPENING.match(text) is not None


def is_to_reader(sentence: str) -> bool:
    """Does it offer or wish the reader something ("Let me know"), or say what the assistant is ("I am an AI")?"""
    return re.match(_TO_READER, sentence.lstrip(" *_"), re.IGNORECASE) is not None


def _until_talk(rest: Sequence[str]) -> Iterator[str]:
    """The lines up to the first one after a blank line that talks to the reader."""
    content = blank = False
    for line in rest:
        if content and blank and _TALK.match(line.lstrip(" *_")):
            return
        blank = not line.strip()
        content = content or not blank
        yield line


def parse_option(reply: str, options: Sequence[str], labels: Sequence[str] = ("answer",)) -> str | None:
    """The option that stands alone on a line, or behind one of `labels`; None without one, or with two that differ.

    A line that ends with a colon is a heading and names nothing.

    >>> parse_option("Because it does.\\n**Answer: yes.**", ("yes", "no")), parse_option("yes\\nno", ("yes", "no"))
    ('yes', None)
    """
    by_word = {option.casefold(): option for option in options}
    label = re.compile(
        rf"(?:(?:the|my|final)\s)*(?:{'|'.join(map(re.escape, labels))})(?:\s?[:=]|\sis\b:?)", re.IGNORECASE
    )
    found = set()
    for raw in reply.splitlines():
        text = _LISTED.sub("", raw.strip()).strip(_MARKS)
        match = label.match(text)
        word = (text[match.end() :] if match else text).strip(_MARKS).casefold()
        found.add(by_word.get(word))
    found.discard(None)
    return found.pop() if len(found) == 1 else None
