"""The controls of a check: which verifiers are offered, and what to do for one whose model is not installed."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from engine.models.catalogue import entry_of
from engine.models.verifier import VERIFIERS


def controls() -> None:
    import streamlit as st

    from components.fact_controls import fact_controls

    asked = fact_controls()
    st.json({"verifier": asked.verifier, "decomposer": asked.decomposer})


@pytest.fixture
def app(tmp_path, monkeypatch) -> AppTest:
    monkeypatch.setenv("GROUNDWORK_MODELS", str(tmp_path / "models"))
    return AppTest.from_function(controls, default_timeout=60).run()


def test_a_verifier_whose_model_is_missing_says_how_to_install_it(app):
    verifier = app.selectbox(key="facts_verifier")
    assert [option.split(" (")[0] for option in verifier.options] == list(VERIFIERS)
    assert not [caption for caption in app.caption if "install" in caption.value.lower()]
    verifier.set_value("large").run()
    assert app.json[0].value == '{"verifier": "large", "decomposer": "rules"}'
    (said,) = [caption.value for caption in app.caption if "install" in caption.value.lower()]
    assert VERIFIERS["large"] in said


def test_an_installed_model_that_splits_better_than_the_rules_is_the_default(app):
    folder = entry_of("qwen2.5-coder-1.5b").folder
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"")
    decomposer = AppTest.from_function(controls, default_timeout=60).run().selectbox(key="facts_decomposer")
    assert decomposer.options == ["qwen2.5-coder-1.5b", "rules"]
    assert decomposer.value == "qwen2.5-coder-1.5b"


def test_every_verifier_runs_on_a_model_of_the_catalogue():
    assert [entry_of(base).name for base in VERIFIERS.values() if base] == [base for base in VERIFIERS.values() if base]
