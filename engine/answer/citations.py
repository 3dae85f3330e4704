"""Citation markers in an answer, found by position: `[cite_N]` (GaRAGe), or `[N]` (ALCE) and other forms with numbers.

Several numbers may stand in one marker ("[cite_1, cite_2]", "[1; 3]"): each is a citation, and their spans
share the marker out, so that the spans of an answer's citations cover every character of its markers.
A range ("[1-3]") cites all of its passages; those between the first and the last have an empty span.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, groupby, pairwise
from operator import itemgetter
from typing import Literal

import msgspec

from engine.answer.prompt import NOTHING_CLOSE, REFUSAL
from engine.core.text import ANY_CITATION, CITATION, marker_numbers, sentences
from engine.core.values import Answer, Citation

Style = Literal["garage", "alce"]
_COLON = {style: re.compile(rf":\s*{marker.pattern}", re.IGNORECASE) for style, marker in CITATION.items()}
# The markers at the end of a line that has no end mark: a row of a table, a line of code.
_LINE = {
    style: re.compile(rf"(?<![\s.!?…。！？\"'”’»」』)\]}}])(?:\s*{marker.pattern})+(?=\s*\n)", re.IGNORECASE)
    for style, marker in CITATION.items()
}

_LABEL = re.compile(r"^([ \t]*)\*(?=\*[^*\n]{1,60}(?::\*\*|\*\*\s?[:–—]))", re.MULTILINE)  # "**Dose:** 5 mg"

_TAGS = "p|br|hr|b|i|u|em|strong|s|sup|sub|small|mark|a|span|div|ul|ol|li|h[1-6]|blockquote|details|summary|answer"
_MARKUP = re.compile(
    r"^[ \t]*(?P<fence>```|~~~)[^\n]*\n(?:[^\n]*\n){0,999}?[ \t]*(?P=fence)[`~]*[ \t]*$"
    r"|(?<!`)(?P<ticks>`{1,3})(?P<inside>[^`\n]+)(?P=ticks)"
    r"|\(\[[^\[\]\n]*\]\([^()\s]*\)\)|!\[[^\[\]\n]*\]\([^()\s]*\)"  # "([docs](url))", an image
    r"|\[(?P<link>[^\[\]\n]+)\]\([^()\s]*\)"
    r"|(?<![\w$])\${1,2}(?P<formula>[^\s$](?:[^$\n]{0,200}[^\s$])?)\${1,2}(?![\w$])|\\[()\[\]]"
    r"|^[ \t]*(?:>[ \t]?)+"
    r"|(?<=[-*+] )\[[ xX]\](?= )"
    rf"|</?(?:{_TAGS})(?:\s[^<>\n]*)?/?>"
    r"|(?<![\w*])\*{1,3}(?=[^\s*])|(?<=[^\s*])\*{1,3}(?![\w*])"  # an edge of bold, never "2*3" or "* item"
    r"|(?<=[^\W\d])\*\*(?=\w)|(?<=\w)\*\*(?=[^\W\d])"  # bold inside a word, not "2**3"
    r"|(?<!\w)_(?P<stressed>[^\s_](?:[^\n_]*[^\s_])?)_(?!\w)",
    re.MULTILINE,
)


def find_citations(text: str, n_passages: int, style: Style = "garage") -> tuple[Citation, ...]:
    """The citations of `text` in order; one of a passage that is not there is kept and marked invalid.

    >>> [(c.number, c.valid, "Ice [cite_1, cite_7]."[c.start : c.end]) for c in
    ...     find_citations("Ice [cite_1, cite_7].", 2)]
    [(1, True, '[cite_1'), (7, False, ', cite_7]')]
    """
    found: list[Citation] = []
    for marker in CITATION[style].finditer(text):
        items = marker_numbers(marker.group())
        cuts = [marker.start(), *(marker.start() + item[1] for item in items[:-1]), marker.end()]
        for (*_, number), (start, end) in zip(items, pairwise(cuts), strict=True):
            found.append(Citation(start=start, end=end, number=number, valid=1 <= number <= n_passages))
    return tuple(found)


def style_of(text: str) -> Style:
    """The style with more markers in `text`: `[cite_N]` or `[N]`.

    >>> style_of("Ice melts [1][2]."), style_of("Ice melts. [cite_1]")
    ('alce', 'garage')
    """
    return "alce" if len(find_citations(text, 0, "alce")) > len(find_citations(text, 0, "garage")) else "garage"


def blanked(text: str, markers: re.Pattern[str] = ANY_CITATION) -> str:
    """`text` with blanks in place of its markers and its Markdown: offsets stay."""
    return unmarked(markers.sub(lambda marker: " " * len(marker.group()), text))


def unmarked(text: str, blank: str = " ") -> str:
    """`text` with blanks in place of its Markdown and of fenced code, so that offsets stay, or without them ("").

    Chat models write in Markdown. The marks of headings, lists and tables stay: they say where a sentence begins. Left
    out: what a formula says, indented code, reference links.

    >>> unmarked("**Dose:** call `f(*args)`, see [the docs](https://a.org), $x$ and 2*3*4 for $5.", "")
    'Dose: call f(*args), see the docs, x and 2*3*4 for $5.'
    """

    def kept(found: re.Match[str]) -> str:
        nested = found["link"] or found["stressed"] or ""
        words = nested or found["inside"] or found["formula"] or ""
        before, _, behind = found.group().partition(words) if words else (found.group(), "", "")
        said = unmarked(nested, blank) if nested else words
        return re.sub(r"[^\n]", blank, before) + said + re.sub(r"[^\n]", blank, behind)

    return _MARKUP.sub(kept, text)


def without_markers(text: str) -> str:
    """`text` less its Markdown, its fenced code, the markers of both styles and the space before each.

    >>> without_markers("Ice **melts** [cite_1][2]. Water boils. [3]")
    'Ice melts. Water boils.'
    """
    uncited = re.sub(rf"(?<![ \t])[ \t]*(?:{ANY_CITATION.pattern})", "", text, flags=re.IGNORECASE)
    return unmarked(uncited, "").strip()


def all_said(text: str) -> str:
    """As `without_markers`, with what fenced code says: of a comparison."""
    return without_markers(re.sub(r"^[ \t]*(?:```|~~~).*\n?", "", text, flags=re.MULTILINE))


def renumbered(text: str, numbers: Sequence[int]) -> str:
    """`text` with number n of its markers replaced by `numbers[n - 1]`, a range as a list; a number beyond them stays.

    >>> renumbered("Ice melts [cite_1, cite_2]. It is 3 am [1-3].", [2, 5])
    'Ice melts [cite_2, cite_5]. It is 3 am [2, 5, 3].'
    """

    def numbered(marker: re.Match[str]) -> str:
        written = marker.group()
        for (start, end), items in groupby(reversed(marker_numbers(written)), itemgetter(0, 1)):
            found = [number for *_, number in items][::-1]
            new = [numbers[number - 1] if 1 <= number <= len(numbers) else number for number in found]
            if new != found:
                written = f"{written[:start]}{', '.join(map(str, new))}{written[end:]}"
        return written

    return ANY_CITATION.sub(numbered, text)


def cited_sentences(text: str, style: Style = "garage") -> tuple[tuple[int, int], ...]:
    """Sentence spans, each with the markers that follow it: "Ice melts. [cite_1]" is one sentence.

    Sentences are split with the markers blanked. A marker that opens its line joins the sentence behind it, and so do
    those after it on a line that does not end with one. A colon with a marker ends a sentence, what it announces is not
    quoted; so does a marker at the end of a line. A bold label opens one.

    >>> text = "[1] Ice melts.\\n[2] Water boils. [3]"
    >>> [text[a:b] for a, b in cited_sentences(text, "alce")]
    ['[1] Ice melts.', '[2] Water boils. [3]']
    >>> text = "[1] Ice melts. [2] Water boils."
    >>> [text[a:b] for a, b in cited_sentences(text, "alce")]
    ['[1] Ice melts.', '[2] Water boils.']
    """
    ended = _LINE[style].sub(lambda found: " " * (len(found.group()) - 1) + "。", text)
    ended = _COLON[style].sub(lambda found: f".{found.group()[1:]}", ended)
    ended = _LABEL.sub(r"\1#", ended)
    bare = blanked(text, CITATION[style])
    spans = [_with_marks(text, bare, *span) for span in sentences(blanked(ended, CITATION[style]))]
    markers = list(CITATION[style].finditer(text))
    leading = _leading(markers, text, bare)
    for marker in markers:
        if spans:
            index = _sentence_of(marker, spans, bare, leads=marker.start() in leading)
            start, end = spans[index]
            spans[index] = (min(start, marker.start()), max(end, marker.end()))
    ends = accumulate((end for _, end in spans), max, initial=0)  # what two claim is the first one's
    return tuple((max(start, last), end) for (start, end), last in zip(spans, ends, strict=False) if last < end)


def _with_marks(text: str, bare: str, start: int, end: int) -> tuple[int, int]:
    """The span with the marks next to it that are blanks in `bare`: bold, a quote, a tag."""
    while start and bare[start - 1].isspace() and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and bare[end].isspace() and not text[end].isspace():
        end += 1
    return start, end


def _leading(markers: Sequence[re.Match[str]], text: str, bare: str) -> set[int]:
    """Starts of the markers before what they cite for: those that open a line, and its others where none ends it.

    One that is glued to the words before it cites for these.
    """
    starts, found = [marker.start() for marker in markers], set[int]()
    for line in re.finditer(r"^(?P<head>[ \t*•-]*)[^\n]*", bare, re.MULTILINE):
        own = markers[bisect_left(starts, line.start()) : bisect_left(starts, line.end())]
        head = bool(own) and own[0].start() < line.end("head")
        all_lead = head and bool(bare[own[-1].end() : line.end()].strip(" \t*•-"))
        behind = -1  # the end of a marker that leads
        for marker in own:
            apart = text[marker.start() - 1 : marker.start()].isspace() or marker.start() == behind
            if marker.start() < line.end("head") or (all_lead and apart):
                found.add(marker.start())
                behind = marker.end()
    return found


def _sentence_of(marker: re.Match[str], spans: Sequence[tuple[int, int]], bare: str, *, leads: bool) -> int:
    """The place of the sentence that a marker cites for: the one before it, or behind one that leads."""
    behind = bisect_right(spans, marker.end(), key=itemgetter(1)) if leads else len(spans)
    if behind < len(spans) and "\n" not in bare[marker.end() : spans[behind][0]]:
        return behind
    return max(0, bisect_right(spans, marker.start(), key=itemgetter(0)) - 1)


def is_refusal(text: str) -> bool:
    """Whether `text` is a refusal sentence and nothing else, markers, case and full stop aside."""
    said = without_markers(text).strip(" .\"'\n").casefold()
    return said in (refusal.strip(".").casefold() for refusal in (REFUSAL, NOTHING_CLOSE))


def annotate(answer: Answer, n_passages: int, style: Style = "garage") -> Answer:
    """The answer with its sentences, citations and refusal filled in; text and tokens stay as they are."""
    return msgspec.structs.replace(
        answer,
        sentences=cited_sentences(answer.text, style),
        citations=find_citations(answer.text, n_passages, style),
        refused=is_refusal(answer.text),
    )


def content_token_mask(answer: Answer) -> tuple[bool, ...]:
    """For each token of an annotated answer: False where it overlaps a citation marker."""
    marked = bytearray(len(answer.text))
    for citation in answer.citations:
        marked[citation.start : citation.end] = b"\1" * (citation.end - citation.start)
    return tuple(not any(marked[token.start : token.end]) for token in answer.tokens)
