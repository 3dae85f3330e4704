"""The quoting reader: an answer made of the best sentences of the passages, word for word, each with its citation.

No language model. Every sentence is scored against the question (`sentence_scores.py`); `choose` takes a few, a run or
whole sections, by the question's wording; the answer quotes them in document order. When the closest sentence is
further than `Reader.close_enough` (cosine plus half the share of the question's words), the reader says so and quotes
nothing: under one in a hundred answerable questions of XQuAD and CLAP NQ. Deterministic; `read` returns every
candidate with the parts of its score. `best_sentences` gives the same ranking to a small writer as short passages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, takewhile
from typing import Literal

from msgspec.structs import replace

from engine.answer.prompt import NOTHING_CLOSE
from engine.answer.sentence_scores import WEIGHTS, Candidate, score_sentences, spoken
from engine.core.settings import Reader
from engine.core.text import BETWEEN_CELLS, LIST_ITEM, counted, is_line, titled
from engine.core.turns import SpokenTurn, speaker_within, turn_at
from engine.core.values import Answer, Citation, Passage, Value
from engine.models.protocols import Embedder
from engine.models.tables import names_columns

# How much is quoted. *short*: the best sentence and others within `NEAR` of it, a margin chosen on XQuAD so that a
# second one is quoted only where the scores leave doubt. *explain*: the closest section, and one more if nearly as
# close; without headings a run of sentences. *steps*: up to four sections, chosen on the sample procedures. To all of
# them comes what a quoted line introduces with a colon, a short list of which two items are quoted, the first row of a
# table of which a row is quoted, and a heading with the date, number or name asked for. "Why" is *short*: 1.5 sentences
# hold the answer to 31 of 37 questions of XQuAD, CLAP NQ and NQ that begin with it, a section of 2.8 to 30.

Depth = Literal["short", "explain", "steps"]
NEAR = 0.25  # score under the best at which a further sentence is still quoted
_INTRODUCED = 8  # lines of a list, a table or code that a line with a colon brings along, at most


@dataclass(frozen=True)
class _Amount:
    """How much one depth takes: sections, sentences in all, and how far under the best."""

    sections: int
    sentences: int
    section_near: float
    run: int
    run_near: float


_AMOUNTS = {"explain": _Amount(2, 14, 0.12, 6, 1.1), "steps": _Amount(4, 30, 0.25, 24, 1.7)}
_HEADING_WEIGHT = 0.75  # of a heading's cosine against the mean score of its three best sentences
_STEPS = re.compile(
    r"\b(?:all|each|every|complete|full|entire|whole)\b.{0,40}\b(?:steps?|procedure|stages?|process|operations)\b|"
    r"\b(?:list|give|what are|explain|describe|outline) the (?:\w+ )?(?:steps|stages|procedure)\b|"
    r"\bstep[- ]by[- ]step\b|\bwalk (?:me|us) through\b",
    re.I,
)
_EXPLAIN = re.compile(
    r"\bhow (?:is|are|was|were|do|does|did|can|could|should|would|to)\b|"
    r"^(?:please )?(?:explain|describe|outline|summari[sz]e|compare|discuss)\b",
    re.I,
)


def depth_of(question: str) -> Depth:
    """How much of an answer the question asks for, by its wording.

    >>> depth_of("Explain all the steps of the synthesis."), depth_of("How is it dried?"), depth_of("Who dried it?")
    ('steps', 'explain', 'short')
    """
    if _STEPS.search(question):
        return "steps"
    return "explain" if _EXPLAIN.search(question.strip()) else "short"


def choose(candidates: Sequence[Candidate], passages: Sequence[Passage], depth: Depth, most: int) -> list[Candidate]:
    """The sentences to quote, in document order; `most` of them at most for a short question."""
    usable = _distinct(candidates, passages)
    if not usable:
        return []
    if depth == "short":
        best = sorted(usable, key=lambda c: -c.score)[: max(most, 1)]
        return in_document_order([c for c in best if c.score >= best[0].score - NEAR], passages)
    line = _document_line(candidates, max(usable, key=lambda c: c.score), passages)
    return _sections(line, passages, _AMOUNTS[depth]) or _run(line, passages, _AMOUNTS[depth])


def of_speakers(
    question: str, candidates: Sequence[Candidate], passages: Sequence[Passage], close_enough: float
) -> list[Candidate]:
    """The best sentence of each speaker of a transcript whom the question names; none where it names fewer than two."""
    asked, told = set(re.findall(r"\w+", question)), spoken(passages)
    best: dict[str, Candidate] = {}
    for candidate in sorted(_distinct(candidates, passages), key=lambda c: -c.score):
        turn = turn_at(told[candidate.number - 1], candidate.start)
        if turn is None or turn.asks or candidate.closeness < close_enough:
            continue
        if not asked.isdisjoint(word for word in turn.speaker.split() if not word.islower()):
            best.setdefault(turn.speaker, candidate)
    return list(best.values()) if len(best) > 1 else []


def whole(picked: Sequence[Candidate], candidates: Sequence[Candidate], passages: Sequence[Passage]) -> list[Candidate]:
    """`picked` with what its lines introduce, the rest of a list of which it has two items, and rows with the first row
    of their table, in the order given.
    """
    result: dict[tuple[int, int], Candidate] = {}
    for candidate in picked:
        line = _document_line(candidates, candidate, passages)
        at = line.index(candidate)
        head = _table_head(line, at, passages)
        items = _list_around(line, at, passages)
        around = items if sum(line[n] in picked for n in items) > 1 else (at,)
        above = _answering_heading(line, at, passages)
        for n in (*above, *([head] if head < at else ()), *around, *_introduced(line, at, head, passages)):
            result.setdefault((line[n].number, line[n].start), line[n])
    return list(result.values())


def _answering_heading(line: Sequence[Candidate], at: int, passages: Sequence[Passage]) -> list[int]:
    """The places of the headings above the sentence at `at` that have what is asked for, where it lacks it itself."""
    under = next((n for n in range(at - 1, -1, -1) if line[n].heading), at)
    first = next((n + 1 for n in range(under, -1, -1) if not line[n].heading), 0)
    if line[at].parts.get("cue") != 0 or not _adjoins(line, under, at, passages):
        return []
    has = (n for n in range(first, under + 1) if line[n].parts["cue"] == WEIGHTS["cue"])
    return [n for n in has if not sentence_text(line[n], passages).endswith("?")]


def _table_head(line: Sequence[Candidate], at: int, passages: Sequence[Passage]) -> int:
    """The place of the first row of the table that has the row at `at`; `at` itself for another line."""
    return next(n for n in range(at, -1, -1) if not _continues(line, n, passages, _is_row))


def _list_around(line: Sequence[Candidate], at: int, passages: Sequence[Passage]) -> range:
    """The places of the list that has the item at `at`, with the line that introduces it; none where it is too long."""
    first = next(n for n in range(at, -1, -1) if not _continues(line, n, passages, _is_item))
    end = next((n for n in range(at + 1, len(line)) if not _continues(line, n, passages, _is_item)), len(line))
    led = (
        first > 0
        and sentence_text(line[first - 1], passages).endswith(":")
        and _adjoins(line, first, first - 1, passages)
    )
    return range(first - led, end) if end - first <= _INTRODUCED else range(0)


def _introduced(line: Sequence[Candidate], at: int, head: int, passages: Sequence[Passage]) -> list[int]:
    """The places of the lines after a line that ends with a colon, or after the first row of a table."""
    first_row = head == at and _is_row(line[at], passages)
    if not first_row and not sentence_text(line[at], passages).endswith(":"):
        return []

    def belongs(n: int) -> bool:
        return _follows(line, n, passages) if first_row or n > at + 1 else _adjoins(line, n, at, passages)

    return list(takewhile(belongs, range(at + 1, min(at + 1 + _INTRODUCED, len(line)))))


def _continues(
    line: Sequence[Candidate], at: int, passages: Sequence[Passage], of: Callable[[Candidate, Sequence[Passage]], bool]
) -> bool:
    """Are the place and the one before it both items of one list, or rows of one table, as `of` tells them?"""
    return at > 0 and all(of(c, passages) for c in line[at - 1 : at + 1]) and _follows(line, at, passages)


def _is_item(candidate: Candidate, passages: Sequence[Passage]) -> bool:
    """Is it an item of a list, with or without a mark?"""
    text = sentence_text(candidate, passages)
    return not candidate.heading and is_line(text) and BETWEEN_CELLS not in text


def _is_row(candidate: Candidate, passages: Sequence[Passage]) -> bool:
    """Is it a row of a table that needs the table's first row to be understood?"""
    text = sentence_text(candidate, passages)
    return BETWEEN_CELLS in text and not names_columns(text)


