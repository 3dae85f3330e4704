"""The results file: each bench replaces its own section and leaves the others' alone."""

from __future__ import annotations

import importlib
from argparse import Namespace
from pathlib import Path

import pytest

from bench.results import DATA, arguments, publish, read_lines, table, write_section

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


def test_flags_have_the_type_of_their_default(monkeypatch):
    monkeypatch.setattr("sys.argv", ["bench", "--data", "sets", "--claims", "3", "--each", "--names", "a", "b"])
    asked = arguments("What it does.", data=DATA, claims=(250, "at most"), each=(False, ""), names=([], ""))
    assert vars(asked) == {"data": Path("sets"), "claims": 3, "each": True, "names": ["a", "b"], "write": False}


def test_a_flag_whose_default_is_a_type_is_required(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["bench"])
    with pytest.raises(SystemExit):
        arguments("What it does.", data=DATA, model={"help": "a name"})
    assert "required: --data" in capsys.readouterr().err


def test_blank_lines_of_a_file_are_skipped_and_only_newlines_end_one(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": "\u2028"}\n\n{"a": 2}\n', encoding="utf-8")
    assert read_lines(path) == [{"a": "\u2028"}, {"a": 2}]


@pytest.mark.parametrize("write", [True, False])
def test_a_section_is_printed_as_its_lines_come_and_saved_on_request(write, capsys, monkeypatch):
    saved = []
    monkeypatch.setattr("bench.results.write_section", lambda *section: saved.append(section))

    def rows():
        yield "CNN", 5
        assert capsys.readouterr().out.endswith("| CNN | 5 |\n")
        yield "XSum | 7"

    publish(Namespace(write=write), "own", "Own", "Told.", table("set | n", rows(), " --- "))
    text = "## Own\n\nTold.\n\n| set | n |\n| --- | --- |\n| CNN | 5 |\n| XSum | 7 |"
    assert saved == [("own", text)] * write
