"""The sentences of an answer that claim something, and what its layout says they are about.

Chat models set answers out under headings, in nested lists and in tables. A heading, a line that introduces others, a
reference and talk to the reader claim nothing. What a list item or row without a verb is about comes from there: the
item "200 mg" under "Dosage for adults:", the cell "200 mg" in the column "Dose".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from engine.answer.citations import blanked, cited_sentences, style_of
from engine.core.text import ANY_CITATION
from engine.english.brackets import NUMBERED
from engine.english.parser import parse
from engine.english.statements import is_governed
from engine.english.tree import SUBJECTS
from engine.models.replies import is_to_reader, opens_reply

# The line below a table's head
_UNDER_HEAD = re.compile(r"[ \t]*\n[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*(?=\n|$)")
_BOLD = re.compile(r"\W*\*\*[^*\n]+\*\*:?\s*")
_DEFINED = re.compile(r"\[\^?[\w-]{1,20}\]:")  # "[^1]: Smith 2020"
_ENDED = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")
_QUOTE = re.compile(r"[ \t]*(?:>[ \t]?)+")
_HASHES = re.compile(r"#{1,6}\s")
_GENERAL = re.compile(
    r"(?:the |some |other )?(?:key |main |important |additional |short )?"
    r"(?:points|facts|takeaways|findings|details|highlights|notes?|tips?|summary|overview|conclusion|information|important"
    r"|tl;?dr|answer|explanation|description|disclaimer|values?)",
    re.IGNORECASE,
)
DOCUMENTS = r"(?:passages?|documents?|sources?|contexts?|excerpts?|texts?|materials?)"
_SAY = (
    r"(?:mention|say|state|contain|provide|specify|include|give|discuss|address|cover|indicate|describe|explain|name)"
)
_NOT_SAID = re.compile(
    r"(?:however,? |unfortunately,? |but )*(?:"
    rf"(?:the |these |your )(?:\w+ ){{0,3}}{DOCUMENTS}(?: (?:provided|given|above))?"
    rf" (?:do|does|did)(?: not|n['’]t) {_SAY}\b"
    rf"|there(?: is|['’]s) no (?:\w+ ){{0,2}}(?:mention|information|indication)\b.*\b{DOCUMENTS}\b"
    r"|i (?:could|can|ca|did|do)(?: ?not|n['’]t) (?:find|have|see)\b"
    rf".*(?: in the (?:\w+ ){{0,2}}{DOCUMENTS}\b| information\b)"
    rf"|(?:\w+: )?this (?:summary|answer|response) is based (?:solely|only) on\b)"
    r"|.*: (?:not (?:mentioned|stated|specified|given|provided)|n/?a)$",
    re.IGNORECASE,
)
# What only points to what is elsewhere, and says nothing of it: "Here is the summary.", "See also section 4."
_POINTS = re.compile(
    r"(?:here(?:['’]s| is| are)\b[^,:;\d]{0,60}"
    r"|see (?:also|section|chapter|page|appendix|annex|table|figure)\b[^,:;]{0,60})[.:!]?",
    re.IGNORECASE,
)
_REFERS = re.compile(r"\W*(?:sources?|references?)\b\W*:.*(?:\]\(|https?:|\bpp?\. ?\d)", re.IGNORECASE)
_AGREES = re.compile(
    r"(?:yes|no|sure|certainly|of course|absolutely|okay|ok|got it|understood|happy to help"
    r"|(?:yes, )?that(?: is|['’]s) (?:right|correct|true))[.!]?",
    re.IGNORECASE,
)
_GREETS = re.compile(r"(?:dear|hi|hello|hey|good (?:morning|afternoon|evening))\b[^.!?]{0,60}[,!:]", re.IGNORECASE)
_CLOSES = re.compile(
    r"(?:(?:best |kind(?:est)? |warm )?(?:regards|wishes)|best|sincerely|yours(?: \w+)?|cheers|(?:many )?thanks)[,!.]?",
    re.IGNORECASE,
)
_HEADING = -1  # above every line


class OutlinedSentence(NamedTuple):
    """A sentence at [start, end) that claims something.

    `lead` is what it is about by the layout, `whole` whether it says so itself, `columns` are those of its table.
    """

    start: int
    end: int
    lead: str = ""
    whole: bool = True
    columns: tuple[str, ...] = ()


class _Line(NamedTuple):
    """A sentence as it is set: its words, how deep its line is indented, and whether it opens and ends this line."""

    start: int
    end: int
    raw: str
    words: str
    depth: int
    listed: bool
    opens: bool
    ends: bool
    before_code: bool

    @property
    def governed(self) -> bool:
        """Is it an instruction, or has it a verb with a subject; a word alone, as "May", is neither."""
        told = (t.dep_ in SUBJECTS or (t.tag_ == "VB" and t.dep_ == "ROOT") for t in parse(self.words) or ())
        return len(self.words.split()) > 1 and is_governed(self.words) and (parse(self.words) is None or any(told))

    @property
    def ended(self) -> bool:
        """Has it the mark that ends a sentence?"""
        return _ENDED.search(self.words) is not None


def outline(text: str) -> tuple[OutlinedSentence, ...]:
    """The sentences of `text` that claim something, in order.

    >>> [(one.start, one.lead, one.whole) for one in outline("Dose:\\n- 200 mg\\n- Take it at noon.")]
    [(6, 'Dose', False), (15, 'Dose', True)]
    """
    found: list[OutlinedSentence] = []
    above: list[tuple[int, str]] = []
    columns: tuple[str, ...] = ()
    lines = _unaddressed(_lines(text))
    for place, line in enumerate(lines):
        following = lines[place + 1] if place + 1 < len(lines) else None
        while line.opens and above and above[-1][0] >= line.depth:
            above.pop()
        if "|" not in line.raw:
            columns = ()
        elif _UNDER_HEAD.match(text, line.end):
            columns = tuple(cell for _, cell in cells(line.words))
            continue
        heads = _is_heading(line, following)
        if heads:
            above = []
        if heads or _introduces(line, following):
            lead = line.words.rstrip(" :.")
            if line.ends and not opens_reply(line.words) and is_label(lead):
                above.append((_HEADING if heads else line.depth, lead))
        elif not _is_talk(line, first=not found):
            near = [words for depth, words in above if depth != _HEADING] or [words for _, words in above]
            found.append(OutlinedSentence(line.start, line.end, ": ".join(near), line.governed, columns))
    return tuple(found)


def is_on_documents(fact: str) -> bool:
    """Does it say that the documents lack something, or that the answer rests on them, which no passage can say?

    >>> [is_on_documents(one) for one in ("The text does not name a fee", "I could not find a key", "Fee: not stated")]
    [True, False, True]
    """
    return _NOT_SAID.match(fact) is not None


def is_label(words: str) -> bool:
    """Does a heading, label or column say something of what is under it, as "Note" does not?"""
    return _GENERAL.fullmatch(words) is None


def cells(row: str) -> list[tuple[int, str]]:
    """The cells of a table's row with their offsets.

    >>> cells("| Mild | | 5 mg |")
    [(2, 'Mild'), (9, ''), (11, '5 mg')]
    """
    bars = [-1, *(bar.start() for bar in re.finditer(r"\|", row)), len(row)]
    parts = [(start + 1, row[start + 1 : end]) for start, end in pairwise(bars)]
    found = [(start + len(part) - len(part.lstrip()), part.strip()) for start, part in parts]
    return found[not found[0][1] : len(found) - (not found[-1][1])]


def _lines(text: str) -> list[_Line]:
    """The sentences of `text` as they are set; what follows on a line is as deep as what opens it."""
    bare, spans = blanked(text), cited_sentences(text, style_of(text))
    edges = [0, *(end for _, end in spans)], [*(start for start, _ in spans[1:]), len(text)]
    lines: list[_Line] = []
    for (start, end), before, after in zip(spans, *edges, strict=False):
        opens = not lines or "\n" in text[before:start]
        words, depth, listed = bare[start:end], lines[-1].depth if lines else 0, bool(lines) and lines[-1].listed
        if opens:
            first = max(before, text.rfind("\n", before, start) + 1)
            quote = _QUOTE.match(text, first, start)
            mark = NUMBERED.match(words.lstrip())
            indent = len(text[quote.end() if quote else first : start].expandtabs(4))
            listed = mark is not None and not words.lstrip().startswith("#")
            depth, words = 2 * indent + listed, words.lstrip()[mark.end() if mark else 0 :]
        ends = after == len(text) or "\n" in text[end:after]
        code = text[end:after].lstrip().startswith(("```", "~~~"))
        lines.append(_Line(start, end, text[start:end], " ".join(words.split()), depth, listed, opens, ends, code))
    return lines


def _unaddressed(lines: Sequence[_Line]) -> Sequence[_Line]:
    """The lines less a letter's greeting, and less its close with the names below."""
    first = any(one.ends and _GREETS.fullmatch(one.words) and not one.governed for one in lines[:1])
    alone = (n for n, line in enumerate(lines) if line.opens and line.ends and not line.listed)
    closing = (n for n in alone if _CLOSES.fullmatch(lines[n].words))
    last = next((n for n in closing if not any(line.governed for line in lines[n:])), len(lines))
    return lines[first:last]