def _follows(line: Sequence[Candidate], at: int, passages: Sequence[Passage]) -> bool:
    """Is the line the next one of the list, the table or the piece of code that the line before it belongs to."""
    before, here = line[at - 1], line[at]
    both = all(LIST_ITEM.match(sentence_text(c, passages)) for c in (before, here))
    if before.number != here.number:  # passages end with lines
        return _adjoins(line, at, at - 1, passages) and (both or all(_is_row(c, passages) for c in (before, here)))
    gap = passages[here.number - 1].text[before.end : here.start]
    return gap.count("\n") == 1 or ("\n" in gap and both)


def in_document_order(picked: Sequence[Candidate], passages: Sequence[Passage]) -> list[Candidate]:
    """Documents in the order of their best sentence, sentences in document order."""
    by_score = sorted(picked, key=lambda candidate: candidate.score)
    best = {passages[candidate.number - 1].document: candidate.score for candidate in by_score}

    def place(candidate: Candidate) -> tuple[float, str, int]:
        passage = passages[candidate.number - 1]
        return -best[passage.document], passage.document, passage.start + candidate.start

    return sorted(picked, key=place)


def sentence_text(candidate: Candidate, passages: Sequence[Passage]) -> str:
    """The sentence itself."""
    return passages[candidate.number - 1].text[candidate.start : candidate.end]


