"""Sentences and words as half-open character offsets into the text that was given; nothing is rewritten.

The splitter is a set of rules rather than a model: it must be right on procedures ("90-100 °C. Add ...",
"2. Filter ..."), on names ("Dr. Hunt", "J. Smith") and on extracted text (hard-wrapped lines, headings
without a full stop), be the same everywhere, and need no download. Content words are those of S3 (grounded
refinement, section 3.2; docs/methods/refinement.md).
"""

from __future__ import annotations

import math
import re
import threading
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any

Span = tuple[int, int]


def word_set(listed: str) -> frozenset[str]:
    """The words of a list written with spaces."""
    return frozenset(listed.split())


# Never the end of a sentence: something belongs to them.
_ALWAYS_OPEN = word_set(
    "dr mr mrs ms prof gen sen rep lt col capt cpt sgt maj cmdr adm rev hon pres gov messrs mt st ste vs viz cf ca "
    "e.g i.e eg ie approx resp nee incl excl"
)
# Open only before a number or a label ("Fig. 2", "No. 5", "Vol. IV"); "No." alone may end a sentence.
_OPEN_BEFORE_NUMBER = word_set(
    "fig figs eq eqs no nos vol vols s ss sec secs sect ch chap ref refs p pp pg art para paras cl tab ex app pt nr op "
    "b.p m.p bp mp jan feb mar apr jun jul aug sep sept oct nov dec min max"
)
_UNITS = ("s", "min", "max")  # behind a number: "It took 5 min. 3 men left."
# Often in the middle of a sentence, sometimes its end: only a word that starts sentences ends it.
_UNSURE = word_set("al etc inc ltd co corp bros jr sr dept univ est u.s u.k u.n d.c a.m p.m b.c a.d ph.d m.d")
_STARTERS = word_set(
    "the a an this that these those it its he she they we you i there here in on at by for from to with as if when "
    "while after before since because although though however thus then therefore moreover but and or so his her "
    "their our my your some many most all each every both one two three no not what who where why how which during "
    "under over between among according add allow cool heat stir filter wash collect dissolve place remove repeat "
    "use do make let mr mrs ms dr"
)
_LETTER_LABELS = word_set(
    "vitamin point plan grade type class hepatitis appendix figure table step part section group box phase option "
    "experiment procedure exhibit form series model method compound product solution flask tube"
)
_OPENERS = "\"'“‘«([{¿¡"
# A note or citation behind the end of a sentence, as in "cats.[^1]", "cats.[citation needed]", "cats.¹", "cats.*"
_NOTES = r"(?:\[[^\[\]\n]{1,20}\]|[¹²³⁰⁴-⁹]++|[*†‡])*+"
_END = re.compile(rf"(?<![.!?…])[.!?…]++[\"'”’»)\]}}]*{_NOTES}(?=\s)|[。！？]+[」』”’）]*")
_LIST_ITEM = re.compile(r"\s*(?:[-*•–·▪]\s+|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})[.)]\s+|(?:step|exercise)\s+\d+\b)", re.I)
# The time at the start of an entry of a log, a chat or a transcript: "[09:04]", "2024-10-03 02:05", "12/03/24, 9:15".
_STAMP = re.compile(
    r"\s*(?:[\[(<][\d/.:, T-]*\d:\d\d|\d+[-/.]\d+[-/.]\d+,?[ T]{1,2}\d\d?:\d\d|"
    r"(?:[A-Z][a-z]{2} [ \d]\d )?\d\d:\d\d:\d\d)"
)
_FIELD = re.compile(r"[^\W\d_][^:.!?]{0,40}: \S")  # "Present: Ann, Ben", "Ann: Good morning"
_NUMBER_LABEL = re.compile(r"[\"'(\[]?(?:[$€£¥]?\d|[IVXLC]+\b|[A-Z]\d|[A-Z]\b)")
BETWEEN_CELLS = " | "  # what parts the cells of a table's row in the text of a document
_WRAPPED_LINE = 40  # characters from which a line without end mark is taken as wrapped, not as a heading
_LOOK = 80  # characters looked at on either side of a mark, so that a 1 MB line takes linear time
_PRINTED = re.compile(r"\S(?:.*\S)?", re.DOTALL)
_WORD = re.compile(r"\w+(?:(?:[-‐‑'’]|(?<=\d)[.,](?=\d)|(?<=\b\w)\.(?=\w\b))\w+)*")


