"""How far each retrieved passage helps its step, on four levels (RAISE, appendix C.3): what a model says of it.

Ratings by different raters are kept beside each other and never merged; people's are marks in the case's history
(engine/cases/review.py). An unreadable reply of the model is a rating without a level, counted as unparsed.
"""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from engine.core.progress import Watch
from engine.core.values import Analysis, Case, Stamp, Value, inputs_hash, sha256
from engine.methods.judge import LEVELS, Level, judge_relevance
from engine.methods.raise_.values import ReasonStep, Solution
from engine.models.protocols import Writer

KIND = "relevance to steps"


class Rating(Value, frozen=True):
    """The level of one passage for one step; None where the rater's reply could not be read.

    `probabilities` are the shares of the levels where their likelihood decided. `question` is the hash of the step's
    sub-question, empty in older ratings.
    """

    step: int
    passage: str
    level: Level | None
    raw: str = ""
    probabilities: dict[str, float] = {}
    question: str = ""

    @property
    def mean(self) -> float | None:
        """The mean level by the shares, from 0 (none) to 3 (full); None without shares. Ties are rarer than by `level`.

        >>> Rating(step=1, passage="p", level="full", probabilities={"none": 0.25, "full": 0.75}).mean
        2.25
        """
        return sum(LEVELS.index(name) * p for name, p in self.probabilities.items()) if self.probabilities else None


class Ratings(Value, frozen=True):
    """All ratings of one run by one rater."""

    method: str
    model: str
    by: str
    ratings: tuple[Rating, ...] = ()

    def rating(self, step: int, passage: str) -> Rating | None:
        """The rating of a passage at a step, None without one."""
        return next((r for r in self.ratings if (r.step, r.passage) == (step, passage)), None)

    def level(self, step: int, passage: str) -> Level | None:
        """The level given to a passage at a step, None without one."""
        found = self.rating(step, passage)
        return found.level if found else None

    def shares(self) -> dict[str, float]:
        """Share of each level and of `unparsed` among the rated (step, passage) pairs; empty without any."""
        counts: Counter[str] = Counter(r.level or "unparsed" for r in self.ratings)
        return {name: counts[name] / len(self.ratings) for name in (*LEVELS, "unparsed")} if self.ratings else {}


def rate(solution: Solution, judge: Writer, watch: Watch = Watch(), *, dropped: bool = True) -> Ratings:
    """Ask a model about every passage retrieved for every step (those dropped under T too, unless told not to)."""
    ratings = []
    asked = [(s, h.passage) for s in solution.steps for h in (*s.kept, *(s.dropped if dropped else ()))]
    for done, (step, passage) in enumerate(asked):
        watch.step("relevance", done, len(asked))
        found = judge_relevance(judge, solution.problem.text, step.question, passage.text, watch)
        ratings.append(
            Rating(
                step=step.number,
                passage=passage.id,
                level=found.option,  # type: ignore[arg-type]
                raw=found.reply,
                probabilities=found.probabilities,
                question=question_hash(step),
            )
        )
    return Ratings(method=solution.method, model=solution.model, by=judge.name, ratings=tuple(ratings))


def question_hash(step: ReasonStep) -> str:
    """The sub-question of a step, as ratings and marks name it."""
    return sha256(step.question)[:16]


def ratings_of(case: Case, solution: Solution) -> tuple[Ratings, ...]:
    """Each rater's levels for a run so far, without those for a sub-question that an earlier run had at that step."""
    asked = {step.number: ("", question_hash(step)) for step in solution.steps}
    found = (Ratings.from_dict(analysis.result) for analysis in case.analyses if analysis.kind == KIND)
    own = (r for r in found if (r.method, r.model) == (solution.method, solution.model))
    fitting = (replace(r, ratings=tuple(x for x in r.ratings if x.question in asked.get(x.step, ()))) for r in own)
    return tuple(r for r in fitting if r.ratings)


def ratings_analysis(case: Case, ratings: Ratings) -> Analysis:
    """The ratings as an analysis of the case; one a method, model and rater."""
    stamp = Stamp(model=ratings.by, inputs=inputs_hash(case.question, ()))
    name = f"{KIND}:{ratings.method}:{ratings.model}:{ratings.by}"
    return Analysis(id=name, kind=KIND, stamp=stamp, result=ratings)
