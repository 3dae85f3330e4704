"""Own JSONL: one object a line, of which only `question` must be there. docs/evaluate.md shows every field.

A field that is not known is refused, so that a slip of the pen does not switch something off in silence; what is only
to be kept goes under `about`. A line that does not fit is named by its number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from engine.answer.context import check_question
from engine.cases.importers.imported import SpanLabel
from engine.errors import RecordError
from engine.evaluate.datasets.files import Layout, Record, Source, index_of, relevant_ids
from engine.evaluate.example import Example, GoldClause, GoldError, GoldStep
from engine.records import AuditRecord, GivenPassage
from engine.types import Value


class OwnStep(Value, frozen=True):
    """A step of the question with its answer."""

    question: str
    answer: str = ""


class OwnSpan(Value, frozen=True):
    """Characters [start, end) of `answer`, and what is said of them."""

    start: int
    end: int
    label: str = ""
    note: str = ""


class OwnRecord(Value, frozen=True):
    """A line. `correct` is an index from 0, a letter or the option's text; `gold` ids of documents of the corpus."""

    question: str
    id: str = ""
    passages: tuple[str | GivenPassage, ...] = ()
    references: tuple[str, ...] = ()
    short_answers: tuple[str | tuple[str, ...], ...] = ()
    options: tuple[str, ...] = ()
    correct: int | str | None = None
    gold: tuple[str, ...] = ()
    passages_needed: int | None = None
    steps: tuple[OwnStep, ...] = ()
    answer: str = ""
    model: str = ""
    spans: tuple[OwnSpan, ...] | None = None
    errors: tuple[GoldError, ...] | None = None
    clauses: tuple[GoldClause, ...] = ()
    domain: str = ""
    corpus: str = ""
    about: dict[str, Any] = {}


FIELDS = frozenset(field.name for field in msgspec.structs.fields(OwnRecord))


def example(record: Record) -> Example:
    """The example of one line; raise `RecordError` saying what of it does not fit."""
    own = OwnRecord.from_dict({name: value for name, value in record.items() if name != "_id"})
    question = check_question(own.question)
    passages = AuditRecord(question=question, passages=own.passages).as_passages()
    return Example(
        id=own.id,
        question=question,
        source="own",
        passages=passages,
        references=own.references,
        short_answers=tuple((thing,) if isinstance(thing, str) else thing for thing in own.short_answers),
        options=own.options,
        correct=None if own.correct is None else index_of(own.correct, own.options),
        gold=own.gold or relevant_ids(passages),
        passages_needed=own.passages_needed,
        steps=tuple(GoldStep(question=step.question, answer=step.answer) for step in own.steps),
        answer=own.answer,
        writer=own.model,
        spans=None if own.spans is None else tuple(_span(span, own.answer) for span in own.spans),
        errors=None if own.errors is None else tuple(_error(error, own.answer) for error in own.errors),
        clauses=own.clauses,
        domain=own.domain,
        corpus=own.corpus,
        about=own.about,
    )


def _span(span: OwnSpan, answer: str) -> SpanLabel:
    if not 0 <= span.start <= span.end <= len(answer):
        raise RecordError(
            f"The span {span.start} to {span.end} does not lie in the answer of {len(answer)} characters."
        )
    text = answer[span.start : span.end]
    return SpanLabel(start=span.start, end=span.end, text=text, label=span.label, note=span.note)


def _error(error: GoldError, answer: str) -> GoldError:
    if not error.wrong or answer.count(error.wrong) != 1:
        raise RecordError(f"The error {error.wrong!r} must stand exactly once in the answer.")
    return error


def read(source: Source) -> Iterator[Example]:
    """The examples of its file."""
    return source.each(example)


def _recognises(record: Record) -> bool:
    return "question" in record and {name for name in record if name != "_id"} <= FIELDS


LAYOUT = Layout("own JSONL", _recognises, read)