def sentences(text: str) -> tuple[Span, ...]:
    """Offset spans of the sentences of `text`, in order, without surrounding white space, never empty.

    A heading, a list item and a numbered step ("2. Filter the solid.") are sentences of their own, and so is the row of
    a table that opens with a bar, whatever its cells say.

    >>> [("Stir at 90-100 °C. Add 4-aminophenol (Fig. 2)."[s:e]) for s, e in
    ...     sentences("Stir at 90-100 °C. Add 4-aminophenol (Fig. 2).")]
    ['Stir at 90-100 °C.', 'Add 4-aminophenol (Fig. 2).']
    """
    found: list[Span] = []
    for start, end in blocks(text):
        marks = () if _is_row(text[start:end].strip()) else _END.finditer(text, start, end)
        ends = [m.end() for m in marks if _closes(text, start, m.start(), m.end(), end)]
        parts = (_PRINTED.search(text, s, e) for s, e in pairwise([start, *ends, end]))
        found.extend(part.span() for part in parts if part)
    return tuple(found)


_ENDED = re.compile(rf"[.!?:;…。！？][\"'”’»)\]]*{_NOTES}$")
_NUMBERED = re.compile(r"\d{1,3}[.)]\s")
LIST_ITEM = re.compile(r"(?:\d{1,3}[.)]|\(?[a-z]\)|[-*•]|step \d+)\s", re.I)


def is_line(text: str) -> bool:
    """Whether `text` is a line rather than a sentence: a list item, a row of a table, or without an end mark."""
    return bool(LIST_ITEM.match(text)) or BETWEEN_CELLS in text or not _ENDED.search(text)


def headings(text: str, spans: Sequence[Span]) -> list[bool]:
    """Whether each sentence of `text` says what follows it is on: a line without an end mark, or a question.

    A question heads the reply to it, as in an interview. Lines without an end mark that follow each other are a list,
    an address, fields or code, of which only the first may be a heading. A number does not make a heading a list item
    unless one is next to it.

    >>> found = "2. Dough\\n\\n250 g flour\\n60 g butter\\n\\nBake it."
    >>> headings(found, sentences(found))
    [True, True, False, False]
    """
    lines = ["", *(text[start:end] for start, end in spans), ""]
    gaps = [2, *(text[a[1] : b[0]].count("\n") for a, b in pairwise(spans)), 2]
    around = zip(lines, lines[1:], lines[2:], gaps, gaps[1:], strict=False)
    return [_heads(before, line, after, up == 1, down == 1) for before, line, after, up, down in around]


def _heads(before: str, line: str, after: str, above: bool, below: bool) -> bool:
    """Whether a line is a heading; `above` and `below` tell whether its neighbours are parted by one line break."""
    alone = after and _NUMBERED.match(line) and not LIST_ITEM.match(before) and not LIST_ITEM.match(after)
    if BETWEEN_CELLS in line or (LIST_ITEM.match(line) and not alone):
        return False
    if line.endswith("?"):
        return True
    in_list = above and (is_line(before) or before.endswith("?"))
    entry = _STAMP.match(line) or (below and _FIELD.match(line) and _FIELD.match(after))
    return not (in_list or entry or _ENDED.search(line) or line.endswith(",") or line[0].islower())


def words(text: str) -> tuple[Span, ...]:
    """Offset spans of the words of `text`: letters and digits, with inner hyphens, apostrophes and decimals.

    >>> [("It's 3,400.5 g of 4-aminophenol."[s:e]) for s, e in words("It's 3,400.5 g of 4-aminophenol.")]
    ["It's", '3,400.5', 'g', 'of', '4-aminophenol']
    """
    return tuple(match.span() for match in _WORD.finditer(text))


def blocks(text: str) -> list[Span]:
    """Stretches between the line breaks that end a sentence whatever the punctuation."""
    lines = text.splitlines(keepends=True)  # form feeds and Unicode separators break lines too
    ends = accumulate(map(len, lines))
    breaks = [
        end for end, (line, following) in zip(ends, pairwise(lines), strict=False) if not _wrapped(line, following)
    ]
    return list(pairwise([0, *breaks, len(text)]))


def _is_row(line: str) -> bool:
    """Is it a row of a table: between bars, not "|x| is 5"?"""
    return line.startswith("|") and (line.endswith("|") or BETWEEN_CELLS in line)


