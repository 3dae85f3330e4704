"""The sample worlds: their questions with gold, drafts with planted errors, and answers with gold clauses and facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from engine.evaluate.datasets import own
from engine.evaluate.datasets.files import Source, relevant_ids
from engine.evaluate.example import Example, GoldError, GoldStep
from engine.home import ASSETS
from engine.world_labels import Draft, WorldQuestion, WorldStep
from engine.worlds import WORLDS, World, load_world

DRAFTS, CLAUSES = "bank-investigation-drafts", "bank-investigation-clauses"


def questions(name: str) -> Iterator[Example]:
    """The questions of a world, in file order."""
    world = load_world(name)
    for question in world.questions:
        yield _question(world, question)


def drafts(name: str) -> Iterator[Example]:
    """The drafts of a world: a question, its passages, and an answer with planted errors."""
    world = load_world(name)
    for draft in world.drafts:
        yield _draft(world, draft)


def clauses() -> Iterator[Example]:
    """Short answers about the bank investigation, taken apart by hand (own JSONL, as a user writes it)."""
    return own.read(Source(ASSETS / "corpora" / "bank_investigation" / "clauses.jsonl"))


NAMES: Mapping[str, partial[Iterator[Example]]] = {
    **{name: partial(questions, name) for name in WORLDS},
    DRAFTS: partial(drafts, "bank-investigation"),
    CLAUSES: partial(clauses),
}


def _question(world: World, question: WorldQuestion) -> Example:
    passages = world.given_passages(question)
    return Example(
        id=question.id,
        question=question.question,
        source=world.name,
        passages=passages,
        references=(question.answer,),
        options=question.options,
        correct=question.correct,
        gold=relevant_ids(passages),
        gold_spans=world.gold_spans(question),
        passages_needed=question.passages_needed,
        steps=tuple(_step(world, question.id, step) for step in question.steps),
        domain=question.domain or question.experiment,
        corpus=world.name,
        about={"kind": question.kind},
    )


def _step(world: World, record: str, step: WorldStep) -> GoldStep:
    spans = tuple(world.span(quote, record) for quote in step.gold)
    return GoldStep(question=step.question, answer=step.answer, gold_spans=spans)


def _draft(world: World, draft: Draft) -> Example:
    question = world.question(draft.question_id)
    passages = world.given_passages(question)
    return Example(
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
