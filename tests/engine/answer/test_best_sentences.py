"""The best sentences as passages: frozen spans of their documents, best first, neighbours joined."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.answer.context import without_overlap
from engine.answer.quoting_reader import best_sentences, piece, whole_id
from engine.core.settings import SMALL_WRITER, Retrieval
from engine.core.values import Passage
from engine.models.embedder import load_embedder

TEXT = "Crude product is dissolved in hot water. It is left to cool. Crystals form overnight. They are washed with ice."
OTHER = "The kiln was built in 1874. Owls nest under the roof of the barn."


def passage(name: str, text: str, start: int = 100) -> Passage:
    name = f"{name}.md@ab12:0-9"
    return Passage(id=name, document=name, title="", ordinal=0, start=start, end=start + len(text), text=text)


@pytest.fixture(scope="module")
def found():
    return [passage("a", TEXT), passage("b", OTHER)]


@pytest.mark.parametrize("most", [1, 2, 3, 6])
def test_every_piece_is_a_span_of_its_document(found, most):
    documents = {p.document: " " * p.start + p.text for p in found}
    pieces = best_sentences("What are the crystals washed with?", found, load_embedder(), most)
    assert all(p.text == documents[p.document][p.start : p.end] for p in pieces)
    assert {whole_id(p) for p in pieces} <= {p.id for p in found}
    assert "washed with ice" in pieces[0].text


def test_neighbours_are_joined_and_nothing_is_given_twice(found):
    pieces = best_sentences("What are the crystals washed with?", found, load_embedder(), 6)
    assert sorted(p.text for p in pieces) == sorted([TEXT, OTHER])
    assert [p.id for p in pieces if p.text == TEXT] == [found[0].id]


def test_the_order_of_the_passages_does_not_matter(found):
    question = "When was the kiln built?"
    one = best_sentences(question, found, load_embedder(), 1)
    assert one == best_sentences(question, found[::-1], load_embedder(), 1)
    assert one[0].text == "The kiln was built in 1874."


def test_a_piece_by_hand(found):
    cut = piece(found[1], 4, 8)
    assert (cut.text, cut.start, cut.end, whole_id(cut)) == ("kiln", 104, 108, found[1].id)
    assert piece(found[1], 0, len(OTHER)) is found[1]


def test_headings_and_repeated_sentences_are_left_out():
    text = "Kilns\n\nThe kiln was built in 1874. The kiln was built in 1874."
    pieces = best_sentences("When was the kiln built?", [passage("k", text)], load_embedder(), 5)
    assert [p.text for p in pieces] == ["The kiln was built in 1874."]


def test_a_small_writer_is_given_few_by_default():
    assert Retrieval().sentences_for("embedded") == SMALL_WRITER == 1
    assert Retrieval().sentences_for("reader") == Retrieval().sentences_for("another") == 0
    assert replace(Retrieval(), sentences=4).sentences_for("another") == 4


def test_a_passage_that_lost_an_overlap_still_names_its_whole():
    first = Passage(id="k@ab12:0-20", document="k", title="", ordinal=0, start=0, end=20, text="The kiln was built. ")
    after = Passage(id="k@cd34:9-30", document="k", title="", ordinal=1, start=9, end=30, text="was built. Owls nest.")
    _, trimmed = without_overlap([first, after])
    assert (trimmed.id, trimmed.text) == ("k@cd34:9-30+11", "Owls nest.")
    assert whole_id(trimmed) == whole_id(piece(trimmed, 0, 4)) == after.id
