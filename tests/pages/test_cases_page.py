"""The Cases and Compare pages without a browser: what they show, and that a mark made there is in the library."""

from __future__ import annotations

import re
import sqlite3
from concurrent.futures import Future

import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

import components.cache
from components.library import WIDTHS
from components.runs import Run
from engine.analyses.facts import record_of
from engine.cases.places import places
from engine.cases.query import Query
from engine.cases.review import MarkDraft, review_of, sign_off
from engine.methods.are.backtrack import proposed
from engine.replay import Number, Replay
from engine.report.compare import conditions
from tests.engine.cases.records import full_record
from tests.engine.cases.samples import full_case
from tests.engine.cases.test_case_verdict import checked


def opened(page: str, case: str = "first") -> AppTest:
    made = AppTest.from_file(f"../../pages/review/{page}.py", default_timeout=60)
    made.query_params["case"] = case
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
    """All that is drawn through components/html.py."""
    return " ".join(str(element.proto) for element in app.get("html"))


def field(app, label):
    return next(f for f in (*app.text_input, *app.text_area) if f.label == label)


def test_the_page_lists_the_library_and_the_open_case(app):
    assert not app.exception
    assert app.title[0].value == "Cases"
    assert [t.label for t in app.tabs][-3:] == ["Review", "Report and export", "Replay"]
    assert "2 cases" in page_text(app)
    table = app.dataframe[0].value
    first = ["question", "review", "facts"]  # seen at 1024 pixels
    assert list(table.columns[:3]) == first and sum(WIDTHS[name] for name in first) <= 550
    assert sum(WIDTHS.values()) <= 814  # seen at 1280 pixels
    assert [asked.startswith("►") for asked in table["question"]].count(True) == 1
    assert WIDTHS["question"] >= 230  # three lines hold most questions
    assert WIDTHS["review"] >= 110  # and "stands as edited, by" with a name of two words
    assert WIDTHS["changed"] >= 80  # one line holds a date
    assert "Sort by" not in [box.label for box in app.selectbox]  # the heads of the table sort it
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", changed) for changed in table["changed"])


def test_a_search_narrows_the_table_and_nothing_found_says_what_to_do(app):
    field(app, "Search").set_value("melts").run()
    assert "1 case<" in page_text(app)
    field(app, "Search").set_value("no such words").run()
    assert "Change the search" in app.info[0].value


def test_each_line_says_how_much_is_borne_out_and_writers_are_compared(app):
    store().save(checked())
    app.run()
    assert not app.exception
    table = app.dataframe[0].value
    line = table[table["question"] == "What of the bridge?"].iloc[0]
    assert line["facts"] == "3 facts: 1 borne out, 1 contradicted, 1 not found"
    assert list(table["facts"]).count("not checked") == 2
    assert set(table["review"]) == {"not reviewed"}
    board = app.dataframe[1].value
    assert list(board["writer"]) == ["someone"] and [round(share) for share in board["borne out"]] == [33]
    group = next(control for control in app.segmented_control if control.label == "Group by")
    group.set_value("method").run()
    board = app.dataframe[1].value
    assert list(board["method"]) == ["Top passages as retrieved"] and list(board["does not stand"]) == [0]


def test_a_note_goes_into_the_history_under_the_reviewers_name(app):
    field(app, "Reviewer").set_value("Ada").run()
    field(app, "Note").set_value("Checked *twice*.")
    button(app, "Add to the history").click().run()
    (mark,) = store().history("first")
    assert (mark.author, mark.value, mark.target) == ("Ada", "Checked *twice*.", "case")
    assert not app.exception


def test_without_a_name_nothing_is_decided_and_each_button_says_why(app):
    for label in ("Sign off", "Start review", "Add to the history"):
        assert button(app, label).disabled and button(app, label).help == "Enter your name first."
    field(app, "Reviewer").set_value("Ada").run()
    assert not any(button(app, label).disabled for label in ("Sign off", "Start review", "Add to the history"))


def test_the_review_begins_with_the_answer_and_its_verdicts(app):
    store().save(checked())
    app.query_params["case"] = "case"
    app.run()
    assert not app.exception
    drawn = [str(element.proto) for element in app.tabs[-3]]
    words = ("groundwork_sentences", "your name", "Sign off")
    answer, name, sign = (next(i for i, one in enumerate(drawn) if word in one) for word in words)
    assert answer < name < sign
    (fold,) = [one for one in app.expander if "your own verdict" in one.label]
    assert not fold.proto.expanded and [box.label for box in fold.text_area] == ["Note"]


