"""The examples in the sidebar."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

import components.cache
from components.frame import RECENT
from engine.cases.bundled import EXAMPLE, SOLVED, take_in
from engine.corpus.samples import FIRST_CASE

APP = str(Path(__file__).resolve().parent.parent.parent / "app.py")


def opened(**query) -> AppTest:
    """The app in a session of its own."""
    app = AppTest.from_file(APP, default_timeout=120)
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def test_an_example_opens_on_the_page_that_shows_it_and_the_others_stay_within_reach(app):
    app.run()
    labels = [button.label for button in app.sidebar.button]
    assert labels[2] == "Open the solved example" and len(labels) == 4
    app.sidebar.button[2].click().run()
    assert not app.exception
    assert [title.value for title in app.title] == ["Steps"]
    cases = components.cache.workbench().cases
    assert cases.has(SOLVED) and not cases.has(EXAMPLE)  # only what was opened comes into the library
    assert [button.label for button in app.sidebar.button] == labels
    assert next(fold for fold in app.sidebar.expander if fold.label == "Examples").proto.expanded


def test_a_new_session_opens_the_newest_case_where_the_first_one_was_deleted(app):
    app.run()
    cases = components.cache.workbench().cases
    cases.save(replace(cases.load(FIRST_CASE), id="newest"))
    assert opened().query_params["case"] == FIRST_CASE
    cases.delete(FIRST_CASE)
    assert opened().query_params["case"] == "newest"


def test_a_deleted_example_comes_back_by_its_button_and_its_link_and_stays_deleted_in_its_session(app):
    app.run()
    cases = components.cache.workbench().cases
    take_in(cases)
    cases.delete(SOLVED)
    linked = opened(case=SOLVED)
    assert cases.load(SOLVED)
    cases.delete(SOLVED)
    linked.run()
    assert not any(row.id == SOLVED for row in cases.rows())
    next(button for button in linked.sidebar.button if button.label == "Open the solved example").click().run()
    assert not linked.exception and cases.load(SOLVED)


def test_an_open_case_that_was_changed_long_ago_is_named_by_its_question(app):
    app.run()
    cases = components.cache.workbench().cases
    first = cases.load(FIRST_CASE)
    for number in range(RECENT):
        cases.save(replace(first, id=f"later-{number}", question=f"Is it {number}?"))
    picker = opened(case=FIRST_CASE).sidebar.selectbox[0]
    assert picker.value == FIRST_CASE and first.question in picker.options and FIRST_CASE not in picker.options
