"""Own JSONL: one object per line; only `question` is required. docs/evaluate.md shows every field.

A field that is not known is refused, so that a slip of the pen does not switch something off in silence; what is only
to be kept goes under `about`. A line that does not fit is named by its number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import msgspec

from engine.answer.context import check_question
from engine.cases.importers import SpanLabel
from engine.core.errors import RecordError
from engine.core.files import ASSETS
from engine.core.values import AuditRecord, GivenPassage, Json, Value
from engine.corpus.worlds import WORLDS, World, WorldQuestion, load_world
from engine.studies.datasets.files import DataSource, Layout, Record, index_of, relevant_ids
from engine.studies.example import Example, GoldClause, GoldError, GoldStep


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
    steps: tuple[GoldStep, ...] = ()
    answer: str = ""
    model: str = ""
    spans: tuple[OwnSpan, ...] | None = None
    errors: tuple[GoldError, ...] | None = None
    clauses: tuple[GoldClause, ...] = ()
    domain: str = ""
    corpus: str = ""
    about: Json = {}


SAME = ("id", "references", "options", "passages_needed", "steps", "answer", "clauses", "domain", "corpus", "about")
FIELDS = frozenset(field.name for field in msgspec.structs.fields(OwnRecord))


@Layout.of(lambda record: "question" in record and record.keys() - {"_id"} <= FIELDS)
def lines(record: Record) -> Example:
    """The example of one line; raise `RecordError` saying what of it does not fit."""
    own = OwnRecord.from_dict({name: value for name, value in record.items() if name != "_id"})
    question = check_question(own.question)
    passages = AuditRecord(question=question, passages=own.passages).as_passages()
    for error in own.errors or ():
        if not error.wrong or own.answer.count(error.wrong) != 1:
            raise RecordError(f"The error {error.wrong!r} must occur exactly once in the answer.")
    same = {name: getattr(own, name) for name in SAME}
    return Example(
        question=question,
        source="own",
        passages=passages,
        short_answers=tuple((thing,) if isinstance(thing, str) else thing for thing in own.short_answers),
        correct=None if own.correct is None else index_of(own.correct, own.options),
        gold=own.gold or relevant_ids(passages),
        writer=own.model,
        errors=own.errors,
        spans=None if own.spans is None else tuple(_span(span, own.answer) for span in own.spans),
        **same,
    )


def _span(span: OwnSpan, answer: str) -> SpanLabel:
    if not 0 <= span.start <= span.end <= len(answer):
        raise RecordError(f"The span {span.start} to {span.end} is not within the answer of {len(answer)} characters.")
    text = answer[span.start : span.end]
    return SpanLabel(start=span.start, end=span.end, text=text, label=span.label, note=span.note)


# The sample worlds: their questions with gold, drafts with planted errors, and answers with gold clauses and facts.

DRAFTS, CLAUSES, LONG = "bank-investigation-drafts", "bank-investigation-clauses", "bench-chemistry-long"


def questions(name: str) -> Iterator[Example]:
    """The questions of a world, in file order."""
    world = load_world(name)
    return (_question(world, question) for question in world.questions)


def long_questions() -> Iterator[Example]:
    """The questions of bench chemistry whose answers take several sentences, those written for measuring last."""
    world = load_world("bench-chemistry")
    every = (*world.questions, *world.long_questions)
    return (_question(world, question) for question in every if question.kind == "long")


def drafts() -> Iterator[Example]:
    """The drafts of the bank investigation: a question, its passages, and an answer with planted errors."""
    world = load_world("bank-investigation")
    for draft in (*world.drafts, *world.more_drafts):
        question = world.question(draft.question_id)
        passages = world.given_passages(question)
        yield Example(
            id=draft.id,
            question=question.question,
            source=DRAFTS,
            passages=passages,
            references=(draft.corrected,),
            gold=relevant_ids(passages),
            gold_spans=world.gold_spans(question),
            answer=draft.draft,
            writer="planted errors",
            errors=tuple(GoldError(wrong=e.wrong, right=e.right, kind=e.kind) for e in draft.errors),
            corpus=world.name,
        )


def clauses() -> Iterator[Example]:
    """Short answers about the bank investigation, taken apart by hand (own JSONL, as a user writes it)."""
    return lines.read(DataSource(ASSETS / "corpora" / "bank_investigation" / "clauses.jsonl"))


NAMES: Mapping[str, Callable[[], Iterator[Example]]] = {
    **{name: partial(questions, name) for name in WORLDS},
    LONG: long_questions,
    DRAFTS: drafts,
    CLAUSES: clauses,
}


def _question(world: World, question: WorldQuestion) -> Example:
    passages = world.given_passages(question)
    return Example(
        id=question.id,
        question=question.question,
        source=world.name,
        passages=passages,
        references=(question.answer,),
        short_answers=question.short_answers,
        options=question.options,
        correct=question.correct,
        gold=relevant_ids(passages),
        gold_spans=world.gold_spans(question),
        passages_needed=question.passages_needed,
        steps=tuple(
            GoldStep(
                question=step.question,
                answer=step.answer,
                gold_spans=tuple(world.span(quote, question.id) for quote in step.gold),
            )
            for step in question.steps
        ),
        domain=question.domain or question.experiment,
        corpus=world.name,
        about={"kind": question.kind},
    )
