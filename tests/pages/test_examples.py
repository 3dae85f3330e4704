from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

import components.cache
from engine.cases.bundled import AUDITED
from engine.cases.store import CaseStore
from engine.core.files import home


def draw() -> None:
    from components.frame import _examples

    _examples()


@pytest.fixture
def _empty_library(tmp_path, monkeypatch):
    monkeypatch.setenv("GROUNDWORK_HOME", str(tmp_path))
    components.cache.workbench.clear()
    yield
    components.cache.workbench.clear()


@pytest.mark.usefixtures("_empty_library")
def test_the_examples_stay_within_reach_once_one_was_opened():
    app = AppTest.from_function(draw, default_timeout=60).run()
    labels = [button.label for button in app.button]
    assert "Open the audited example" in labels and len(labels) == 4
    app.button[0].click().run()
    assert not app.exception
    assert CaseStore(home() / "cases.sqlite").has(AUDITED)
    assert [button.label for button in app.button] == labels
