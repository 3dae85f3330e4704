"""The results file: each bench replaces its own section and leaves the others' alone."""

from __future__ import annotations

from bench.results import write_section


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
