from __future__ import annotations

from pathlib import Path

import pytest

from components.serve import server_options


def test_only_this_machine_is_served_unless_an_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ADDRESS", raising=False)
    assert server_options(8501)["server_address"] == "127.0.0.1"
    monkeypatch.setenv("ADDRESS", "0.0.0.0")
    assert server_options(8501) == {"server_port": 8501, "server_headless": True, "server_address": "0.0.0.0"}


def test_the_container_names_every_address() -> None:
    assert "ADDRESS=0.0.0.0" in (Path(__file__).parents[2] / "Containerfile").read_text(encoding="utf-8")
