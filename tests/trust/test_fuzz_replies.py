"""Thousands of made-up replies and files into every parser; `python -m tests.trust.fuzz_replies` does a million."""

from __future__ import annotations

import random

import pytest

from engine.core.errors import RecordError
from tests.trust import fuzz_replies


def test_every_parser_reads_or_refuses_thousands_of_inputs():
    found = fuzz_replies.run(3_300, 7)
    assert found["failures"] == []
    assert found["read"] > 1_000 and found["refused"] > 300
    assert found["read"] + found["refused"] == 3_300


def test_a_parser_that_fails_is_found(monkeypatch):
    def brittle(text):
        if "[" in text:
            raise IndexError("no bracket expected")
        raise RecordError("refused")

    monkeypatch.setitem(fuzz_replies.PARSERS, "brittle", brittle)
    found = fuzz_replies.run(50, 7, ("brittle",))
    assert 0 < found["failed"] < 50 and found["refused"] == 50 - found["failed"]
    again = found["failures"][0]
    assert "[" in fuzz_replies.made(random.Random(f"{again['seed']}:{again['number']}"))


def test_a_parser_that_hangs_is_found(monkeypatch):
    def hangs(text):
        while True:
            pass

    monkeypatch.setattr(fuzz_replies, "SECONDS", 1)
    monkeypatch.setitem(fuzz_replies.PARSERS, "hangs", hangs)
    assert "TimeoutError" in fuzz_replies.run(1, 7, ("hangs",))["failures"][0]["error"]


@pytest.mark.parametrize("name", [n for n in fuzz_replies.PARSERS if n not in ("importers", "decomposer")])
@pytest.mark.parametrize("part", ["(", "**", "1. ", "Answer: ", "[cite_", "```", " ", '"', "the ", "a.b ", "\n\n"])
def test_one_part_a_hundred_thousand_times_ends(name, part, monkeypatch):
    """Where the cost is quadratic, 10^5 parts run into the alarm."""
    monkeypatch.setattr(fuzz_replies, "made", lambda rng: part * 100_000)
    assert fuzz_replies.run(1, 7, (name,))["failures"] == []