def _distinct(candidates: Sequence[Candidate], passages: Sequence[Passage]) -> list[Candidate]:
    """The candidates that may be quoted: no headings, and of sentences with the same words the best."""
    best: dict[str, Candidate] = {}
    for candidate in candidates:
        text = sentence_text(candidate, passages)
        known = best.get(text)
        if not candidate.heading and (known is None or candidate.score > known.score):
            best[text] = candidate
    return list(best.values())


def _document_line(candidates: Sequence[Candidate], best: Candidate, passages: Sequence[Passage]) -> list[Candidate]:
    """The candidates from the document of the best one, in document order, each place once."""
    placed = [(passages[c.number - 1], c) for c in (best, *candidates)]  # of two at one place the first
    own = [(p.start + c.start, c) for p, c in reversed(placed) if p.document == placed[0][0].document]
    return [candidate for _, candidate in sorted(dict(own).items())]


def _sections(line: Sequence[Candidate], passages: Sequence[Passage], amount: _Amount) -> list[Candidate]:
    """The closest sections' sentences whole; nothing where the document has no headings or they are too long."""
    sections = _split_at_headings(line)
    scores = [_section_score(heading, inside, passages) for heading, inside in sections]
    closest = sorted(range(len(sections)), key=lambda n: -scores[n])[: amount.sections]
    chosen, taken = [], 0
    for n in closest:
        count = len(sections[n][1])
        if scores[n] >= scores[closest[0]] - amount.section_near and taken + count <= amount.sentences:
            chosen.append(n)
            taken += count
    return [candidate for n in sorted(chosen) for candidate in sections[n][1]]


def _split_at_headings(line: Sequence[Candidate]) -> list[tuple[Candidate | None, list[Candidate]]]:
    """Headings with the sentences under each; what comes before the first is a section too, if there are any."""
    groups: list[tuple[Candidate | None, list[Candidate]]] = [(None, [])]
    for candidate in line:
        if candidate.heading:
            groups.append((candidate, []))
        else:
            groups[-1][1].append(candidate)
    return [group for group in groups if group[1]] if len(groups) > 1 else []


def _section_score(heading: Candidate | None, inside: Sequence[Candidate], passages: Sequence[Passage]) -> float:
    """Mean of the three best sentences, plus the weighted cosine of the heading unless it is the document's title."""
    best = sorted((c.score for c in inside), reverse=True)[:3]
    mean = sum(best) / len(best)
    if heading is None:
        return mean
    title = titled(passages[heading.number - 1].title, "").strip()
    own = sentence_text(heading, passages).strip() != title
    return mean + _HEADING_WEIGHT * heading.parts["cosine"] * own