def _is_heading(line: _Line, following: _Line | None) -> bool:
    """Is it a heading: by its mark, in bold, or a line without verb and end mark in front of a list or a sentence?"""
    if _HASHES.match(line.raw):
        return True
    if following is None or line.listed or "|" in line.raw:
        return False
    if _BOLD.fullmatch(line.raw) and (not line.governed or (line.opens and line.ends and not line.ended)):
        return True
    alone = line.opens and line.ends and following.opens and not line.ended and ":" not in line.words
    claims = line.governed or ANY_CITATION.search(line.raw)
    return alone and not claims and (following.listed or following.governed)


def _introduces(line: _Line, following: _Line | None) -> bool:
    """Does it end with a colon, or is it the head of a list inside the list?"""
    if line.words.endswith(":"):
        return not line.governed or (following is not None and following.opens and not line.before_code)
    inside = following is not None and following.opens and following.depth > line.depth
    return line.listed and inside and line.ends and not line.ended and not line.governed


def _is_talk(line: _Line, *, first: bool) -> bool:
    """Is it without words, a reference, an offer or wish, or a call that opens the answer ("Sure!")?"""
    if not any(map(str.isalnum, line.words)) or _POINTS.fullmatch(line.words):
        return True
    if _DEFINED.match(line.raw) or _REFERS.match(line.raw):
        return True
    if first and _AGREES.fullmatch(line.words):
        return True
    cited = ANY_CITATION.match(line.raw)
    called = (first and line.words.endswith("!") and not line.listed) or cited  # "Great question!", "[1] Smith 2020"
    return is_to_reader(line.words) or (bool(called) and not is_governed(line.words))
