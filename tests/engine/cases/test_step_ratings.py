"""A reviewer's levels of a run's passages are marks in the history, next to the models', and can be withdrawn."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.cases.review import (
    MarkDraft,
    append,
    check_chain,
    rating,
    rating_targets,
    review_of,
    reviewers_ratings,
    withdrawals,
)
from engine.core.values import Hit, Passage
from engine.methods.raise_.relevance import Rating, Ratings
from engine.methods.raise_.solve import Means, solve
from engine.methods.raise_.values import Problem, method_of
from engine.models.scripted import ScriptedWriter
from tests.engine.cases.samples import full_case

JUDGE = Ratings(method="raise", model="scripted", by="judge", ratings=(Rating(step=1, passage="a", level="none"),))


def hit(name: str, score: float) -> Hit:
    passage = Passage(id=name, document=name, title="", ordinal=0, start=0, end=1, text=f"text of {name}")
    return Hit(passage=passage, score=score)


@pytest.fixture
def solution():
    """Two steps; each search finds `a` above T and `b` below it."""
    writer = ScriptedWriter(lambda prompt: "One? | one\nTwo? | two" if prompt.startswith("You plan") else "words")
    means = Means(model=writer, find=lambda text: (hit("a", 0.9), hit("b", 0.3)), threshold=0.5)
    return solve(Problem(question="Why?"), method_of("raise"), means)


class History(list):
    """The marks of one case, appended as the library does it."""

    def add(self, *drafts: MarkDraft):
        for draft in drafts:
            self.append(append(full_case(), self, draft, "2026-11-20T10:00:00+00:00"))


def test_the_last_level_of_a_passage_stands_beside_the_models(solution):
    history = History()
    for level in ("none", "full"):
        history.add(rating(solution, Rating(step=1, passage="a", level=level), [JUDGE], "Ada"))
    history.add(rating(solution, Rating(step=2, passage="b", level="partial"), [JUDGE], "Bo"))
    own = reviewers_ratings(solution, review_of(history))
    assert [(r.step, r.passage, r.level) for r in own.ratings] == [(1, "a", "full"), (2, "b", "partial")]
    assert [mark.machine for mark in history] == ["judge: none", "judge: none", "judge: no level"]
    assert not check_chain(history, full_case().id).problem


def test_a_rating_taken_back_uncovers_no_earlier_one_and_stays_in_the_history(solution):
    history = History()
    for level, author in (("none", "Ada"), ("full", "Bo")):
        history.add(rating(solution, Rating(step=1, passage="a", level=level), [], author))
    history.add(rating(solution, Rating(step=2, passage="a", level="full"), [], "Ada"))
    target, _ = rating_targets(solution, 1, "a")
    history.add(*withdrawals(history, "override", target, "Ada"))
    assert [m.target for m in history[3:]] == ["entry:1", "entry:2"]
    assert [(r.step, r.level) for r in reviewers_ratings(solution, review_of(history)).ratings] == [(2, "full")]
    assert withdrawals(history, "override", target, "Ada") == ()
    history.add(rating(solution, Rating(step=1, passage="a", level="partial"), [], "Ada"))
    assert reviewers_ratings(solution, review_of(history)).level(1, "a") == "partial"
    assert not check_chain(history, full_case().id).problem


def test_a_mark_of_another_run_or_with_no_level_counts_for_nothing(solution):
    history = History()
    other = solution.from_dict({**solution.to_dict(), "model": "another"})
    history.add(rating(other, Rating(step=1, passage="a", level="full"), [], "Ada"))
    by_hand = MarkDraft(
        kind="override", author="Ada", value="so-so", target=rating_targets(solution, 1, "a")[0], reason="?"
    )
    history.add(by_hand)
    assert reviewers_ratings(solution, review_of(history)).ratings == ()


def test_a_mark_of_another_sub_question_at_that_step_counts_for_nothing_and_an_older_mark_counts(solution):
    history = History()
    first = replace(solution.steps[0], question="What was it before?")
    earlier = replace(solution, steps=(first, *solution.steps[1:]))
    history.add(rating(earlier, Rating(step=1, passage="a", level="full"), [], "Ada"))
    assert reviewers_ratings(earlier, review_of(history)).level(1, "a") == "full"
    assert reviewers_ratings(solution, review_of(history)).ratings == ()
    older = rating_targets(solution, 1, "a")[1]
    assert older == "analysis:steps:raise:scripted/step 1/passage a"
    history.add(MarkDraft(kind="override", author="Ada", value="none", target=older, reason="rated step by step"))
    assert reviewers_ratings(solution, review_of(history)).level(1, "a") == "none"
