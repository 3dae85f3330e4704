"""An example names what it lacks, and only that."""

from __future__ import annotations

from engine.core.values import Passage
from engine.studies.example import NEEDS, Example, lacks

BARE = Example(id="1", question="Who?")


def passage(relevant: bool | None) -> Passage:
    return Passage(id="p", document="d", title="", ordinal=0, start=0, end=1, text="x", relevant=relevant)


def test_a_bare_example_lacks_everything_else():
    assert lacks(BARE, NEEDS) == tuple(NEEDS)
    assert lacks(BARE, []) == ()


def test_only_what_is_missing_is_named():
    example = Example(id="1", question="Who?", passages=(passage(True), passage(None)), domain="law", spans=())
    asked = ["passages", "relevance labels", "a domain", "labelled spans", "planted errors"]
    assert lacks(example, asked) == ("relevance labels", "planted errors")


def test_an_example_survives_its_json_form():
    example = Example(id="1", question="Who?", gold_spans=(("d", 0, 4),), correct=0, options=("a", "b"))
    again = Example.from_dict(example.to_dict())
    assert again.gold_spans[0].document == "d"
    assert Example.from_dict(again.to_dict()) == again
