"""The three sample worlds with their gold labels, resolved to character spans of the documents' stored text.

A label names a document and quotes it. A quote must occur exactly once in the text that the library stores, so its
offsets hold for every passage cut from it; tests check every label. What the fields mean is in each world's README.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import msgspec

from engine.core.errors import RecordError
from engine.core.files import ASSETS
from engine.core.values import Document, Passage, Value, decoded
from engine.corpus.chunking import passages_at
from engine.corpus.samples import documents_in
from engine.corpus.sources import load

# The labels: questions, drafts with planted errors, the facts of their sentences.

Kind = Literal["short", "long", "multiple_choice", "open"]
ErrorKind = Literal["amount", "date", "owner", "order", "unsupported"]


class GoldSpan(NamedTuple):
    """Characters [start, end) of a document's stored text."""

    document: str
    start: int
    end: int


class Quote(Value, frozen=True):
    """Words that stand exactly once in the stored text of `document`."""

    document: str
    quote: str


class LabelledPassage(Quote, frozen=True):
    """A passage given with a question; `relevant` is True where it helps to answer."""

    relevant: bool


class WorldStep(Value, frozen=True):
    """One step of a question that needs several, with what it rests on."""

    question: str
    answer: str
    gold: tuple[Quote, ...]


class WorldQuestion(Value, frozen=True):
    """A question with its gold answer and the sentences that carry it.

    `options` and `correct` (index of the right option) are of multiple choice only; `passages_needed` counts the
    passages of the default chunking that the gold touches (bench chemistry); `passages` are given, labelled
    (bank investigation). `short_answers`: what an answer must name, each in all its spellings (bank investigation).
    """

    id: str
    question: str
    kind: Kind
    answer: str
    gold: tuple[Quote, ...]
    options: tuple[str, ...] = ()
    correct: int | None = None
    domain: str = ""
    experiment: str = ""
    steps: tuple[WorldStep, ...] = ()
    passages: tuple[LabelledPassage, ...] = ()
    passages_needed: int | None = None
    short_answers: tuple[tuple[str, ...], ...] = ()


class PlantedError(Value, frozen=True):
    """A false span of a draft: `wrong` occurs once in it, `right` replaces it (empty: to be deleted)."""

    kind: ErrorKind
    wrong: str
    right: str
    truth: str
    evidence: tuple[Quote, ...]


class Draft(Value, frozen=True):
    """An answer to question `question_id` with planted errors; [cite_N] is that question's N-th passage, from 1."""

    id: str
    question_id: str
    draft: str
    errors: tuple[PlantedError, ...]

    @property
    def corrected(self) -> str:
        """The draft with every planted error put right, and what nothing supports taken out."""
        text = self.draft
        for error in self.errors:
            text = text.replace(error.wrong, error.right)
        return " ".join(text.split())


class DraftFacts(Value, frozen=True):
    """A sentence that occurs once in draft `draft_id`, citations and all, and the atomic facts that it states."""

    draft_id: str
    sentence: str
    facts: tuple[str, ...]


WORLDS = ("bench-chemistry", "bank-investigation", "science-primer")
T = TypeVar("T", bound=Value)


class World(Value, frozen=True):
    """A sample world; documents by id as stored. `long_questions` and `more_drafts` are for measuring only."""

    name: str
    documents: dict[str, Document]
    questions: tuple[WorldQuestion, ...]
    drafts: tuple[Draft, ...] = ()
    facts: tuple[DraftFacts, ...] = ()
    more_drafts: tuple[Draft, ...] = ()
    long_questions: tuple[WorldQuestion, ...] = ()

    def question(self, key: str) -> WorldQuestion:
        """The question of that id; raise `RecordError` if there is none."""
        for question in self.questions:
            if question.id == key:
                return question
        raise RecordError(f"{self.name} has no question {key!r}. Ids run from {self.questions[0].id}.")

    def gold_spans(self, question: WorldQuestion) -> tuple[GoldSpan, ...]:
        """Where the gold sentences stand, in the order of `question.gold`."""
        return tuple(self.span(quote, question.id) for quote in question.gold)

    def gold_passages(self, question: WorldQuestion, passages: Iterable[Passage]) -> tuple[Passage, ...]:
        """Those of `passages` (of any chunking or collection) that share a character with a gold span, in order."""
        spans = self.gold_spans(question)
        return tuple(p for p in passages if any(overlaps(p, span) for span in spans))

    def given_passages(self, question: WorldQuestion) -> tuple[Passage, ...]:
        """The question's labelled passages as frozen spans of their documents, in the order that [cite_N] counts."""
        found = []
        for ordinal, given in enumerate(question.passages):
            name, start, end = self.span(given, question.id)
            passage = next(passages_at(self.documents[name], [(start, end)], ordinal))
            found.append(msgspec.structs.replace(passage, relevant=given.relevant))
        return tuple(found)

    def span(self, quote: Quote, record: str) -> GoldSpan:
        """Where `quote` stands; raise `RecordError` naming `record` unless it stands exactly once."""
        document = self.documents.get(quote.document)
        count = document.text.count(quote.quote) if document and quote.quote.strip() else 0
        if document is None or count != 1:
            where = "is unknown" if document is None else f"contains it {count} times"
            raise RecordError(
                f"{self.name}, {record}: {quote.document} {where}: {quote.quote!r}. Correct the label or the document."
            )
        start = document.text.index(quote.quote)
        return GoldSpan(quote.document, start, start + len(quote.quote))


def overlaps(passage: Passage, span: GoldSpan) -> bool:
    """Whether the passage shares a character with the span."""
    return passage.document == span.document and passage.start < span.end and span.start < passage.end


def load_world(name: str, folder: Path | None = None) -> World:
    """The world `name`, from `folder` if given; raise `RecordError` for an unknown name or naming a wrong line."""
    if folder is None and name not in WORLDS:
        raise RecordError(f"There is no sample world {name!r}. Choose one of: {', '.join(WORLDS)}.")
    place = folder or ASSETS / "corpora" / name.replace("-", "_")
    return World(
        name=name,
        documents={document.id: document for path in documents_in(place) for document in load(path)},
        questions=_records(place / "questions.jsonl", WorldQuestion),
        drafts=_records(place / "drafts.jsonl", Draft, optional=True),
        facts=_records(place / "facts.jsonl", DraftFacts, optional=True),
        more_drafts=_records(place / "more_drafts.jsonl", Draft, optional=True),
        long_questions=_records(place / "long_questions.jsonl", WorldQuestion, optional=True),
    )


def _records(path: Path, kind: type[T], *, optional: bool = False) -> tuple[T, ...]:
    """The values of a JSONL file; raise `RecordError` naming file and line of the first that does not fit."""
    if optional and not path.exists():
        return ()
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").strip().split("\n"), start=1):
        try:
            found.append(decoded(line, kind))
        except msgspec.MsgspecError as error:
            raise RecordError(f"{path.name}, line {number}, is not a valid {kind.__name__}: {error}.") from error
    return tuple(found)
