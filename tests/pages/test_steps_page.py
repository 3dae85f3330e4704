"""The Steps page without a browser: a reviewer's relevance levels go into the case's history, and back out."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from streamlit.testing.v1 import AppTest

import components.cache
from components import state
from components.step_tree import _passages
from engine.analyses.steps import KIND, run_settings, unchecked
from engine.cases.review import check_chain
from engine.core.errors import ModelError
from engine.core.values import Analysis, Answer
from engine.methods.raise_.relevance import Rating, Ratings, ratings_analysis
from tests.engine.cases.samples import full_case
from tests.engine.cases.test_step_ratings import solution  # noqa: F401 - a fixture


@pytest.fixture
def app(solution):  # noqa: F811
    """The page on a case with one run of two steps, which a model has rated."""
    components.cache.workbench.clear()
    case = full_case("first")
    found = Ratings(
        method="raise", model=solution.model, by="judge", ratings=(Rating(step=1, passage="a", level=None),)
    )
    run = Analysis(id=f"steps:raise:{solution.model}", kind="steps", stamp=case.stamp, result=solution.to_dict())
    store().save(msgspec.structs.replace(case, analyses=(run, ratings_analysis(case, found))))
    made = AppTest.from_file("../../pages/inspect/steps.py", default_timeout=60)
    made.query_params["case"] = "first"
    return made.run()


def store():
    return components.cache.workbench().cases


def level(app, passage="a"):
    return next(box for box in app.selectbox if box.label == "Relevance" and f"_{passage}_" in box.key)


def rated(app, value, by="Ada"):
    if by is not None:
        next(field for field in app.text_input if field.label == "Reviewer").set_value(by).run()
    level(app).select(value).run()
    assert not app.exception


def shown(app) -> str:
    return " ".join(str(element.proto) for element in app.get("html"))


def test_one_run_has_nothing_to_stand_beside_it(app):
    assert not app.exception
    assert not {"Shown", "Compare with"} & {box.label for box in app.selectbox}


def test_a_solved_case_shows_its_answer_before_its_steps_and_folds_the_form(app):
    drawn = shown(app)
    assert 0 < drawn.find("Final answer") < drawn.find("Step 1.")
    fold = next(fold for fold in app.expander if fold.label == "Work it out again")
    assert not fold.proto.expanded and "start_steps" in [button.key for button in fold.button]
    store().save(full_case("unsolved"))
    app.query_params["case"] = "unsolved"
    app.run()
    assert app.button(key="start_steps") and "Work it out again" not in [fold.label for fold in app.expander]


def test_a_step_that_dropped_nothing_does_not_list_it(solution):  # noqa: F811
    step = solution.steps[0]
    drawn = lambda limit: _passages(msgspec.structs.replace(step, threshold=limit), (), {})  # noqa: E731
    assert "Kept" in drawn(-1.0) and "Dropped" not in drawn(-1.0) and "Dropped" in drawn(1.1)


def test_a_final_answer_that_is_not_the_cases_says_that_it_was_not_checked(app):
    note = "This answer was not checked. The verdict on the case is about the case's own answer."
    assert "This answer was not checked." in shown(app)
    case = store().load("first")
    (found,) = KIND.of(case)
    own = msgspec.structs.replace(case, answer=Answer(text=found.final.reply))
    assert unchecked(case, found) == (note,) and unchecked(own, found) == ()


def test_another_t_asks_the_runs_own_model_with_its_own_settings(app):
    page = Path("pages/inspect/steps.py").resolve()
    # As under the frame, which notes the runs that have ended.
    app = AppTest.from_string(
        f"import runpy\nfrom components import state\nstate.see_runs()\nrunpy.run_path({str(page)!r})"
    )
    app.query_params["case"] = "first"
    app.run(timeout=60)
    case = store().load("first")
    (analysis, _) = case.analyses
    stamped = {**analysis.stamp.settings, "reasoning": {"k": 3, "threshold": 0.5, "corpus": "c", "demonstrations": 1}}
    asked = run_settings(msgspec.structs.replace(analysis.stamp, settings=stamped)).reasoning
    assert (asked.k, asked.threshold, asked.demonstrations) == (3, 0.5, 1)
    slider = next(one for one in app.slider if one.label.startswith("T:"))
    slider.set_value(0.95).run()
    app.button(key="again").click().run()
    with pytest.raises(ModelError, match="scripted"):  # the run's model, which is none that can be loaded here
        app.session_state[state._RUNS]["steps:first"].future.result(60)


@pytest.mark.parametrize(("count", "told"), [(1, ": step 1 would"), (2, ": steps 1, 2 would")])
def test_the_steps_that_another_t_changes_are_named(app, solution, count, told):  # noqa: F811
    case = store().load("first")
    run = msgspec.structs.replace(solution, steps=solution.steps[:count])
    analysis = msgspec.structs.replace(case.analyses[0], result=run.to_dict())
    store().save(msgspec.structs.replace(case, analyses=(analysis,)))
    next(one for one in app.run().slider if one.label.startswith("T:")).set_value(0.95).run()
    assert told in app.button(key="again").label


def test_a_level_needs_a_name(app):
    assert level(app).disabled
    assert "Enter your name" in " ".join(caption.value for caption in app.caption)


def test_a_level_is_an_entry_of_the_history_beside_the_models(app):
    rated(app, "full")
    (mark,) = store().history("first")
    assert (mark.author, mark.value, mark.machine) == ("Ada", "full", "judge: no level")
    assert "step 1/passage a" in mark.target
    assert level(app).value == "full"
    assert level(app, "b").value == "not rated"
    assert "reviewers" in shown(app)
    assert "of 1 rated" in shown(app)


def test_a_level_can_be_changed_and_taken_back(app):
    rated(app, "full")
    rated(app, "none", by="Bo")
    assert level(app).value == "none"
    rated(app, "not rated", by=None)
    assert level(app).value == "not rated"
    assert "reviewers" not in shown(app)
    history = store().history("first")
    assert [(m.kind, m.author) for m in history] == [
        ("override", "Ada"),
        ("override", "Bo"),
        ("withdrawal", "Bo"),
        ("withdrawal", "Bo"),
    ]
    assert not check_chain(history, "first").problem
    rated(app, "partial", by=None)
    assert level(app).value == "partial"


def test_a_signed_off_case_takes_no_level_and_says_so(app):
    from engine.cases.review import sign_off

    store().add_marks("first", sign_off("Ada", "stands", "Read it."))
    next(field for field in app.text_input if field.label == "Reviewer").set_value("Ada").run()
    assert level(app).disabled
    assert any("Make a new version of it to rate passages." in caption.value for caption in app.caption)
    rate = next(button for button in app.button if button.label.startswith("Rate "))
    assert rate.disabled and rate.help == "This case is signed off. Make a new version of it to run this."