def _wrapped(line: str, following: str) -> bool:
    """Does the sentence of `line` continue in `following`: a hard-wrapped line, not a heading or a list item."""
    here, there = line.strip(), following.strip()
    if not here or not there or there[0] in "|#" or _LIST_ITEM.match(following) or _STAMP.match(following):
        return False
    if unicodedata.category(there[0]) == "So":  # a sign in the place of a list mark
        return False
    if (
        _is_row(here)
        or BETWEEN_CELLS in line
        or BETWEEN_CELLS in following
        or (_FIELD.match(there) and (_FIELD.match(here) or here[-1] in ".!?"))
    ):
        return False
    if there[0].islower():
        return here[-1] not in ".!?:" or len(here) >= _WRAPPED_LINE
    return len(here) >= _WRAPPED_LINE and here[-1] != ":"


def _closes(text: str, block: int, mark: int, after: int, end: int) -> bool:
    """Does the punctuation at [mark, after) end a sentence of the block [block, end)."""
    if text[mark] in "。！？":
        return True
    following = text[after : min(end, after + _LOOK)].lstrip()
    if not following or not _may_start(following):
        return False
    if text[mark] != "." or text[mark : mark + 2] == "..":
        return True
    return not _abbreviated(text[max(block, mark - _LOOK) : mark], following)


def _may_start(following: str) -> bool:
    """Could this text be the start of a sentence: capital, digit, other script, or mixed case as in pH."""
    head = following.lstrip(_OPENERS)
    if not head:
        return False
    word = re.split(r"[\s,;]", head, maxsplit=1)[0]
    return not head[0].islower() or any(c.isupper() for c in word)


def _abbreviated(before: str, following: str) -> bool:
    """Is the full stop after `before` part of an abbreviation, an initial or a step number."""
    if not before or before[-1].isspace():
        return False  # a stop set apart, as in tokenised text
    tokens = before.split()
    token = tokens[-1].lstrip(_OPENERS)
    previous = tokens[-2] if len(tokens) > 1 else ""
    key = token.lower()
    starter = re.split(r"[\s,;.']", following.lstrip(_OPENERS).lower(), maxsplit=1)[0] in _STARTERS
    if key in _ALWAYS_OPEN or token == "v":  # "Smith v. Jones", "v. 2.0", but not "230 V."
        return True
    if key in _OPEN_BEFORE_NUMBER:
        counted = key in _UNITS and previous[-1:].isdigit()
        label = bool(_NUMBER_LABEL.match(following)) and not starter and not counted
        return label or _initial(token, previous, starter)
    if key in _UNSURE:
        return not starter
    if re.fullmatch(r"\d{1,3}", token):
        return previous.lower().rstrip(".") not in _OPEN_BEFORE_NUMBER and (not previous or previous[-1] in ".!?:;…#")
    return _initial(token, previous, starter)


def _initial(token: str, previous: str, starter: bool) -> bool:
    """Is `token` the initial of a name ("J. Smith", "J.R.R. Tolkien", "U.S. Army")."""
    if re.fullmatch(r"(?:[A-Z]\.)+[A-Z]", token):
        return not starter
    if not re.fullmatch(r"[A-Z]", token):
        return False
    return not starter and previous.lower() not in _LETTER_LABELS and not previous[-1:].isdigit()


