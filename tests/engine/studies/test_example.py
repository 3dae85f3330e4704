"""An example names what it lacks, and only that."""

from __future__ import annotations

from engine.core.values import Passage
from engine.corpus.worlds import GoldSpan
from engine.studies.example import NEEDS, Example, gold_in, lacks

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


class Corpus:
    """Three documents of two passages; reading one is counted."""

    def __init__(self):
        self.read = []
        self.passages = {
            name: [
                Passage(id=f"{name}@{i}", document=name, title="", ordinal=i, start=9 * i, end=9 * i + 9, text="x")
                for i in (0, 1)
            ]
            for name in ("a", "b", "c")
        }

    def rows_of(self, name):
        self.read.append(name)
        return enumerate(self.passages.get(name, ()))

    def rows(self, names):
        return {p.id: 0 for passages in self.passages.values() for p in passages if p.id in names}


def test_gold_is_looked_for_in_the_documents_that_are_named():
    corpus = Corpus()
    assert gold_in(BARE, corpus) == frozenset() and corpus.read == []
    example = Example(id="1", question="Who?", gold=("b", "c@1"), gold_spans=(GoldSpan("a", 4, 6),))
    assert gold_in(example, corpus) == {"a@0", "b@0", "b@1", "c@1"}
    assert sorted(corpus.read) == ["a", "b", "c@1"]


def test_an_example_survives_its_json_form():
    example = Example(id="1", question="Who?", gold_spans=(("d", 0, 4),), correct=0, options=("a", "b"))
    again = Example.from_dict(example.to_dict())
    assert again.gold_spans[0].document == "d"
    assert Example.from_dict(again.to_dict()) == again
