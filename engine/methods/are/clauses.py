"""An answer as molecular clauses by rules: sentences, cut again where a second clause has its own subject and verb.

Clauses are verbatim spans; clauses and what lies between them give back the answer. A citation marker after a sentence
belongs to that sentence's last clause. ARE, section 4.1.2; the rules are ours.
"""

from __future__ import annotations

import re

from engine.answer.citations import cited_sentences
from engine.methods.are.tagging import Tagged, finite, tokens

Span = tuple[int, int]
_NUMBER = r"(?:cite_)?\d{1,4}"
MARKER = re.compile(  # between numbers something has to stand: what may be empty makes a long run of digits hang
    rf"\[\s*{_NUMBER}(?:(?:\s*[,;]\s*|\s+|(?=cite_)){_NUMBER})*\s*\]", re.IGNORECASE
)
_SHORTEST = 3  # words on either side of a cut


def clause_spans(text: str) -> tuple[Span, ...]:
    """[start, end) of the clauses of `text`, in order, not overlapping, without white space at their ends.

    >>> [text[a:b] for text in ["Ice melts at 0 °C; it boils at 100 °C."] for a, b in clause_spans(text)]
    ['Ice melts at 0 °C', 'it boils at 100 °C.']
    """
    style = "garage" if "[cite_" in text.lower() else "alce"
    found: list[Span] = []
    for start, end in cited_sentences(text, style):  # type: ignore[arg-type]
        found.extend(_clauses(text, start, end))
    return tuple(span for span in found if any(c.isalnum() for c in blanked(text[span[0] : span[1]])))


def blanked(text: str) -> str:
    """The text with blanks in place of citation markers: offsets stay."""
    return MARKER.sub(lambda marker: " " * len(marker.group()), text)


def _clauses(text: str, start: int, end: int) -> list[Span]:
    found = tokens(blanked(text[start:end]))
    cuts = [start]
    for i in range(len(found)):
        begin = _begins(found, i)
        if begin is not None and _long_enough(found, i, begin):
            cuts.append(start + found[begin].start)
    spans = zip(cuts, [*cuts[1:], end], strict=True)
    return [_trimmed(text, a, b) for a, b in spans]


def _begins(found: list[Tagged], i: int) -> int | None:
    """The place of the first word of a clause that the mark or conjunction at `i` opens."""
    if found[i].text == ";":
        return i + 1 if i + 1 < len(found) else None
    opens = found[i].low in ("and", "but", "while", "whereas") and i > 0 and found[i - 1].tag == ","
    if not opens or i + 1 >= len(found):
        return None
    end = i + 1
    while end < len(found) and found[end].tag in ("noun", "num", "det", "pron") and end - i < 8:
        end += 1
    subject = end > i + 1 and end < len(found) and finite(found[end])
    return i + 1 if subject and any(finite(t) for t in found[:i]) else None


def _long_enough(found: list[Tagged], i: int, begin: int) -> bool:
    return i >= _SHORTEST and len(found) - begin >= _SHORTEST


def _trimmed(text: str, start: int, end: int) -> Span:
    """The span less white space, and less the joining marks and conjunction at its end."""
    piece = text[start:end]
    kept = re.sub(r"(?:\s|;|,\s*(?:and|but|while|whereas)(?=\s*$))+$", "", piece)
    lead = len(piece) - len(piece.lstrip())
    return start + lead, start + max(len(kept), lead)
