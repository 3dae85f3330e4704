"""Gold found before and after T; ratings kept by rater; the sample problems' gold."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.core.values import Answer, Case, Hit, Passage, Stamp
from engine.methods.raise_.relevance import Rating, Ratings, rate, ratings_analysis, ratings_of
from engine.methods.raise_.solve import Means, solve
from engine.methods.raise_.threshold import primer_gold, primer_question, read, recall, retrieved
from engine.methods.raise_.values import Problem, method_of
from engine.models.scripted import ScriptedWriter


def hit(name: str, score: float) -> Hit:
    passage = Passage(id=name, document=name, title="", ordinal=0, start=0, end=len(name), text=f"text of {name}")
    return Hit(passage=passage, score=score, parts={"dense": score})


def reply(prompt: str) -> str:
    return (
        "First? | one\nSecond? | two"
        if prompt.startswith("You plan")
        else "words of first"
        if "First?" in prompt
        else "w"
    )


def find(text: str) -> tuple[Hit, ...]:
    return (hit("a", 0.9), hit("b", 0.3)) if "first" in text else (hit("c", 0.6), hit("a", 0.2))


@pytest.fixture
def solution():
    means = Means(model=ScriptedWriter(reply), find=find, threshold=0.5)
    return solve(Problem(question="Why?"), method_of("raise"), means)


def test_recall_before_and_after_t(solution):
    gold = {"a", "b", "z"}
    assert (retrieved(solution), read(solution)) == ({"a", "b", "c"}, {"a", "c"})
    assert recall(retrieved(solution), gold) == pytest.approx(2 / 3)
    assert recall(read(solution), gold) == pytest.approx(1 / 3)
    assert recall((), ()) == 1.0


def test_a_passage_dropped_at_one_step_and_kept_at_another_was_read(solution):
    assert "a" in {h.passage.id for h in solution.steps[1].dropped}
    assert "a" in read(solution)


def test_the_primers_gold_is_on_the_passages_that_hold_its_sentences():
    from engine.methods.raise_.threshold import primer

    question = primer().questions[0]
    document = primer().documents[question.gold[0].document]
    start = document.text.index(question.gold[0].quote)
    inside = Passage(id="in", document=document.id, title="", ordinal=0, start=start, end=start + 5, text="")
    before = Passage(id="out", document=document.id, title="", ordinal=0, start=0, end=start, text="")
    assert primer_gold(question.question, [inside, before]) == {"in"}
    assert primer_question("never asked") is None
    assert primer_gold("never asked", [inside]) == frozenset()


def test_a_model_rates_every_passage_and_an_unreadable_reply_has_no_level(solution):
    said = {
        "text of a": "It helps.\nRelevance: full",
        "text of b": "Relevance: partial or full",
        "text of c": "Relevance: none",
    }
    judge = ScriptedWriter(said, name="judge")
    ratings = rate(solution, judge)
    assert [(r.step, r.passage, r.level) for r in ratings.ratings] == [
        (1, "a", "full"),
        (1, "b", None),
        (2, "c", "none"),
        (2, "a", "full"),
    ]
    assert ratings.ratings[1].raw == "Relevance: partial or full"
    shares = ratings.shares()
    assert shares == {"none": 0.25, "superficial": 0.0, "partial": 0.0, "full": 0.5, "unparsed": 0.25}
    assert all("Why?" in prompt for prompt in judge.prompts)
    assert len(rate(solution, ScriptedWriter(said), dropped=False).ratings) == 2


def test_raters_are_kept_beside_each_other(solution):
    case = Case(id="c", question="Why?", passages=(), answer=Answer(text=""), stamp=Stamp(model="m"))
    assert ratings_of(case, solution) == ()
    one, other = (
        Ratings(method="raise", model=solution.model, by=by, ratings=(Rating(step=1, passage="a", level=level),))
        for by, level in (("judge", "none"), ("analyst", "full"))
    )
    foreign = Ratings(method="hyde", model=solution.model, by="judge")
    analyses = tuple(ratings_analysis(case, ratings) for ratings in (one, other, foreign))
    case = Case.from_dict({**case.to_dict(), "analyses": [a.to_dict() for a in analyses]})
    assert ratings_of(case, solution) == (one, other)


def test_ratings_of_another_sub_question_at_that_step_are_left_out(solution):
    case = Case(id="c", question="Why?", passages=(), answer=Answer(text=""), stamp=Stamp(model="m"))
    rated = rate(solution, ScriptedWriter(lambda prompt: "Relevance: full"))
    case = replace(case, analyses=(ratings_analysis(case, rated),))
    assert ratings_of(case, solution) == (rated,)
    steps = (replace(solution.steps[0], question="What else?"), *solution.steps[1:])
    kept = tuple(r for r in rated.ratings if r.step != solution.steps[0].number)
    found = ratings_of(case, replace(solution, steps=steps))
    assert [r.ratings for r in found] == ([kept] if kept else [])
