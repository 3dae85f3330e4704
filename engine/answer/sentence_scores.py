"""How close each sentence of some passages is to a question: the parts that the quoting reader adds up.

Every part is general and can be shown: nothing was learned but seven weights and a power. They were fitted by maximum
likelihood (which sentence of the retrieved passages holds the answer) on 250 questions of the NQ gold passages. Meaning
then got twice its weight, and low shares of words less, on XQuAD, CLAP NQ, HotpotQA and 110 questions on invented
documents, half of which share no word with their answer (`bench/asked.py`). With the fitted weights, the defining
sentence was the best one for 0.92 of 150 questions "What is" with a title of HotpotQA's pages, and for 0.84 without the
cue.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.core.text import covered, headings, sentences, stems, titled, word_weights
from engine.core.turns import SpokenTurn, continued, turn_at, turns
from engine.core.values import Passage, Value
from engine.models.protocols import Embedder
from engine.models.tables import tables, with_columns

WEIGHTS = {
    "cosine": 2.0,  # question to the sentence after its document's title and headings; a row with its columns' names
    # share of the question's content words, rare ones weighing more, that it has with its headings, raised to POWER
    "words": 0.6,
    "context": 0.8,  # the same with the sentence before and the title
    "passage": 1.0,  # the passage's own closeness less that of the closest passage, 0 or below
    # a date for "when", a number for "how many", a version for "which version", a name that the question lacks for
    # "who" and "where", for "what is" a sentence that begins with the same and says what it is
    "cue": 0.2,
    "heading": -0.3,  # 1 for a question or a line without an end mark that heads what follows
    "length": 0.2,  # natural logarithm of 1 + content words: short sentences match by chance
}
POWER = 1.5  # a low share counts for less than its part: a question in other words shares some by chance
WORDS_IN_CLOSENESS = 0.5
WORDS_IN_PASSAGE = 0.25

_DATE = re.compile(
    r"\b(?:1\d{3}|20\d\d|january|february|(?-i:March)|april|(?-i:May)|june|july|august|september|october|november|"
    r"december|(?:mon|tues|wednes|thurs|fri|satur|sun)day|centur(?:y|ies)|decades?|\d{1,2}(?:st|nd|rd|th)|bce?|ad|"
    r"\d+s|years?|today)\b",
    re.I,
)
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|million|billion|dozen|"
    r"half|third|quarter|per ?cent|once|twice|none)\b",
    re.I,
)
_VERSION = re.compile(r"\d\.\d|\bv(?:ersion)? ?\d", re.I)
_NAME = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][\w'’-]+")
_ASKS_DATE = re.compile(r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|century|decade|time)\b", re.I)
_ASKS_NUMBER = re.compile(
    r"\bhow (?:many|much|long|far|old|tall|high|large|big|often|fast|deep|wide|heavy|hot|cold|warm)\b|"
    r"\bwhat (?:percentage|per ?cent|number|amount|size|population|share|mass|volume|temperature)\b",
    re.I,
)
_ASKS_VERSION = re.compile(r"\b(?:what|which) (?:version|release)\b", re.I)
_ASKS_NAME = re.compile(
    r"\b(?:who|whom|whose|where)\b|\b(?:what|which) (?:person|city|country|state|place|town|county|region|river)\b",
    re.I,
)
_ASKS_MEANING = re.compile(
    r"(?:what|who)(?:['’]s| is| are| was| were) (?:an? |the )?(?P<is>[^?]+?)\W*$|"
    r"what do(?:es)? (?:an? |the )?(?P<means>[^?]+?) mean\W*$",
    re.I,
)
_SAYS_WHAT = (
    r"(?:\W*|.{{1,40}}, )(?:the |an? )?{0}(?:e?s)?(?: \([^)]*\)|,[^,]{{1,80}},)? "
    r"(?:is|are|was|were|means?|refers? to)\b"
)
# "What did Tom say about his sleep?" asks for what he said of it, not for a sentence with "say" in it.
_ASKS_WORDS = re.compile(r"(?<=\w) (?:says?|said|thinks?|mention(?:s|ed)?)(?= (?:about|of|on)\b)", re.I)
_LABEL = re.compile(r"^\d+(?:\.\d+)?[.)]?\s+(?=[^\W\d])")  # the number of a heading
_LONGEST_HEADING = 10  # content words


class Candidate(Value, frozen=True):
    """A sentence that could be quoted: passage number from 1, offsets into that passage's text.

    `score` is the sum of `parts`, each already weighted; `closeness` (0 to about 1.5) decides on refusal.
    """

    number: int
    start: int
    end: int
    score: float
    closeness: float
    parts: dict[str, float] = {}
    heading: bool = False
    chosen: bool = False


@dataclass(frozen=True)
class _Sentence:
    """A sentence with what its score is made from."""

    number: int
    start: int
    end: int
    text: str
    stems: frozenset[str]
    heading: bool
    named: str  # what is compared: the text after its headings or question, a table's cells with their columns' names


def score_sentences(question: str, passages: Sequence[Passage], embedder: Embedder) -> tuple[Candidate, ...]:
    """Every sentence of the passages with its score, in passage and text order."""
    found = _split(passages)
    if not found:
        return ()
    weights = word_weights(_ASKS_WORDS.sub("", question), [s.stems for s in found])
    vectors = embedder.embed([question, *(titled(passages[s.number - 1].title, s.named) for s in found)])
    cosines = [float(c) for c in vectors[1:] @ vectors[0]]
    close = _passage_closeness(found, passages, weights, cosines)
    result = []
    for s, cosine, context in zip(found, cosines, _contexts(found, passages), strict=True):
        words = covered(weights, s.stems)
        raw = {
            "cosine": cosine,
            "words": words**POWER,
            "context": covered(weights, context) ** POWER,
            "passage": close[s.number],
            "cue": answer_cue(question, _LABEL.sub("", s.text, 1) if s.heading else s.text),
            "heading": float(s.heading),
            "length": math.log1p(len(s.stems)),
        }
        parts = {name: WEIGHTS[name] * value for name, value in raw.items()}
        result.append(
            Candidate(
                number=s.number,
                start=s.start,
                end=s.end,
                score=sum(parts.values()),
                closeness=cosine + WORDS_IN_CLOSENESS * words,
                parts=parts,
                heading=s.heading,
            )
        )
    return tuple(result)


def answer_cue(question: str, sentence: str) -> float:
    """1 where the sentence has the kind of thing that the question asks for, 0 where not, 0.5 for other questions.

    >>> answer_cue("What is a kiln?", "A kiln is an oven."), answer_cue("What is a kiln?", "They built a kiln.")
    (1.0, 0.5)
    >>> answer_cue("When was it founded?", "It was founded in 1820."), answer_cue("Who founded it?", "It was founded.")
    (1.0, 0.0)
    """
    if meant := _ASKS_MEANING.match(question.strip()):
        named = re.escape((meant["is"] or meant["means"]).removesuffix("s"))
        if re.match(_SAYS_WHAT.format(named), sentence, re.I):
            return 1.0
    for asks, has in ((_ASKS_DATE, _DATE), (_ASKS_VERSION, _VERSION), (_ASKS_NUMBER, _NUMBER)):
        if asks.search(question):
            return float(bool(has.search(sentence)))
    if _ASKS_NAME.search(question):
        asked = {word.lower() for word in re.findall(r"[\w'’-]+", question)}
        return float(any(name.lower() not in asked for name in _NAME.findall(sentence)))
    return 0.5


def spoken(passages: Sequence[Passage]) -> list[list[SpokenTurn]]:
    """The turns of each passage, where its document is a transcript by those of its passages that are here.

    The words before the first label belong to the last turn of the passage before, if that is here too, else to the
    passage's `speaker`.
    """
    found: list[list[SpokenTurn]] = [[] for _ in passages]
    for document in dict.fromkeys(passage.document for passage in passages):
        own = sorted((n for n, p in enumerate(passages) if p.document == document), key=lambda n: passages[n].ordinal)
        for n, told in zip(own, turns(*(passages[n].text for n in own)), strict=True):
            found[n] = told
        asking = {turn.speaker for n in own for turn in found[n] if turn.asks}
        for before, n in zip([own[0], *own], own, strict=False):
            first, who = found[n][0].start if found[n] else len(passages[n].text), passages[n].speaker
            if first and found[before] and passages[before].ordinal + 1 == passages[n].ordinal:
                found[n].insert(0, replace(found[before][-1], start=0, words=0, end=first))
            else:
                found[n] = continued(found[n], passages[n].text, who, asks=who in asking)
    return found


def _split(passages: Sequence[Passage]) -> list[_Sentence]:
    """The sentences of the passages, each with the headings above it and its speaker.

    All words of the one who asks in a transcript head the reply to them.
    """
    found: list[_Sentence] = []
    under = ""
    for number, (passage, told) in enumerate(zip(passages, spoken(passages), strict=True), start=1):
        before = passages[number - 2] if number > 1 else None
        if before is None or (before.document, before.ordinal + 1) != (passage.document, passage.ordinal):
            under = ""
        title = titled(passage.title, "").strip()
        spans, heads = sentences(passage.text), {row: t.head for t in tables(passage.text) for row in t.rows}
        for (start, end), heads_next in zip(spans, headings(passage.text, spans), strict=True):
            text, head, turn = passage.text[start:end], heads.get((start, end)), turn_at(told, start)
            heading = heads_next or (turn is not None and (turn.asks or end <= turn.words))
            shown = with_columns(text, head) if head else text
            if turn and turn.speaker and start >= turn.words:
                shown = f"{turn.speaker}: {shown}"
            named = shown if heading else f"{under} {shown}".strip()
            below = heading and bool(found) and found[-1].heading and found[-1].number == number
            found.append(_Sentence(number, start, end, text, frozenset(stems(named)), heading, named))
            if heading and text != title and (text.endswith("?") or len(stems(text)) <= _LONGEST_HEADING):
                under = f"{under} {text}".strip() if below else text
            elif turn and turn.asks and not below:
                under = ""  # the question before has had its reply
    return found


def _contexts(found: Sequence[_Sentence], passages: Sequence[Passage]) -> list[set[str]]:
    """For each sentence its stems with those of the one before and of the title."""
    contexts: list[set[str]] = []
    for before, sentence in zip([None, *found], found, strict=False):
        passage = passages[sentence.number - 1]
        if before is not None and passages[before.number - 1].document != passage.document:
            before = None
        title = stems(passage.title.replace("_", " "))
        contexts.append({*sentence.stems, *(before.stems if before else ()), *title})
    return contexts


def _passage_closeness(
    found: Sequence[_Sentence], passages: Sequence[Passage], weights: dict[str, float], cosines: Sequence[float]
) -> dict[int, float]:
    """By passage number: its best sentence's cosine plus a quarter of its share of words, less the best passage's."""
    close = {}
    for number in {s.number for s in found}:
        own = [(s, c) for s, c in zip(found, cosines, strict=True) if s.number == number]
        words = {*stems(passages[number - 1].title.replace("_", " ")), *(w for s, _ in own for w in s.stems)}
        close[number] = max(c for _, c in own) + WORDS_IN_PASSAGE * covered(weights, words)
    best = max(close.values())
    return {number: value - best for number, value in close.items()}
