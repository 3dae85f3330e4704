"""Lanes of work: the order, the place of what waits, the expected wait, and what is stopped before it begins."""

from __future__ import annotations

import threading
import time
from concurrent.futures import wait

from streamlit.testing.v1 import AppTest

from components.runs import Lane, Run
from engine.core.errors import Cancelled


def held(lane, label=""):
    """A run that has begun and ends when its gate is opened."""
    gate, begun = threading.Event(), threading.Event()

    def work(run):
        begun.set()
        gate.wait(60)

    run = lane.start(work, label)
    assert begun.wait(60)
    return run, gate


def test_runs_begin_in_the_order_in_which_they_were_asked_for():
    lane, began = Lane("test"), []
    first, gate = held(lane)
    others = [lane.start(lambda run, number=number: began.append(number)) for number in range(3)]
    assert [run.place("") for run in others] == [
        "waiting for its turn: next",
        "waiting for its turn: 1 before it",
        "waiting for its turn: 2 before it",
    ]
    assert first.waiting == ""
    gate.set()
    wait([run.future for run in others])
    assert began == [0, 1, 2]
    assert [run.waiting for run in others] == ["", "", ""]


def test_the_wait_is_said_once_runs_of_these_kinds_have_ended():
    lane = Lane("test")
    lane.start(lambda run: None, "short").future.result()
    _, gate = held(lane, "long")
    waits = [lane.start(lambda run: None, "short") for _ in range(2)]
    assert waits[1].waiting == "waiting for its turn: 1 before it"  # nobody knows yet how long "long" takes
    gate.set()
    wait([run.future for run in waits])
    _, gate = held(lane, "short")
    last = lane.start(lambda run: None, "short")
    assert last.waiting == "waiting for its turn: next, about 1 s"
    gate.set()
    last.future.result()


def test_a_lane_does_not_wait_for_another():
    _, gate = held(Lane("long"))
    assert Lane("short").start(lambda run: "done").future.result(timeout=60) == "done"
    gate.set()


def test_what_is_stopped_while_it_waits_is_over_at_once_and_never_begins():
    lane, began = Lane("test"), []
    _, gate = held(lane)
    run = lane.start(lambda run: began.append(1))
    run.stop()
    assert run.was_cancelled and not run.running
    assert run.problem == "Stopped before it began."
    gate.set()
    lane.start(lambda run: None).future.result()
    assert began == []


def test_what_is_stopped_while_it_works_ends_at_its_next_step():
    lane = Lane("test")
    entered = threading.Event()

    def work(run):
        entered.set()
        run.watch.cancel.wait(60)
        run.watch.step("working")

    run = lane.start(work)
    assert entered.wait(60)
    run.stop()
    assert isinstance(run.future.exception(timeout=60), Cancelled)
    assert run.was_cancelled


def draw_waiting():
    import threading

    import streamlit as st

    from components import state
    from components.polling import wait_for
    from components.runs import Lane

    if state.run_of("work") is None:
        lane, st.session_state.gate = Lane("test"), threading.Event()
        gate, begun = st.session_state.gate, threading.Event()
        lane.start(lambda run: (begun.set(), gate.wait(60)))
        begun.wait(60)
        lane.start(lambda run: gate.wait(60))
        state.keep_run("work", lane.start(lambda run: gate.wait(60)))
    state.see_runs()
    wait_for("work", "Working")


def test_the_page_says_the_place_and_what_was_stopped_there():
    app = AppTest.from_function(draw_waiting, default_timeout=60).run()
    assert not app.exception
    (bar,) = app.get("progress")
    assert bar.proto.text.startswith("Working: waiting for its turn: 1 before it")
    app.button[0].click().run()
    assert [info.value for info in app.info] == ["Stopped before it began."]
    app.session_state.gate.set()


def test_a_stage_says_what_is_left_at_its_own_pace():
    run = Run(stage="scoring", done=30, total=90, entered=(time.monotonic() - 60, 0))
    assert run.place("") == "scoring 30 of 90, about 2 min left"
    stages = Lane("test").start(lambda run: (run.watch.step("loading", 5, 9), run.watch.step("scoring", 2, 9)))
    wait([stages.future])
    assert stages.entered is not None and stages.entered[1] == 2  # what an earlier stage did says nothing of this one
    assert stages.place("") == "scoring 2 of 9"


def draw_shared():
    import threading

    import streamlit as st

    from components import state
    from components.polling import wait_for
    from components.runs import Lane

    if st.session_state.get("begins"):
        gate, st.session_state.begins = threading.Event(), False
        st.session_state.gate = gate
        state.keep_run(
            "work:case", Lane("test").start(lambda run: gate.wait(60) and run.watch.step("after the gate")), shared=True
        )
    state.run_of("work:case")
    state.see_runs()
    wait_for("work:case", "Working")


def test_a_session_loaded_anew_shows_a_run_on_a_case_and_can_stop_it():
    first = AppTest.from_function(draw_shared, default_timeout=60)
    first.session_state.begins = True
    first.run()
    second = AppTest.from_function(draw_shared, default_timeout=60).run()
    (bar,) = second.get("progress")
    assert bar.proto.text.startswith("Working")
    second.button[0].click().run()
    first.session_state.gate.set()
    run = first.session_state.groundwork_runs["work:case"]
    wait([run.future])
    assert run.was_cancelled
    for session in (first, second):  # each draws the end by itself
        assert [info.value for info in session.run().info] == [run.problem]
    assert not AppTest.from_function(draw_shared, default_timeout=60).run().info  # a third never saw it


def draw_asked():
    from components import state
    from components.cache import begun_runs
    from components.polling import say_problem
    from components.runs import Lane
    from engine.core.errors import GroundworkError

    def fail(run):
        raise GroundworkError("The server did not answer.")

    if "ask:lost" not in begun_runs():
        begun_runs()["ask:lost"] = Lane("test").start(fail)
        begun_runs()["ask:lost"].future.exception()
    run = state.run_of("ask:lost", over=True)
    state.see_runs()
    if run is not None and run.ended:
        say_problem(run)


def test_a_question_that_failed_while_its_page_was_loaded_anew_says_so():
    app = AppTest.from_function(draw_asked, default_timeout=60).run()
    assert [error.value for error in app.error] == ["The server did not answer."]
