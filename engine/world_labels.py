"""What the gold labels of a sample world say: questions, drafts with planted errors, the facts of their sentences.

What the fields mean stands in assets/corpora/*/README.md; `engine.worlds` reads the labels and checks them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from engine.types import Value

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
    (bank investigation).
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


class PlantedError(Value, frozen=True):
    """A false span of a draft: `wrong` stands once in it, `right` replaces it (empty: to be deleted)."""

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
    """A sentence that stands once in draft `draft_id`, citations and all, and the atomic facts that it states."""

    draft_id: str
    sentence: str
    facts: tuple[str, ...]