def test_a_verdict_of_ones_own_is_chosen_among_those_that_fit(app):
    store().save(checked())
    app.query_params["case"] = "case"
    field(app.run(), "Reviewer").set_value("Ada").run()
    next(one for one in app.segmented_control if one.label == "Add").set_value("override").run()
    about = lambda: next(box for box in app.selectbox if box.label == "About")  # noqa: E731
    choices = {"fact:1.1": ["borne out", "contradicted", "not found"], "edit:1": ["accepted", "rejected"]}
    for target, options in choices.items():
        place = next(place for place in places(checked()) if place.target == target)
        about().set_value(place).run()
        (own,) = [one for one in app.radio if one.label == "Your verdict"]
        assert own.options == options and own.value is None
    own.set_value("rejected")
    button(app, "Add to the history").click().run()
    (mark,) = store().history("case")
    assert (mark.target, mark.value) == ("edit:1", "rejected")


def signing():
    """The sign-off by itself: AppTest draws no dialog a second time."""
    import streamlit as st

    import components.cache
    from components.review import sign_off_view
    from engine.cases.review import review_of

    store = components.cache.workbench().cases
    case, history = store.load_whole(st.query_params["case"])
    sign_off_view(case, review_of(history), "Ada")


def dialog_for(case: str) -> AppTest:
    made = AppTest.from_function(signing, default_timeout=60)
    made.query_params["case"] = case
    return made.run()


def test_signing_off_takes_a_conclusion_with_a_reason_and_freezes(app):
    field(app, "Reviewer").set_value("Ada").run()
    button(app, "Sign off").click().run()
    assert "The answer was not checked against its sources." in page_text(app)

    dialog = dialog_for("first")
    assert dialog.radio[0].options == ["The answer stands", "The answer does not stand"]
    button(dialog, "Sign off and freeze").click().run()
    assert dialog.error[0].value == "Choose a conclusion."
    dialog.radio[0].set_value("does not stand")
    button(dialog, "Sign off and freeze").click().run()
    assert "Give a reason." in dialog.error[0].value
    assert store().history("first") == ()
    field(dialog, "Reason").set_value("The bridge was built later.")
    button(dialog, "Sign off and freeze").click().run()
    said = review_of(store().history("first")).conclusion
    assert (said.value, said.reason, said.author) == ("does not stand", "The bridge was built later.", "Ada")

    app.run()
    assert store().rows(Query(status="signed off"))[0].id == "first"
    assert "**Does not stand, signed off by Ada**" in [link.proto.label for link in app.get("page_link")]
    assert "does not stand, by Ada" in list(app.dataframe[0].value["review"])
    assert "frozen" in app.info[0].value
    assert not app.multiselect and any("Tags: optics" in drawn.proto.body for drawn in app.get("html"))
    button(app, "Make a new version").click().run()
    assert not app.exception
    (version,) = [row for row in store().rows() if row.parent]
    assert version.parent == "first"
    assert review_of(store().history(version.id)).conclusion is None


def test_tags_of_another_session_stay_and_show(app):
    tags = lambda: app.multiselect[0]  # noqa: E731
    held = set(tags().value)
    tags().set_value([*held, "mine"]).run()
    store().set_tags("first", [*held, "mine", "theirs"])
    before = store().rows("first")[0].updated
    app.run()
    assert set(tags().value) == {*held, "mine", "theirs"}
    assert store().rows("first")[0].updated == before
    store().set_tags("first", [*held, "mine", "theirs", "later"])
    tags().set_value(["theirs"]).run()  # chosen before "later" was seen
    assert set(store().load("first").tags) == {"theirs", "later"}
    store().add_marks("first", sign_off("Ada", "stands", "Read it."))
    tags().set_value([]).run()
    assert "signed off" in app.error[0].value and not app.exception


