"""The quoting reader: an answer made of the best sentences of the passages, word for word, each with its citation.

No language model: every sentence is scored against the question (`sentence_scores`), and the chosen ones (`choice`)
are quoted in document order; documents come in the order of their best chosen sentence.

When the closest sentence is further than `Reader.close_enough` (cosine plus half the share of the question's words),
the reader says so and quotes nothing. The threshold was chosen so that under one in a hundred answerable questions
of XQuAD and CLAP NQ is refused. Deterministic; `reading` returns every candidate with the parts of its score.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.answer.choice import NEAR, Depth, choose, depth_of, sentence_text
from engine.answer.sentence_scores import Candidate, score_sentences
from engine.models.protocols import Can, Embedder
from engine.settings import Reader
from engine.types import Answer, Citation, Passage, Value

NOTHING_CLOSE = "Nothing in the passages is close enough to the question."


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


class QuotingReader:
    """Reads with an embedder; see the module's docstring."""

    name = "reader"
    can = Can(
        generate=True,
        why_not="The quoting reader copies sentences and has no probabilities. Choose a language model.",
    )

    def __init__(self, embedder: Embedder, settings: Reader | None = None) -> None:
        """`settings` hold the largest number of sentences for a short question and the refusal threshold."""
        self._embedder = embedder
        self._settings = settings or Reader()

    def read(self, question: str, passages: Sequence[Passage]) -> Answer:
        """The answer alone; passage i of `passages` is cited as i + 1."""
        return self.reading(question, passages).answer

    def reading(self, question: str, passages: Sequence[Passage]) -> Reading:
        """The answer with its candidates."""
        candidates = score_sentences(question, passages, self._embedder)
        depth = depth_of(question)
        closest = max((c.closeness for c in candidates if not c.heading), default=0.0)
        refused = closest < self._settings.close_enough
        picked = [] if refused else choose(candidates, passages, depth, self._settings.sentences)
        marked = tuple(msgspec.structs.replace(c, chosen=c in picked) for c in candidates)
        return Reading(
            answer=quote(picked, passages) if picked else _refusal(),
            candidates=marked,
            rule=_rule(depth, refused or not picked, len(picked), self._settings),
            depth=depth,
            closeness=closest,
            threshold=self._settings.close_enough,
        )


def quote(picked: Sequence[Candidate], passages: Sequence[Passage]) -> Answer:
    """The answer that quotes `picked` in the order given, each followed by " [cite_N]"; a sentence spans both."""
    text = ""
    spans: list[tuple[int, int]] = []
    citations: list[Citation] = []
    quotes: list[tuple[int, int, int, int]] = []
    for index, candidate in enumerate(picked):
        start = len(text) + bool(text)
        marker = f"[cite_{candidate.number}]"
        text += " " * bool(text) + f"{sentence_text(candidate, passages)} {marker}"
        citations.append(Citation(start=len(text) - len(marker), end=len(text), number=candidate.number, valid=True))
        spans.append((start, len(text)))
        quotes.append((index, candidate.number, candidate.start, candidate.end))
    return Answer(text=text, sentences=tuple(spans), citations=tuple(citations), quotes=tuple(quotes))


def _refusal() -> Answer:
    """The answer that says that nothing is close enough."""
    return Answer(text=NOTHING_CLOSE, sentences=((0, len(NOTHING_CLOSE)),), refused=True)


def _rule(depth: Depth, refused: bool, count: int, settings: Reader) -> str:
    """The rule of choice in words, for the page."""
    if refused:
        return f"No sentence reached the closeness of {settings.close_enough:g}, so nothing was quoted."
    if depth == "short" and count == 1:
        return "The best sentence; no other came near its score."
    if depth == "short":
        return f"The {count} best sentences, within {NEAR:g} of the best score, in document order."
    asked = "all the steps" if depth == "steps" else "an explanation"
    return f"The question asks for {asked}: {count} sentences of the closest part of the document, in its order."
