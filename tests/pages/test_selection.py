"""The link's selection is marked in static tables and steps too, not only in views that take clicks."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from streamlit.testing.v1 import AppTest

import components.cache
from engine.cases.bundled import EXAMPLE, take_in
from engine.core.values import Analysis
from tests.engine.cases.samples import full_case
from tests.engine.cases.test_step_ratings import solution  # noqa: F401 - a fixture

PAGES = Path(__file__).resolve().parent.parent.parent / "pages"
MARKED = re.compile(r'<(\w+)[^>]*aria-current="true"[^>]*>(.*?)</\1>', re.DOTALL)


def marked(page: str, **link: str) -> list[tuple[str, str]]:
    """Element and content of all that a page marks as selected."""
    app = AppTest.from_file(str(PAGES / f"{page}.py"), default_timeout=120)
    for name, value in link.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return [found for html in app.get("html") for found in MARKED.findall(str(html.proto.body))]


@pytest.fixture
def store():
    components.cache.workbench.clear()
    return components.cache.workbench().cases


@pytest.mark.parametrize("page", ["inspect/facts", "inspect/attribution"])
def test_the_tables_mark_the_column_of_the_passage_and_the_row_of_the_sentence(page, store):
    take_in(store)
    column, row = marked(page, case=EXAMPLE, passage="4", sentence="2")[:2]
    assert column == ("th", "4")
    assert row[0] == "th" and row[1].startswith("Filter the hot suspension")
    assert marked(page, case=EXAMPLE) == []


@pytest.mark.parametrize(("number", "selected"), [("2", 2), ("99", None), ("0000000012", None), ("9" * 5000, None)])
def test_a_link_to_a_place_that_is_not_there_selects_none(number, selected):
    app = AppTest.from_function(chosen_places)
    app.query_params["case"], app.query_params["sentence"], app.query_params["passage"] = "c", number, number
    app.run()
    assert not app.exception
    assert [text.value for text in app.text] == [str(selected)] * 2


def chosen_places():
    import streamlit as st

    from components import state

    state.open_case_id()
    st.text(state.selected_sentence(9))
    st.text(state.selected_passage(9))


def test_every_tab_of_attribution_has_its_figure_to_export_and_says_what_it_is_for(store):
    take_in(store)
    store.save(msgspec.structs.replace(full_case("first"), analyses=()))
    for tab in ("Occlusion", "Tokens", "Faithfulness", "Used x supports"):
        app = AppTest.from_file(str(PAGES / "inspect/attribution.py"), default_timeout=120)
        app.session_state["attribution_tab"], app.query_params["case"] = tab, EXAMPLE
        app.run()
        assert not app.exception
        assert [b.label for b in app.button].count("Export figure") == 1, tab
        app.query_params["case"] = "first"
        app.run()
        assert [c.value for c in app.caption if "?" in c.value], tab


def test_a_step_marks_the_passage_that_the_case_has_too(store, solution):  # noqa: F811
    case = full_case("first")
    known = msgspec.structs.replace(case.passages[1], id="b", text="text of b")
    run = Analysis(id=f"steps:raise:{solution.model}", kind="steps", stamp=case.stamp, result=solution.to_dict())
    store.save(msgspec.structs.replace(case, passages=(case.passages[0], known), analyses=(run,)))
    hits = marked("inspect/steps", case="first", passage="2")
    assert [element for element, _ in hits] == ["li", "li"]
    assert all("passage 2 of the case" in content and "text of b" in content for _, content in hits)
    assert marked("inspect/steps", case="first", passage="1") == []
