"""The Cases and Compare pages without a browser: what they show, and that a mark made there is in the library."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

import components.cache
from engine.cases.query import Query
from engine.cases.review import MarkDraft
from tests.engine.cases.records import full_record
from tests.engine.cases.samples import full_case


def opened(page: str) -> AppTest:
    made = AppTest.from_file(f"../../pages/review/{page}.py", default_timeout=60)
    made.query_params["case"] = "first"
    return made.run()


@pytest.fixture
def app():
    """The Cases page by itself on a library of two cases, the first of them open."""
    components.cache.workbench.clear()
    store().save(full_case("first"))
    store().save(full_case("second", question="What melts ice?"))
    return opened("cases")


def store():
    return components.cache.workbench().cases


def button(app, label):
    return next(b for b in app.button if b.label == label)


def page_text(app) -> str:
    """What is drawn through components/html.py."""
    return " ".join(str(element.proto) for element in app.get("html"))


def field(app, label):
    return next(f for f in (*app.text_input, *app.text_area) if f.label == label)


def test_the_page_lists_the_library_and_the_open_case(app):
    assert not app.exception
    assert app.title[0].value == "Cases"
    assert [t.label for t in app.tabs][-3:] == ["Review", "Report and export", "Replay"]
    assert "2 cases" in page_text(app)


def test_a_search_narrows_the_table_and_nothing_found_says_what_to_do(app):
    field(app, "Search").set_value("melts").run()
    assert "1 case<" in page_text(app)
    field(app, "Search").set_value("no such words").run()
    assert "Search for something else" in app.info[0].value


def test_a_note_goes_into_the_history_under_the_reviewers_name(app):
    field(app, "Reviewer").set_value("Ada").run()
    field(app, "Note").set_value("Checked *twice*.")
    button(app, "Add to the history").click().run()
    (mark,) = store().history("first")
    assert (mark.author, mark.value, mark.target) == ("Ada", "Checked *twice*.", "case")
    assert not app.exception


def test_a_note_without_a_name_is_refused_in_words(app):
    field(app, "Note").set_value("Checked.")
    button(app, "Add to the history").click().run()
    assert "has no name" in app.error[0].value
    assert store().history("first") == ()


def test_signing_off_freezes_and_offers_a_new_version(app):
    field(app, "Reviewer").set_value("Ada").run()
    button(app, "Sign off and freeze").click().run()
    assert store().rows(Query(status="signed off"))[0].id == "first"
    assert "frozen" in app.info[0].value
    assert not app.multiselect and any("Tags: optics" in drawn.proto.body for drawn in app.get("html"))
    button(app, "Make a new version").click().run()
    assert not app.exception
    assert [row.parent for row in store().rows() if row.parent] == ["first"]


def test_an_override_is_shown_with_its_reason_also_after_sign_off_and_an_accepted_edit_is_not_one(app):
    marks = (
        MarkDraft(kind="override", author="Ada", target="fact:1.1", value="borne out", reason="the other bridge"),
        MarkDraft(kind="override", author="Ada", target="edit:1", value="accepted", reason="as the source has it"),
        MarkDraft(kind="status", author="Ada", value="signed off"),
    )
    for mark in marks:
        store().add_mark("first", mark)
    app.run()
    assert not app.exception
    tables = {next(iter(table.value.columns)): table.value for table in app.dataframe if not table.value.empty}
    assert list(tables["place"]["place"]) == ["fact:1.1"]
    assert list(tables["edit"]["edit"]) == ["edit:1"]
    assert "the other bridge" in list(tables["no."]["reason"])


def test_the_bin_gives_a_case_back(app):
    store().delete("second")
    app.run()
    button(app, "Restore").click().run()
    assert store().load("second").question == "What melts ice?"


def test_compare_shows_what_differs(app):
    app = opened("compare")
    assert not app.exception
    assert app.title[0].value == "Compare"
    assert "not the same" in app.warning[0].value
    assert [s.value for s in app.header] == [
        "Settings that differ",
        "Answer, word by word",
        "Passages",
        "Verdicts that differ",
    ]


def test_two_answers_of_one_refined_case_are_compared(tmp_path):
    components.cache.workbench.clear()
    case = full_record()
    store().save(case)
    app = AppTest.from_file("../../pages/review/compare.py", default_timeout=60).run()
    assert not app.exception
    for label, name in (("Left answer", "A"), ("Right answer", "B")):
        app = next(box for box in app.selectbox if box.label == label).set_value(name).run()
    assert not app.exception
    assert "Scores that differ" in [header.value for header in app.header]
    assert (app.query_params["left"], app.query_params["right"]) == ("0123456789ab:A", "0123456789ab:B")


def test_a_link_names_both_sides_also_where_cases_share_a_question():
    components.cache.workbench.clear()
    for name in ("one", "two", "three"):
        store().save(full_case(name))
    refined = full_record()
    store().save(refined)
    app = AppTest.from_file("../../pages/review/compare.py", default_timeout=60)
    app.query_params["left"], app.query_params["right"] = "two", f"{refined.id}:C2"
    app = app.run()
    assert not app.exception
    assert {box.label: box.value for box in app.selectbox} == {"Left": "two", "Right": refined.id, "Right answer": "C2"}


def test_compare_opens_on_another_case_of_the_same_question():
    components.cache.workbench.clear()
    store().save(full_case("first"))
    store().save(full_case("twin"))
    store().save(full_case("unrelated", question="What melts ice?"))
    app = opened("compare")
    assert {box.label: box.value for box in app.selectbox} == {"Left": "first", "Right": "twin"}
    assert not app.warning
