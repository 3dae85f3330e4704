"""The settings panel: every kind of field, the paper's values, a value that cannot be, and what a run is given."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.settings_panel import OF_A_CORPUS, OF_A_QUESTION, TITLES, said
from engine.core.settings import BEST_SENTENCE, PAPERS, all_settings


def panel() -> None:
    import streamlit as st

    from components.settings_panel import chosen_workbench, settings_panel

    settings_panel("retrieval", "reasoning", "refinement", "selection", paper="attr-rag")
    st.json(chosen_workbench().settings.to_dict())


ROOT = Path(__file__).resolve().parent.parent.parent
PANEL = "panel_retrieval_reasoning_refinement_selection"
STAGES = ("retrieval", "reasoning", "refinement", "selection")


@pytest.fixture
def app() -> AppTest:
    app = AppTest.from_function(panel, default_timeout=60)
    app.session_state[PANEL] = True  # unfolded
    return app.run()


def at(app: AppTest, stage: str) -> AppTest:
    """The panel with the tab of that stage open."""
    app.session_state[f"{PANEL}_stage"] = TITLES[stage]
    return app.run()


def settings_of(app: AppTest) -> dict:
    import json

    assert not app.exception
    return json.loads(app.json[0].value)


def fields_of(app: AppTest) -> list:
    return [*app.number_input, *app.text_input, *app.selectbox, *app.toggle]


def test_every_setting_of_a_stage_has_a_field_with_its_default_and_the_papers_value(app):
    for stage in STAGES:
        drawn = fields_of(at(app, stage))
        fields = {s.path for s in all_settings() if s.stage == stage} - {*OF_A_CORPUS, *OF_A_QUESTION}
        assert {w.key.removeprefix("set_") for w in drawn} == fields
        captions = [caption.value for caption in app.caption]
        assert len([c for c in captions if c.startswith("default: ")]) == len(drawn)
        assert ("default: 30 · paper: 30 (Table I: its largest)" in captions) == (stage == "retrieval")
    assert set(TITLES) == {s.stage for s in all_settings()}


def test_every_setting_has_a_field_on_some_page():
    """The stages that pages draw a panel of; how a corpus is cut and embedded is set where it is made."""
    sources = [path.read_text() for room in ("pages", "components") for path in (ROOT / room).rglob("*.py")]
    calls = [node for text in sources for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    panels = [call.args for call in calls if getattr(call.func, "id", "") == "settings_panel"]
    drawn = {stage.value for stages in panels for stage in stages if isinstance(stage, ast.Constant)}
    corpora = (ROOT / "pages/ask/corpora.py").read_text()
    paths = [s.path for s in all_settings() if s.stage not in drawn or s.path in OF_A_CORPUS]
    assert paths == ["chunking.method", "chunking.words", "chunking.overlap", "retrieval.embedder"]
    assert all(f'"{path}"' in corpora for path in paths)


def test_what_stands_in_the_fields_is_what_a_run_is_given(app):
    app.number_input(key="set_retrieval.k").set_value(7)
    app.selectbox(key="set_retrieval.mode").set_value("dense").run()
    at(app, "refinement").text_input(key="set_refinement.seeds").set_value("4, 5").run()
    at(app, "reasoning").text_input(key="set_reasoning.threshold").set_value("0.3").run()
    given = settings_of(app)
    assert (given["retrieval"]["k"], given["retrieval"]["mode"]) == (7, "dense")
    assert (given["refinement"]["seeds"], given["reasoning"]["threshold"]) == ([4, 5], 0.3)
    app.text_input(key="set_reasoning.threshold").set_value("").run()
    assert settings_of(app)["reasoning"]["threshold"] is None
    assert any("passages retrieved 7" in caption.value for caption in app.caption)
    assert at(app, "retrieval").number_input(key="set_retrieval.k").value == 7


def test_without_a_paper_of_the_page_the_help_says_what_each_gives():
    def corpora() -> None:
        from components.settings_panel import draw_setting
        from engine.core.settings import all_settings

        draw_setting(next(s for s in all_settings() if s.path == "retrieval.embedder"), "all-MiniLM-L6-v2", key="own")

    app = AppTest.from_function(corpora, default_timeout=60).run()
    assert [caption.value for caption in app.caption] == ["default: all-MiniLM-L6-v2"]
    first, *_, last = app.selectbox(key="own").help.splitlines()
    assert first.startswith("Attr-RAG: all-mpnet-base-v2") and last.startswith("On the command line")


def test_the_papers_values_leave_t_to_the_embedder():
    def steps() -> None:
        import streamlit as st

        from components.settings_panel import chosen_workbench, settings_panel

        settings_panel("reasoning", paper="raise")
        st.json(chosen_workbench().settings.to_dict())

    app = AppTest.from_function(steps, default_timeout=60)
    app.session_state["panel_reasoning"] = True
    app.run().button(key="paper_raise").click().run()
    given = settings_of(app)["reasoning"]
    assert (given["k"], given["demonstrations"], given["threshold"]) == (10, 0, None)


def test_a_browser_that_missed_the_first_drawing_shows_the_values_all_the_same(app):
    app.run()
    assert app.number_input(key="set_retrieval.k").proto.default == 30
    modes = app.selectbox(key="set_retrieval.mode")
    assert modes.options[modes.proto.default] == modes.value == "hybrid"
    app.number_input(key="set_retrieval.k").set_value(7).run()
    app.run()
    assert app.number_input(key="set_retrieval.k").proto.default == 7
    for stage in STAGES:
        at(app, stage)
        drawn = [*app.number_input, *app.text_input, *app.toggle]
        assert [w.proto.default for w in drawn] == [w.value for w in drawn]


def test_a_value_that_cannot_be_is_told_and_the_earlier_one_stays(app):
    at(app, "refinement").text_input(key="set_refinement.seeds").set_value("one").run()
    assert any(error.value.startswith("Seeds") for error in app.error)
    assert settings_of(app)["refinement"]["seeds"] == [1337, 2024, 42]


def test_the_paper_and_the_defaults_are_one_click_each(app):
    at(app, "selection").number_input(key="set_selection.max_gap").set_value(9).run()
    app.button(key="paper_attr-rag").click().run()
    given = settings_of(app)
    selection = given["selection"]
    assert (selection["max_share"], selection["max_gap"], given["retrieval"]["mode"]) == (1, 2, "dense")
    assert given["retrieval"]["reranker"].startswith("cross-encoder/")
    assert app.selectbox(key="set_selection.expansion").value == "neighbour"
    next(button for button in app.button if button.label == "Reset to the defaults").click().run()
    assert settings_of(app)["selection"]["max_share"] == 0.5
    assert settings_of(app)["retrieval"]["reranker"] == BEST_SENTENCE
    assert at(app, "retrieval").selectbox(key="set_retrieval.mode").value == "hybrid"


def test_the_papers_values_are_set_also_where_the_page_does_not_show_them(app):
    at(app, "selection").button(key="paper_attr-rag").click().run()
    given = settings_of(app)
    wanted = PAPERS["attr-rag"].gives
    assert given["retrieval"]["k"] == 30 and given["retrieval"]["mode"] == "dense"  # fields of another stage
    assert given["retrieval"]["embedder"] == "" != wanted["retrieval.embedder"].value  # the corpus's own


def test_values_are_said_in_words():
    assert [said(v) for v in (0.05, 60_000, (), False)] == ["0.05", "60000", "", "off"]


def test_a_folded_panel_draws_no_field_and_keeps_what_was_chosen(app):
    app.number_input(key="set_retrieval.k").set_value(7).run()
    app.session_state[PANEL] = False
    app.run()
    assert not fields_of(app)
    assert settings_of(app)["retrieval"]["k"] == 7
    app.session_state[PANEL] = True
    assert app.run().number_input(key="set_retrieval.k").value == 7