def _run(line: Sequence[Candidate], passages: Sequence[Passage], amount: _Amount) -> list[Candidate]:
    """Consecutive sentences around the best one; it grows backwards only over sentences as good as the best.

    A score counts as the mean with its neighbours', so that one weak sentence does not end the run.
    """
    scores = [c.score for c in line]
    smooth = [sum(scores[max(i - 1, 0) : i + 2]) / len(scores[max(i - 1, 0) : i + 2]) for i in range(len(scores))]
    top = max((i for i, c in enumerate(line) if not c.heading), key=lambda i: scores[i])
    first = last = top
    while last - first + 1 < amount.run:
        options = [
            i
            for i in (first - 1, last + 1)
            if 0 <= i < len(line)
            and _adjoins(line, i, first if i < first else last, passages)
            and (i > last or scores[i] >= scores[top] - NEAR)
        ]
        following = max(options, key=lambda i: smooth[i], default=None)
        if following is None or smooth[following] < scores[top] - amount.run_near:
            break
        first, last = min(first, following), max(last, following)
    return [c for c in line[first : last + 1] if not c.heading]


def _adjoins(line: Sequence[Candidate], there: int, at: int, passages: Sequence[Passage]) -> bool:
    """Do two places of the line stand side by side in the document: no passage between them is missing."""
    ordinals = [passages[line[i].number - 1].ordinal for i in (there, at)]
    return abs(ordinals[0] - ordinals[1]) <= 1


class Reading(Value, frozen=True):
    """An answer with every candidate sentence, in passage and text order, and the rule of choice in words.

    `closeness` is that of the closest sentence, `threshold` the setting that it was held against.
    """

    answer: Answer
    candidates: tuple[Candidate, ...]
    rule: str
    depth: Depth
    closeness: float
    threshold: float


def read(question: str, passages: Sequence[Passage], embedder: Embedder, settings: Reader = Reader()) -> Reading:
    """The answer with its candidates; passage i of `passages` is cited as i + 1."""
    candidates = score_sentences(question, passages, embedder)
    depth = depth_of(question)
    closest = max((c.closeness for c in candidates if not c.heading), default=0.0)
    refused = closest < settings.close_enough
    chosen = [] if refused else choose(candidates, passages, depth, settings.sentences)
    named = of_speakers(question, candidates, passages, settings.close_enough) if depth == "short" and chosen else []
    named = [candidate for candidate in named if candidate not in chosen]
    chosen = in_document_order([*chosen, *named], passages)
    picked = whole(chosen, candidates, passages)
    return Reading(
        answer=quote(picked, passages)
        if picked
        else Answer(text=NOTHING_CLOSE, sentences=((0, len(NOTHING_CLOSE)),), refused=True),
        candidates=tuple(replace(c, chosen=c in picked) for c in candidates),
        rule=_rule(depth, refused or not picked, len(chosen) - len(named), len(picked) - len(chosen), settings)
        + " With them the best sentence of each speaker whom the question names." * bool(named),
        depth=depth,
        closeness=closest,
        threshold=settings.close_enough,
    )


def withheld(reading: Reading, passages: Sequence[Passage], settings: Reader = Reader()) -> Answer | None:
    """The quotation without a threshold, for a reading that quoted nothing; None for another, or without a sentence."""
    chosen = choose(reading.candidates, passages, reading.depth, settings.sentences) if reading.answer.refused else []
    return quote(whole(chosen, reading.candidates, passages), passages) if chosen else None


def quote(picked: Sequence[Candidate], passages: Sequence[Passage]) -> Answer:
    """The answer that quotes `picked` in the order given, each followed by " [cite_N]"; a sentence spans both.

    Line breaks inside a sentence are spaces in the answer; a list item, a row or another line that is no sentence has
    a line of its own. `quotes` point to the words as they are in the passage. In a transcript the speaker's label comes
    before words that are quoted without it, unless the sentence before is of the same turn.
    """
    told = spoken(passages)
    before: SpokenTurn | None = None
    text, after_line = "", False
    spans: list[tuple[int, int]] = []
    citations: list[Citation] = []
    quotes: list[tuple[int, int, int, int]] = []
    for index, candidate in enumerate(picked):
        line = " ".join(sentence_text(candidate, passages).split())
        turn = turn_at(told[candidate.number - 1], candidate.start)
        if turn and turn.speaker and turn.words <= candidate.start and turn is not before:
            line = f"{turn.speaker}: {line}"
        before = turn
        marker, alone = f"[cite_{candidate.number}]", is_line(line)
        gap = "" if not text else "\n" if alone or after_line else " "
        start, after_line = len(text) + len(gap), alone
        text += f"{gap}{line} {marker}"
        citations.append(Citation(start=len(text) - len(marker), end=len(text), number=candidate.number, valid=True))
        spans.append((start, len(text)))
        quotes.append((index, candidate.number, candidate.start, candidate.end))
    return Answer(text=text, sentences=tuple(spans), citations=tuple(citations), quotes=tuple(quotes))


