"""Load real questions and their answering sentences, each among sentences that a search would also return.

Read from a folder of public sets whose licence allows training (assets/models/adapter/README.md names them); XQuAD is
never read. A tenth of the documents is held out by the hash of the title.
"""

from __future__ import annotations

import json
import random
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from engine.answer.quoting_reader import best_sentences, piece
from engine.core.progress import Watch
from engine.core.text import sentences, titled
from engine.core.values import Passage
from engine.models.embedder import load_embedder
from engine.models.protocols import Embedder, Floats

LONGEST = 60  # words of an answering sentence; longer ones are tables and lists
NEIGHBOURS = 8  # passages of a question's pool
_SPACED = re.compile(r"\s+([,.;:!?%)\]]|'s\b|n't\b)")


@dataclass(frozen=True)
class Question:
    """A question, its passage, and the answering sentences [start, end) in it; empty if unanswerable."""

    text: str
    passage: Passage
    answers: tuple[tuple[int, int], ...]
    short: str = ""


class Remembering:
    """An embedder that caches every vector, since sentences recur in thousands of contexts."""

    def __init__(self, embedder: Embedder, texts: Iterable[str]) -> None:
        """Wrap `embedder` and embed `texts` at once."""
        self.name, self.dimensions, self._embedder = embedder.name, embedder.dimensions, embedder
        known = list(dict.fromkeys(texts))
        self._known = dict(zip(known, embedder.embed(known), strict=True))

    def embed(self, texts: Sequence[str], watch: Watch = Watch()) -> Floats:
        """Unit vectors, shape (texts, dimensions)."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._embedder.embed(new, watch), strict=True))
        return np.array([self._known[text] for text in texts], dtype=np.float32).reshape(len(texts), self.dimensions)


@dataclass(frozen=True)
class Sources:
    """The sources of all examples."""

    questions: tuple[Question, ...]
    passages: tuple[Passage, ...]
    verdicts: tuple[dict[str, str], ...]
    edits: tuple[dict[str, str], ...]

    @cached_property
    def _vectors(self) -> Floats:
        return load_embedder().embed([titled(p.title, p.text) for p in self.passages])

    @cached_property
    def _places(self) -> dict[str, int]:
        return {passage.id: place for place, passage in enumerate(self.passages)}

    @cached_property
    def embedder(self) -> Embedder:
        """The project's embedder, with the passages' sentences embedded in advance."""
        return Remembering(load_embedder(), (p.text[a:b] for p in self.passages for a, b in sentences(p.text)))

    def neighbours(self, question: Question) -> list[Passage]:
        """The passages nearest to a question except its own, best first."""
        near = self._vectors @ self.embedder.embed([question.text])[0]
        near[self._places[question.passage.id]] = -1
        return [self.passages[int(i)] for i in np.argsort(-near)[:NEIGHBOURS]]

    def context(self, question: Question, rng: random.Random, most: int, *, answered: bool = True) -> list[Passage]:
        """The best sentences as the small writer gets them, with or without the answering one."""
        pool = self.neighbours(question)[: rng.randint(1, NEIGHBOURS)]
        if not answered:
            pool = [p for p in pool if not question.short or question.short.lower() not in p.text.lower()]
            return list(best_sentences(question.text, pool or [rng.choice(self.passages)], self.embedder, most))
        place = rng.randint(0, len(pool))
        found = list(
            best_sentences(question.text, [*pool[:place], question.passage, *pool[place:]], self.embedder, most)
        )
        if number_of(question, found) is None:
            # Any place: always the last one teaches that the last one answers.
            found[rng.randrange(len(found))] = piece(question.passage, *question.answers[0])
        return found


def number_of(question: Question, context: Sequence[Passage]) -> int | None:
    """The number, from 1, of the piece that holds the answering sentence."""
    start = question.passage.start + question.answers[0][0]
    end = question.passage.start + question.answers[0][1]
    for number, passage in enumerate(context, start=1):
        if passage.document == question.passage.document and passage.start <= start and end <= passage.end:
            return number
    return None


def load_sources(data: Path, made: Path | None = None, *, held_out: bool = False) -> Sources:
    """The training part of the sets with the questions that a model wrote on it, or the held-out part."""
    asked = (*_natural(data), *_clap(data))
    asked = (*asked, *_made(made, asked)) if made else asked
    questions = tuple(q for q in asked if is_held_out(q.passage.title) == held_out)
    passages = {q.passage.id: q.passage for q in questions}
    verdicts = [row for row in _rows(data / "vitaminc" / "train.jsonl") if is_held_out(row["page"]) == held_out]
    edits = [row for row in _rows(data / "vitaminc" / "edits.jsonl") if is_held_out(row["page"]) == held_out]
    return Sources(questions, tuple(passages.values()), tuple(map(_tidied, verdicts)), tuple(map(_tidied, edits)))


def is_held_out(title: str) -> bool:
    """Whether a document belongs to the held-out tenth.

    >>> sum(is_held_out(f"page {i}") for i in range(1000))
    119
    """
    return zlib.crc32(title.encode()) % 10 == 0


def tidy(text: str) -> str:
    """Tokenised text as people write it.

    >>> tidy("It is n't so , he said ( twice ) .")
    "It isn't so, he said (twice)."
    """
    text = text.replace("``", '"').replace("''", '"').replace(" -- ", " - ").replace("( ", "(")
    return _SPACED.sub(r"\1", " ".join(text.split()))


def _natural(data: Path) -> Iterator[Question]:
    """NQ gold passages: the answering sentence contains the short answer."""
    for row in _rows(data / "nq_gold_passage" / "qa.jsonl"):
        text = " ".join(row["passage"].split())
        passage = _passage(row["doc_id"], row["title"], text)
        short = next((answer for answer in row["answers"] if answer.lower() in text.lower()), None)
        spans = [s for s in sentences(text) if short and short.lower() in text[s[0] : s[1]].lower()]
        if spans and short and len(text[spans[0][0] : spans[0][1]].split()) <= LONGEST:
            yield Question(row["question"], passage, (spans[0],), short)


def _clap(data: Path) -> Iterator[Question]:
    """CLAP NQ: the sentences that annotators chose; none for an unanswerable question."""
    for row in _rows(data / "clapnq" / "qa.jsonl"):
        text, spans = "", {}
        for raw in row["sentences"]:
            sentence = tidy(raw)
            spans[raw] = (len(text) + bool(text), len(text) + bool(text) + len(sentence))
            text += " " * bool(text) + sentence
        chosen = tuple(spans[s] for s in (row["selected_sentences"] or [[]])[0] if s in spans)
        if bool(chosen) == bool(row["answerable"]):
            yield Question(row["question"], _passage(row["doc_id"], row["title"], text), chosen)


def _made(folder: Path, known: Sequence[Question]) -> Iterator[Question]:
    """The questions of `made_text` about sentences of known passages."""
    passages = {question.passage.id: question.passage for question in known}.values()
    places = {p.text[start:end]: (p, (start, end)) for p in passages for start, end in sentences(p.text)}
    for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if found := places.get(row["sentence"]):
            yield Question(row["question"], found[0], (found[1],))


def _passage(document: str, title: str, text: str) -> Passage:
    return Passage(id=document, document=document, title=title, ordinal=0, start=0, end=len(text), text=text)


def _rows(file: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _tidied(row: dict[str, str]) -> dict[str, str]:
    return {key: tidy(value) if key in ("claim", "evidence", "gold_claim") else value for key, value in row.items()}
