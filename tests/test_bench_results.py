"""The results file: each bench replaces its own section and leaves the others' alone."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from bench.results import write_section

BENCHES = Path(__file__).parent.parent / "bench"


def test_sections_are_added_then_replaced_in_place(tmp_path):
    path = tmp_path / "RESULTS.md"
    write_section("first", "one \\1", path)
    write_section("second", "two", path)
    write_section("first", "changed", path)
    text = path.read_text()
    assert text.index("changed") < text.index("two")
    assert "one" not in text
    assert text.count("<!-- first -->") == text.count("<!-- /first -->") == 1
    write_section("first", "changed", path)
    assert path.read_text() == text


@pytest.mark.parametrize("path", sorted(BENCHES.glob("*.py")), ids=lambda path: path.stem)
def test_every_bench_finds_what_it_imports(path):
    """Nothing else does before somebody measures."""
    assert importlib.import_module(f"bench.{path.stem}")