def test_what_is_signed_is_the_text_with_the_accepted_edits_over_its_changes(app):
    case = checked()
    store().save(case)
    edit, deletion = record_of(case).edits
    for one, value in ((edit, "accepted"), (deletion, "rejected")):
        draft = MarkDraft(kind="override", author="Ada", target=f"edit:{one.id}", value=value, reason="read")
        store().add_mark(case.id, replace(draft, machine=proposed(one)))
    dialog = dialog_for(case.id)
    assert dialog.radio[0].options == [
        "The answer stands as edited",
        "The answer partly stands",
        "The answer does not stand",
    ]
    signed = next(e.proto.body for e in dialog.get("html") if "gw-signed" in e.proto.body)
    assert "1934" in signed and "1932" not in signed
    (said,) = (w.value for w in dialog.warning)
    assert said.startswith("- Sentence 2 is not found and still in the text: “")
    assert "<mark>" in signed
    captions = dialog.radio[0].proto.captions
    assert [c.endswith(" 1 sentence is not borne out.") for c in captions] == [True, False, False]
    drawn = [str(element.proto) for element in dialog.main]
    order = ("gw-signed", "Sentence 2 is not found", "Conclusion", "Sign off and freeze")
    found = [next(i for i, one in enumerate(drawn) if words in one) for words in order]
    assert found == sorted(found)
    assert "Text that you sign, with 1 edit</h3>" in page_text(dialog)  # not Streamlit's, small in a dialog
    assert not dialog.expander[0].proto.expanded  # the answer is not shown twice
    dialog.radio[0].set_value("partly stands")
    field(dialog, "Reason").set_value("No source on the whales.")
    button(dialog, "Sign off and freeze").click().run()
    assert review_of(store().history(case.id)).conclusion.value == "partly stands"
    assert "partly stands, by Ada" in list(opened("cases").dataframe[0].value["review"])


def test_an_override_is_shown_with_its_reason_also_after_sign_off_and_an_accepted_edit_is_not_one(app):
    marks = (
        MarkDraft(kind="override", author="Ada", target="fact:1.1", value="borne out", reason="the other bridge"),
        MarkDraft(
            kind="override",
            author="Ada",
            target="edit:1",
            value="accepted",
            reason="as the source has it",
            machine="142-148: 89,000 -> 98,000",
        ),
        *sign_off("Ada", "stands as edited", "Read it."),
    )
    for mark in marks:
        store().add_mark("first", mark)
    app.run()
    assert not app.exception
    overrides, edits, history = (e.proto.body for e in app.get("html") if "<table" in e.proto.body)
    assert "fact 1.1" in overrides and "edit 1" not in overrides
    assert "edit 1" in edits and "fact 1.1" not in edits
    assert "89,000 → 98,000" in edits and "142-148" not in edits
    assert "the other bridge" in history


def test_a_replay_is_shown_by_its_parts_those_that_drifted_open(app):
    run = Run(future=Future())
    numbers = [
        Number(place="hits[0].parts.bm25", status="reproduced", stored=1.0, replayed=1.0),
        Number(place="answer.text", status="drifted", stored="one", replayed="two"),
    ]
    run.future.set_result(Replay(case="first", numbers=tuple(numbers)))
    app.session_state["groundwork_runs"] = {"replay:first": run}
    run.see()
    app.run()
    assert not app.exception
    parts = {one.label: one for one in app.expander if "reproduced" in one.label}
    assert [(label, one.proto.expanded) for label, one in parts.items()] == [
        ("Answer: 0 of 1 value reproduced", True),
        ("Search: 1 of 1 value reproduced", False),
    ]
    assert list(parts["Search: 1 of 1 value reproduced"].dataframe[0].value["place"]) == ["[0].parts.bm25"]


def test_the_bin_gives_a_case_back(app):
    store().delete("second")
    app.run()
    button(app, "Restore").click().run()
    assert store().load("second").question == "What melts ice?"


@pytest.mark.parametrize("name", ["first", "second"])
def test_a_damaged_case_leaves_the_others_on_the_page(app, name):
    with sqlite3.connect(store().path) as connection:
        connection.execute("DELETE FROM summaries")
        connection.execute("UPDATE bodies SET body = ? WHERE id = ?", (b'{"id"', name))
    connection.close()
    app.run()
    assert not app.exception
    assert sorted(app.dataframe[0].value["facts"]) == sorted(["cannot be read", "not checked"])
    assert any("'first' is damaged" in said.value for said in app.warning) == (name == "first")


def test_compare_shows_what_differs(app):
    app = choose_right(opened("compare"), "second")
    assert not app.exception
    assert app.title[0].value == "Compare"
    assert "two questions differ" in app.warning[0].value
    assert not app.header  # only the questions differ
    assert "0 words only on the left, 0 only on the right" in page_text(app) and "verdicts differ" not in page_text(app)
    assert "made with the same model, settings and versions" in page_text(app)


def test_compare_says_which_answer_is_not_checked_and_offers_the_check():
    components.cache.workbench.clear()
    store().save(checked())
    store().save(replace(checked(), id="twin", analyses=()))
    app = opened("compare", "case")
    assert not app.exception
    assert "The answer on the right is not checked." in page_text(app) and "verdicts differ" not in page_text(app)
    assert [one.key for one in app.button if one.label == "Check the answer"] == ["check_twin"]
    assert "Verdicts that differ" not in [header.value for header in app.header]