# Citation markers by style: "[cite_1, cite_2]" (GaRAGe), and numbers: "[1; 3]" (ALCE) with what chat models write,
# "[^1]", "[1-3]", "[1, p. 4]", "[1](url)", "(Source 2)", "[Doc 3]", "[citation:3]", "(see [2])", "【1†source】", and a
# number raised behind a mark.
# From 100 on a number is a year, or as in [128, 255] a value, and so is 0: no writer is given as many passages.
_CITED = r"[1-9]\d?"
_TO = r"(?:\s?[-–—]\s?|\sto\s)"
_RANGE = rf"{_CITED}(?:{_TO}{_CITED})?"
_SOURCE = r"(?:sources?|documents?|docs?|passages?|references?|refs?\.?|contexts?|citations?)"
_PLACE = (
    r"\s?[,;:]\s?(?:(?:pp?|sec|ss?|ch|art|para)\.|(?:pages?|sections?|chapter|article|lines?)\b|§)[^\n()\[\]]{0,40}"
)
_SOURCES = rf"{_SOURCE}\s?:?\s?#?{_RANGE}(?:(?:\s?[,;&]\s?|\sand\s)(?:{_SOURCE}\s)?#?{_RANGE})*(?:{_PLACE})?"
_LINKED = r"(?:\([^()\s]{1,400}\))?"
_SQUARE = rf"\[\s*(?:\^{_CITED}|{_RANGE}(?:\s*[,;]\s*{_RANGE})*(?:{_PLACE})?|{_SOURCES})\s*\]{_LINKED}"
_CITING = (
    rf"{_SQUARE}|\[{_SQUARE}\]{_LINKED}|\({_SOURCES}\)"
    rf"|\((?:(?:see|{_SOURCE}):?\s)?{_SQUARE}(?:(?:\s?[,;&]\s?|\sand\s)?{_SQUARE})*\)"
    rf"|【{_CITED}(?::\d{{1,3}})?(?:†[^\n【】]{{0,80}})?】"
    rf"|(?:(?<=[.,;!?])|(?<![^\n]))[¹²³⁴-⁹][⁰¹²³⁴-⁹]?(?=\s|$)"
)
_TAGGED = rf"\d{{1,4}}(?:{_TO}(?:cite_)?\d{{1,4}})?"
CITATION = {
    "garage": re.compile(rf"\[\s*cite_{_TAGGED}(?:(?:\s*cite_|\s*[,;]\s*(?:cite_)?){_TAGGED})*\s*\]", re.IGNORECASE),
    "alce": re.compile(rf"(?:{_CITING})", re.IGNORECASE),
}
ANY_CITATION = re.compile(rf"{CITATION['garage'].pattern}|{CITATION['alce'].pattern}", re.IGNORECASE)
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_UNCITED = re.compile(rf"(?<=\d)(?::\d+|†[^】]*)|{_PLACE}|(?<=\])\([^()\s]*\)", re.IGNORECASE)  # a page, an address
_ITEM = re.compile(rf"(?P<to>(?<=\d){_TO}(?:cite_)?)?(?P<number>\d+|[{_RAISED}]+)", re.IGNORECASE)
_WIDEST = 50  # from the first to the last number of a range: a wider one is a slip
_AROUND = re.compile(r"^[\W_]+|[\W_]+$")  # what is neither letter nor digit
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
TO_TWELVE = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORDS = {word: str(value) for value, word in enumerate(TO_TWELVE.split())}
STOP_WORDS = word_set(
    "a about above after again against all also am an and any are as at be because been before being below between "
    "both but by can cannot could did do does doing down during each either few for from further had has have having "
    "he her here hers herself him himself his how however i if in into is it its itself just may me might more most "
    "must my myself nor not now of off on once only or other our ours ourselves out over own per same shall she "
    "should so some such than that the their theirs them themselves then there these they this those through thus to "
    "too under until up upon us very was we were what when where whether which while who whom whose why will with "
    "within without would yet you your yours yourself yourselves "
    "isn't aren't wasn't weren't don't doesn't didn't hasn't haven't hadn't won't wouldn't can't couldn't shouldn't "
    "it's that's there's he's she's they're we're you're i'm i've"
)


def marker_numbers(marker: str) -> list[tuple[int, int, int]]:
    """The numbers that a citation marker names, each with its [start, end) in the marker, or that of its range.

    >>> [number for _, _, number in marker_numbers("[Doc 2, 3, p. 4]")], marker_numbers("【1:0†source】")
    ([2, 3], [(1, 2, 1)])
    >>> marker_numbers("[1-3]")
    [(1, 4, 1), (1, 4, 2), (1, 4, 3)]
    """
    plain = _UNCITED.sub(lambda found: " " * len(found.group()), marker)
    found: list[tuple[int, int, int]] = []
    for item in _ITEM.finditer(plain):
        number = int(unicodedata.normalize("NFKC", item["number"]))
        if item["to"] and 0 < number - found[-1][2] <= _WIDEST:
            start, _, first = found.pop()
            found += [(start, item.end(), one) for one in range(first, number + 1)]
        else:
            found.append((*item.span("number"), number))
    return found


def normal_number(word: str) -> str:
    """One form for every way to write a number: 1,200 = 1200 = 1200.0, "two" = 2; other words unchanged.

    >>> [normal_number(w) for w in ("1,200", "1200.0", "0.50", "twelve", "iron")]
    ['1200', '1200', '0.5', '12', 'iron']
    """
    if word in _NUMBER_WORDS:
        return _NUMBER_WORDS[word]
    if not _NUMBER.fullmatch(word):
        return word
    plain = word.replace(",", "")
    whole, _, decimals = plain.partition(".")
    return ".".join(filter(None, (whole.lstrip("0") or "0", decimals.rstrip("0"))))


def content_words(text: str) -> tuple[str, ...]:
    """Content words of `text` in order, with repeats (S3; grounded refinement, section 3.2).

    Lower-cased white-space words with the punctuation at their ends stripped, citation markers and stop words
    left out, numbers, letters with accents and apostrophes in one form.

    >>> content_words("The 1,200 mL flask, cooled twice [cite_2], took Two hours.")
    ('1200', 'ml', 'flask', 'cooled', 'twice', 'took', '2', 'hours')
    """
    plain = well_formed(unligated(text)).replace("’", "'").lower()
    bare = (_AROUND.sub("", word) for word in ANY_CITATION.sub(" ", plain).split())
    return tuple(normal_number(word) for word in bare if word and word not in STOP_WORDS)


