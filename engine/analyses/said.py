"""Opinions of a model: which of two answers is better grounded, how well passages help their steps."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from engine.analyses.kind import Kind, RunContext, analysis_by
from engine.analyses.refinement import KIND as REFINED
from engine.analyses.steps import KIND as WORKED_OUT
from engine.cases.blocks import Block, table
from engine.cases.review import Review
from engine.core.errors import CaseError
from engine.core.values import Analysis, Case, Value
from engine.methods.judge import PairJudgement, judge_pair
from engine.methods.raise_.relevance import KIND as RELEVANCE, Ratings, rate, ratings_analysis

JUDGEMENT = "judgement"


class JudgedPair(Value, frozen=True):
    """Two conditions of a refinement by their names, and what a judge said of their answers."""

    x: str
    y: str
    judgement: PairJudgement


class JudgeOptions(Value, frozen=True):
    """Two conditions of the case's last refinement, or two `answers` under these names, and who judges."""

    judge: str
    x: str
    y: str
    answers: tuple[str, ...] = ()


def _judge(case: Case, options: JudgeOptions, context: RunContext) -> Iterator[Analysis]:
    x, y = options.answers or _written(case, options)
    judge = context.tools.writer(options.judge)
    texts = [passage.text for passage in case.passages]
    found = JudgedPair(x=options.x, y=options.y, judgement=judge_pair(judge, case.question, texts, x, y, context.watch))
    pair = f"{judge.name}:{options.x}:{options.y}"
    yield replace(analysis_by(case, JUDGEMENT, judge.name, found, {"judge": judge.name}), id=f"{JUDGEMENT}:{pair}")


def _written(case: Case, options: JudgeOptions) -> tuple[str, str]:
    """The answers of the two conditions; raise `CaseError` if one of them has none."""
    report = REFINED.last(case)
    variants = report.refinement.variants if report else {}
    answers = [variants[name].answer if name in variants else None for name in (options.x, options.y)]
    x, y = (answer.text if answer else "" for answer in answers)
    if not (x and y):
        raise CaseError("The case does not have these two answers. Run the conditions on the Refinement page first.")
    return x, y


def _judged(case: Case, found: JudgedPair, review: Review) -> list[Block]:
    votes = zip(found.judgement.orders, found.judgement.raw, strict=True)
    rows = ((str(number), order or "no vote", raw) for number, (order, raw) in enumerate(votes, start=1))
    return [table(f"{found.x} against {found.y}: {found.judgement.winner}", ("Order", "Said", "Reply"), rows)]


class RelevanceOptions(Value, frozen=True):
    """The run of steps whose passages are rated, by its method and model, and who rates."""

    judge: str
    method: str
    model: str


def _rate(case: Case, options: RelevanceOptions, context: RunContext) -> Iterator[Analysis]:
    held = (run for run in WORKED_OUT.of(case) if (run.method, run.model) == (options.method, options.model))
    solution = next(held, None)
    if solution is None:
        raise CaseError(f"The case has no run of {options.method} by {options.model}. Run it first.")
    ratings = rate(solution, context.tools.writer(options.judge), context.watch)
    yield ratings_analysis(case, ratings)


def _rated(case: Case, found: Ratings, review: Review) -> list[Block]:
    rows = ((str(r.step), r.passage, r.level or "not read") for r in found.ratings)
    return [table(f"Relevance of what {found.method} found, by {found.by}", ("Step", "Passage", "Level"), rows)]


PAIR = Kind(
    name=JUDGEMENT,
    title="Two answers before a judge",
    result=JudgedPair,
    blocks=_judged,
    options=JudgeOptions,
    run=_judge,
    not_again="these votes came from a model; ask it again on the Refinement page",
)
PASSAGES = Kind(
    name=RELEVANCE,
    title="Relevance of passages to their steps",
    result=Ratings,
    blocks=_rated,
    options=RelevanceOptions,
    run=_rate,
    not_again="these levels came from a model or a person and are not computed",
    scores_answer=False,
)
