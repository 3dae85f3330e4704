"""Which model writes and scores, said on the pages; a default chosen in Settings is what they begin with."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from streamlit.testing.v1 import AppTest

from bench.worked_example import WRITER
from components import cache
from components.model_choice import models_line
from engine.cases.bundled import EXAMPLE, take_in
from engine.core.files import home
from engine.corpus.collection import Collection
from engine.models import registry
from engine.models.catalogue import entry_of
from engine.models.choices import FILE, read_defaults
from engine.models.defaults import choose_default, default_for

PAGES = Path(__file__).resolve().parent.parent.parent / "pages"
SETTINGS, ASK, ATTRIBUTION = "review/settings.py", "ask/ask.py", "inspect/attribution.py"
LARGER = "qwen2.5-coder-1.5b"
EMBEDDED_SCORES = "Scores: embedded (SmolLM2 135M)"
OFFER = f"{LARGER} writes better answers in about 15 s each; install it in Settings."


@pytest.fixture(autouse=True)
def scribe(monkeypatch, tmp_path):
    """A data folder with the example case, an empty corpus, and a model called scribe that is listed, never loaded."""
    monkeypatch.setenv("GROUNDWORK_MODELS", str(tmp_path / "models"))
    model_folder(tmp_path / "models" / "scribe")
    model_folder(registry.ENTRY.folder)
    cache.workbench.clear()
    take_in(cache.workbench().cases)
    Collection.create("notes", embedder=SimpleNamespace(name="none", dimensions=1))


def model_folder(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    (folder / "model.safetensors").write_bytes(b"")


def page(name, case=EXAMPLE, tab=""):
    """A page on its own with a case open, run; `tab` is the open one of a page that draws no other."""
    app = AppTest.from_file(str(PAGES / name), default_timeout=60)
    app.query_params["case"] = case
    if tab:
        app.session_state["refine_tab"] = tab
    app.run()
    assert not app.exception
    return app


def said(app):
    return " ".join(caption.value.replace("\\", "") for caption in app.caption)


def box(app, label):
    return next(field for field in (*app.selectbox, *app.text_input) if field.label == label)


@pytest.mark.parametrize("name", [SETTINGS, ASK, ATTRIBUTION])
def test_the_page_says_who_writes_who_scores_and_what_a_larger_model_brings(name):
    assert f"Writes: reader (quotes the documents). {EMBEDDED_SCORES}. {OFFER}" in said(page(name))


def test_nothing_is_offered_that_is_installed():
    model_folder(entry_of(LARGER).folder)
    assert models_line() == f"Writes: reader (quotes the documents). {EMBEDDED_SCORES}."
    assert models_line("scribe").endswith("Scores: scribe.")


def test_a_scorer_that_is_missing_is_said_to_be(monkeypatch, tmp_path):
    monkeypatch.setenv("GROUNDWORK_MODELS", str(tmp_path / "none"))
    monkeypatch.setattr(registry, "PACKAGE", "no_such_package")
    assert f"{EMBEDDED_SCORES}, which is not installed. {OFFER}" in models_line()


def test_a_catalogue_that_cannot_be_read_offers_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("GROUNDWORK_CATALOGUE", str(tmp_path / "none.toml"))
    assert models_line() == f"Writes: reader (quotes the documents). {EMBEDDED_SCORES}."


def test_defaults_are_chosen_in_settings_and_the_pages_begin_with_them():
    settings = page(SETTINGS)
    assert box(settings, "Scores").options[0] == "embedded (SmolLM2 135M)"
    for label in ("Writes answers", "Scores", "Judges"):
        box(settings, label).select("scribe").run()
        assert not settings.exception and not settings.error
        assert box(settings, label).value == "scribe"
    assert [default_for(role).model for role in ("writes", "scores", "judges")] == ["scribe"] * 3
    assert "Writes: scribe. Scores: scribe." in said(settings)
    assert box(page(ASK), "Written by").value == "scribe"
    assert box(page(ATTRIBUTION), "Scored by").value == "scribe"
    assert box(page("inspect/steps.py"), "Written by").value == "scribe"
    assert box(page("inspect/refinement.py", tab="Judge"), "Judge").value == "scribe"
    assert box(page("review/compare.py"), "Score both answers with").value == "scribe"
    facts = page("inspect/facts.py")
    assert box(facts, "Language model as a second opinion").value == "scribe"


def test_refinement_begins_with_what_ran_on_the_case_and_else_with_the_defaults():
    choose_default("writes", "scribe")
    choose_default("scores", "scribe")
    example = cache.workbench().cases.load(EXAMPLE)
    refinement = page("inspect/refinement.py")
    assert [box(refinement, label).value for label in ("Written by", "Scored by")] == [WRITER, ""]
    cache.workbench().cases.save(msgspec.structs.replace(example, id="bare", analyses=()))
    bare = page("inspect/refinement.py", "bare")
    assert [box(bare, label).value for label in ("Written by", "Scored by")] == ["scribe", "scribe"]
    for model, offered in (("embedded", "embedded"), ("a model that is gone", "scribe")):
        stamp = msgspec.structs.replace(example.stamp, model=model)
        cache.workbench().cases.save(msgspec.structs.replace(example, id=offered, analyses=(), stamp=stamp))
        assert box(page("inspect/refinement.py", offered), "Written by").value == offered


def test_without_a_choice_pages_begin_as_built_in():
    assert box(page(ASK), "Written by").value == "auto"
    assert box(page(ATTRIBUTION), "Scored by").value == "embedded"
    steps = box(page("inspect/steps.py"), "Written by")
    assert steps.value == "embedded" and steps.options[0] == "embedded (SmolLM2 135M)"


def test_a_default_that_is_gone_or_damaged_is_told_and_the_built_in_one_used(tmp_path):
    choose_default("scores", "scribe")
    (tmp_path / "models" / "scribe" / "config.json").unlink()
    attribution = page(ATTRIBUTION)
    assert box(attribution, "Scored by").value == "embedded"
    assert "The default scorer scribe is no longer available" in attribution.warning[0].value
    (home() / FILE).write_text("{")
    assert "cannot be read" in page(SETTINGS).warning[0].value


SWITCHING = f"""
import runpy
import streamlit as st

runpy.run_path("{PAGES}/" + st.session_state.get("page", "{ASK}"))
"""


def test_a_page_that_was_open_before_begins_from_the_new_default():
    app = AppTest.from_string(SWITCHING, default_timeout=60)
    app.query_params["case"] = EXAMPLE
    app.run()
    assert box(app, "Written by").value == "auto"
    app.session_state["page"] = SETTINGS
    box(app.run(), "Writes answers").select("scribe").run()
    app.session_state["page"] = ASK
    assert box(app.run(), "Written by").value == "scribe"


def test_a_model_that_went_before_it_was_chosen_is_told_once(tmp_path):
    settings = page(SETTINGS)
    (tmp_path / "models" / "scribe" / "config.json").unlink()
    box(settings, "Judges").select("scribe").run()
    assert "scribe cannot be the default judge" in settings.error[0].value
    assert box(settings, "Judges").value == ""
    assert not settings.run().error


def test_the_number_format_is_chosen_in_settings():
    app = page(SETTINGS)
    assert box(app, "Number format").value == "auto"
    box(app, "Number format").set_value("bfloat16").run()
    assert read_defaults()[0].dtype == "bfloat16" == box(page(SETTINGS), "Number format").value