def _rule(depth: Depth, refused: bool, count: int, more: int, settings: Reader) -> str:
    if refused:
        return f"No sentence reached the closeness of {settings.close_enough:g}, so nothing was quoted."
    with_them = f" With them {counted(more, 'line')} of the lists and tables that they belong to." if more else ""
    if depth == "short" and count == 1:
        return f"The best sentence; no other came near its score.{with_them}"
    if depth == "short":
        return f"The {count} best sentences, within {NEAR:g} of the best score, in document order.{with_them}"
    asked = "all the steps" if depth == "steps" else "an explanation"
    closest = f"{count} sentences of the closest part of the document, in its order."
    return f"The question asks for {asked}: {closest}{with_them}"


# Best sentences for a small writer: a model of a hundred million parameters seems to answer better from fewer
# (bench/RESULTS.md: 60 questions, intervals overlap). Each piece is a frozen span with a number of its own.

_CUT = "#"
Run = tuple[int, int, int]
"""Passage number from 1, and the characters [start, end) of its text."""


def best_sentences(question: str, passages: Sequence[Passage], embedder: Embedder, most: int) -> tuple[Passage, ...]:
    """The `most` best sentences, best first; neighbours in one passage become one piece, at the better one's place."""
    pieces: list[Run] = []
    for candidate in _best(question, passages, embedder, most):
        pieces = _joined(pieces, (candidate.number, candidate.start, candidate.end), passages)
    return tuple(piece(passages[number - 1], start, end) for number, start, end in pieces)


def shortened(
    question: str, passages: Sequence[Passage], embedder: Embedder, most: int
) -> tuple[tuple[int, Passage], ...]:
    """The passages that hold the `most` best sentences, in the order given, each from its first to its last of these.

    Each comes with the number that it has among `passages`, so that citations and labels of the whole hold for it.
    """
    best = sorted(_best(question, passages, embedder, most), key=lambda c: c.number)
    held = {number: list(own) for number, own in groupby(best, key=lambda c: c.number)}
    return tuple(
        (n, piece(passages[n - 1], min(c.start for c in own), max(c.end for c in own))) for n, own in held.items()
    )


def _best(question: str, passages: Sequence[Passage], embedder: Embedder, most: int) -> list[Candidate]:
    """The `most` best sentences, best first, headings left out, each text once; a reply with its question."""
    candidates = score_sentences(question, passages, embedder)
    asked = {
        (reply.number, reply.start): before.start
        for before, reply in pairwise(candidates)
        if before.number == reply.number and before.heading and sentence_text(before, passages).endswith("?")
    }
    best = sorted(_distinct(candidates, passages), key=lambda c: -c.score)[:most]
    return [replace(c, start=asked.get((c.number, c.start), c.start)) for c in best]


def piece(passage: Passage, start: int, end: int) -> Passage:
    """Characters [start, end) of a passage's text as a passage; the passage itself where that is all of it."""
    if (start, end) == (0, len(passage.text)):
        return passage
    return replace(
        passage,
        id=f"{passage.id}{_CUT}{start}-{end}",
        start=passage.start + start,
        end=passage.start + end,
        text=passage.text[start:end],
        speaker=speaker_within(passage.text, passage.speaker, start),
    )


def whole_id(passage: Passage) -> str:
    """The id of the passage that a piece was cut from, or that lost an overlap; its own where it is whole.

    `piece` marks a cut by its span, `context.without_overlap` by how many characters are gone.

    >>> whole_id(piece(Passage(id="a", document="d", title="", ordinal=0, start=9, end=13, text="A. B"), 3, 4))
    'a'
    """
    return re.sub(rf"(\+\d+|{_CUT}\d+-\d+)+$", "", passage.id)


def _joined(pieces: Sequence[Run], new: Run, passages: Sequence[Passage]) -> list[Run]:
    """The pieces with one more; it is merged with those that only white space parts it from."""
    number, start, end = new
    text = passages[number - 1].text
    touching = [p for p in pieces if p[0] == number and not text[min(p[2], end) : max(p[1], start)].strip()]
    if not touching:
        return [*pieces, new]
    whole = (number, min(start, *(p[1] for p in touching)), max(end, *(p[2] for p in touching)))
    return [whole if p == touching[0] else p for p in pieces if p not in touching[1:]]