def test_compare_offers_a_way_to_an_answer_that_can_be_compared(app):
    app = opened("compare")
    assert "Run conditions on the left case" in [one.label for one in app.button]
    store().save(replace(full_case("first"), corpus="notes"))
    button(app.run(), "Ask the left question again").click().run()
    assert app.session_state["question"] == full_case("first").question
    assert app.session_state["ask_corpus"] == "notes"


def choose_right(app, name):
    return next(box for box in app.selectbox if box.label == "Right").set_value(name).run()


def test_compare_opens_no_unrelated_case(app):
    app = opened("compare")
    assert not app.exception
    assert {box.label: box.value for box in app.selectbox} == {"Left": "first", "Right": None}
    assert "No other answer to this question" in app.info[0].value
    assert not app.header
    # The same case on both sides has nothing to show either.
    app = choose_right(app, "first")
    assert "the same answer" in app.info[0].value and not app.header


def test_compare_shows_the_answers_first_and_the_settings_folded_below():
    components.cache.workbench.clear()
    case = full_case("first")
    text = case.answer.text.replace("[cite_7]", "Ice melts.")
    other = replace(case, id="twin", answer=replace(case.answer, text=text, citations=()))
    left, right = {"retrieval": {"k": 5}, "k": 3}, {"refinement": {"seeds": [0, 1]}, "k": 4}
    store().save(replace(case, stamp=replace(case.stamp, settings=left)))
    store().save(replace(other, stamp=replace(case.stamp, model="scribe", settings=right)))
    app = opened("compare")
    assert not app.exception
    drawn = " ".join(str(node.proto) for node in app.main)
    blocks = (
        "0 words only on the left, 2 only on the right (underlined). Passages: 1 cited differently.",
        "Neither answer is checked.",
        "<h3>reader</h3>",
        "Not checked. 2 citations.",
        "<h3>scribe</h3>",
        "Passages used differently",
        "1 passage with the same rank and citations",
        "Different writers: reader / scribe. Other settings that differ: 4.",
    )
    places = [drawn.find(block) for block in blocks]
    assert places == sorted(places) and places[0] > 0
    differing = next(one.proto.body for one in app.get("html") if "<table>" in one.proto.body)
    assert "settings." not in differing
    # Both sides have the model and k.
    names = [differing.find(name) for name in (">model<", ">k<", "(retrieval.k)", "(refinement.seeds)[1]")]
    assert names == sorted(names) and names[0] > 0


def test_compare_names_settings_and_not_their_fields(app):
    case = full_case("third")
    other = dict(case.stamp.settings) | {"retrieval": {"k": 5}}
    store().save(replace(case, stamp=replace(case.stamp, settings=other)))
    app = choose_right(opened("compare"), "third")
    differing = next(one.proto.body for one in app.get("html") if "<table>" in one.proto.body)
    assert "Passages retrieved (retrieval.k)" in differing
    assert "settings." not in differing


def test_cases_of_one_question_are_told_apart_by_the_end_of_their_label(app):
    long = "What happened on the account of Pellworth between March and July?"
    for name in ("fourth", "fifth"):
        store().save(full_case(name, question=long))
    app = opened("compare")
    shown = [option for option in app.selectbox[0].options if option.startswith("What happened")]
    assert len(set(shown)) == 2 and all(len(option) < 90 and "…" in option for option in shown)


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


def test_compare_opens_a_refined_case_next_to_its_own_last_condition():
    components.cache.workbench.clear()
    refined = full_record()
    store().save(refined)
    store().save(full_case("unrelated", question="What melts ice?"))
    app = AppTest.from_file("../../pages/review/compare.py", default_timeout=60)
    app.query_params["case"] = refined.id
    app = app.run()
    assert not app.exception
    sides = {box.label: box.value for box in app.selectbox}
    last = conditions(refined)[-1]
    assert sides == {"Left": refined.id, "Left answer": "the case's answer", "Right": refined.id, "Right answer": last}
    assert app.query_params["right"] == f"{refined.id}:{last}"


def test_compare_opens_on_another_case_of_the_same_question():
    components.cache.workbench.clear()
    store().save(full_case("first"))
    store().save(full_case("twin"))
    store().save(full_case("unrelated", question="What melts ice?"))
    app = opened("compare")
    assert {box.label: box.value for box in app.selectbox} == {"Left": "first", "Right": "twin"}
    assert not app.warning
