"""Settings: a model is added under a name of the user's, tested, taken as a default, and taken off the list."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest
from streamlit.testing.v1 import AppTest

from components import cache
from engine.models.defaults import default_for
from engine.models.registry import added_models, forget_models
from tests.pages.test_install_page import SCRIPT
from tests.pages.test_model_choice import box
from tests.tiny import save_tiny


@pytest.fixture
def settings(monkeypatch, tmp_path):
    monkeypatch.setenv("GROUNDWORK_MODELS", str(tmp_path / "models"))
    cache.analyses.clear()
    forget_models()
    yield AppTest.from_string(SCRIPT, default_timeout=120).run()
    forget_models()


def press(settings, label):
    return next(button for button in settings.button if button.label == label).click().run()


def after_test(settings):
    """The page once the self-test that it began has ended."""
    settings.session_state["groundwork_runs"]["self_test"].future.exception()
    return settings.run()


def said(settings):
    return " ".join(element.value for element in (*settings.markdown, *settings.caption))


def test_a_folder_is_added_tested_taken_as_default_and_removed(settings, tmp_path):
    folder = save_tiny(tmp_path / "tiny")
    settings.text_input(key="self_test_model").set_value(str(folder))
    settings.text_input(key="added_name").set_value("Field notes")
    after_test(press(settings, "Add and test"))
    assert not settings.exception and not settings.error
    assert "Field notes: 7 of 7 checks passed." in said(settings)
    models = next(one.proto.body for one in settings.get("html") if ">Field notes</th>" in one.proto.body)
    assert str(folder) in models
    assert "Field notes" in box(settings, "Scores").options
    box(settings, "Scores").select(str(folder)).run()
    assert default_for("scores").model == str(folder)
    settings.button(key="drop Field notes").click().run()
    assert added_models()[0] == () and not settings.exception
    assert "is no longer available" in settings.warning[0].value


def test_what_cannot_be_added_says_what_can(settings):
    settings.text_input(key="self_test_model").set_value("no such folder")
    press(settings, "Add and test")
    assert "Give a folder with a config.json" in settings.error[0].value
    settings.text_input(key="self_test_model").set_value("")
    press(settings, "Test")
    assert settings.warning[0].value == "Name a model first."


def test_a_model_that_does_not_load_stays_on_the_list_with_the_reason(settings, tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    settings.text_input(key="self_test_model").set_value(str(tmp_path / "broken"))
    after_test(press(settings, "Add and test"))
    assert settings.error and "broken" in settings.error[0].value
    assert [model.name for model in added_models()[0]] == ["broken"]


def test_a_torch_that_another_thread_still_imports_is_not_asked_for_its_devices(settings, monkeypatch):
    half = ModuleType("torch")
    half.__spec__ = ModuleSpec("torch", None)
    half.__spec__._initializing = True
    monkeypatch.setitem(sys.modules, "torch", half)
    settings.run()
    assert not settings.exception
    assert "chosen when the first model loads" in " ".join(str(table.value) for table in settings.table)