_LIGATURES = {0xFB00 + i: letters for i, letters in enumerate(("ff", "fi", "fl", "ffi", "ffl", "st", "st"))}


def unligated(text: str) -> str:
    """`text` with the ligatures that PDF fonts write as the letters they are.

    >>> unligated("scienti\ufb01c e\ufb00ort")
    'scientific effort'
    """
    return text.translate(_LIGATURES)


def well_formed(text: str) -> str:
    """`text` with each accent in its letter (NFC) and without halves of characters, which no file can hold.

    >>> well_formed("Mu\\u0308ller \\ud83d")
    'Müller �'
    """
    if text.isascii():
        return text
    return composed(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def composed(text: str) -> str:
    """`text` with each accent in its letter (NFC), as a name of a file or a text out of a PDF may not have it."""
    return unicodedata.normalize("NFC", text)


def unwrapped(text: str) -> str:
    """`text` with each line break inside a sentence as a blank, as wrapped lines of a PDF have; offsets stay.

    >>> unwrapped("It was paid to the bank in Cork on the 3rd of\\nMarch 2021.\\n\\nNotes")
    'It was paid to the bank in Cork on the 3rd of March 2021.\\n\\nNotes'
    """
    position, parts = 0, []
    for start, end in sentences(text):
        parts += [text[position:start], _BREAK.sub(" ", text[start:end])]
        position = end
    return "".join([*parts, text[position:]])


_BREAK = re.compile(r"[\t\r\n\v\f\x85\u2028\u2029]")


def titled(title: str, text: str, gap: str = "\n") -> str:
    """`text` with its document's title and a `gap` in front, as it is embedded and indexed; underscores are spaces."""
    head = title.replace("_", " ").strip()
    return f"{head}{gap}{text}" if head else text


def counted(number: int, one: str, more: str = "") -> str:
    """A count with its noun, thousands apart; `more` where the plural is not made with an s.

    >>> counted(1, "case"), counted(0, "case"), counted(1200, "reply", "replies")
    ('1 case', '0 cases', '1,200 replies')
    """
    return f"{number:,} {one if number == 1 else more or f'{one}s'}"


def about(seconds: float) -> str:
    """A time that is only estimated: no more digits than it deserves.

    >>> about(0.2), about(7.4), about(75.6), about(1023), about(7300)
    ('1 s', '7 s', '80 s', '17 min', '2 h')
    """
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s" if seconds < 10 else f"{round(seconds, -1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.0f} h"


# Which of a question's words a text has: stems, their weights, and the weighted share that a text covers.

_own = threading.local()


_JOINED = re.compile(r"(?<!cite)_+")


def stems(text: str) -> tuple[str, ...]:
    """The content words of `text` by their English Snowball stems, in order, with repeats; "co2_ppm" is two words.

    >>> stems("The dried crystals were drying.")
    ('dri', 'crystal', 'dri')
    """
    return tuple(stemmer().stemWords(list(content_words(unjoined(text)))))


def unjoined(text: str) -> str:
    """The text with names of columns in words: "range_nm" as "range nm"; a citation marker stays."""
    return _JOINED.sub(" ", text)


def word_weights(question: str, texts: Sequence[Collection[str]]) -> dict[str, float]:
    """The stems of `question` with weights that sum to 1: rarer among `texts` (collections of stems) weighs more.

    The weight is BM25's inverse document frequency, ln(1 + (N - n + 0.5) / (n + 0.5)).
    """
    weights = {}
    for stem in dict.fromkeys(stems(question)):
        count = sum(stem in text for text in texts)
        weights[stem] = math.log(1 + (len(texts) - count + 0.5) / (count + 0.5))
    total = sum(weights.values())
    return {stem: weight / total for stem, weight in weights.items()} if total else {}


def covered(weights: dict[str, float], text: Iterable[str]) -> float:
    """The share in [0, 1] of the question's weight whose stems are in `text`."""
    return sum(weights.get(stem, 0.0) for stem in set(text))


def stemmer() -> Any:
    """This thread's English Snowball stemmer: one that two threads use at a time brings the process down."""
    if not hasattr(_own, "stemmer"):
        import Stemmer

        _own.stemmer = Stemmer.Stemmer("english")
    return _own.stemmer
