"""The cards of a run's steps: in the order in which they ran, the running one marked, what is ahead last."""

from __future__ import annotations

import re

from streamlit.testing.v1 import AppTest


def draw(current):
    from components.steps import draw_steps
    from engine.core.values import Step

    done = [Step(name="retrieve", seconds=0.1, counts={}), Step(name="sentences", seconds=0.02, counts={"pieces": 1})]
    draw_steps(("retrieve", "re-rank", "answer"), done, current=current)


def cards(current):
    app = AppTest.from_function(draw, kwargs={"current": current}).run()
    assert not app.exception
    drawn = str(app.get("html")[0].proto.body)
    return re.findall(r"<b>([^<]*)</b>([^<]*)<", drawn)


def test_a_step_that_nobody_expected_stands_where_it_ran():
    assert [name for name, _ in cards("re-rank")] == ["retrieve", "sentences", "re-rank", "answer"]


def test_one_of_the_steps_ahead_is_running_also_under_another_name():
    assert cards("answer")[2:] == [("re-rank", "waiting"), ("answer", "running")]
    assert cards("loading the model")[2:] == [("re-rank", "running"), ("answer", "waiting")]
