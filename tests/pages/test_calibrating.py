"""Settings: labelled pairs are uploaded, the verifier is calibrated on them, offered on Facts, and deleted."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from components import cache
from engine.models.calibration import own_calibrations
from tests.pages.test_added_models import press
from tests.pages.test_fact_controls import controls
from tests.pages.test_install_page import SCRIPT


def labelled(count: int) -> bytes:
    """Claims about counts, every other one wrong."""
    rows = [
        {
            "claim": f"Box {n} holds {n} coins.",
            "evidence": f"Box {n} holds {n + n % 2} coins.",
            "verdict": ("supportive", "editing_required")[n % 2],
        }
        for n in range(count)
    ]
    return "\n".join(map(json.dumps, rows)).encode()


@pytest.fixture
def settings():
    cache.analyses.clear()
    return AppTest.from_string(SCRIPT, default_timeout=120).run()


def calibrate(settings, data: bytes, name: str):
    settings.file_uploader(key="calibrate_file").upload("pairs.jsonl", data, "application/jsonl")
    settings.text_input(key="calibrate_name").set_value(name)
    return press(settings, "Calibrate")


def test_pairs_are_fitted_kept_offered_and_deleted(settings):
    calibrate(settings, labelled(60), "boxes")
    settings.session_state["groundwork_runs"]["calibration"].future.exception()
    settings.run()
    assert not settings.exception and not settings.error
    (fitted,) = own_calibrations()
    figures = next(one.proto.body for one in settings.get("html") if "Calibration error" in one.proto.body)
    assert "calibrated:boxes" in figures and f"now {fitted.after.calibration_error:.3f}" in figures
    offered = AppTest.from_function(controls, default_timeout=60).run().selectbox(key="facts_verifier")
    assert "calibrated:boxes" in offered.options
    settings.button(key="drop calibration boxes").click().run()
    assert own_calibrations() == [] and not settings.exception


def test_what_cannot_be_calibrated_says_why(settings):
    press(settings, "Calibrate")
    assert settings.warning[0].value == "Choose a file first."
    calibrate(settings, b'{"claim": "A.", "evidence": "B.", "verdict": "true"}', "a")
    said = settings.error[0].value.replace("\\", "")
    assert said == "Line 1: 'true' is not a verdict. Write one of: supportive, editing_required, irrelevant."
    calibrate(settings, labelled(10), "a")
    settings.session_state["groundwork_runs"]["calibration"].future.exception()
    assert "These are 10" in settings.run().error[0].value
    calibrate(settings, b"", "b")
    assert not any("These are 10" in error.value for error in settings.error)  # of the run before
    assert own_calibrations() == []
