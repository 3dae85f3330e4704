"""A source in its document: the sentence marked in its context, and for a PDF on a picture of its page."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from components.source_view import CHANGED, GIVEN, NO_FILE, in_context
from engine.analyses.case_verdict import source_sentence
from engine.answer.citations import annotate
from engine.core.settings import Chunking
from engine.core.values import Answer, Case, Stamp
from engine.corpus.collection import Collection
from engine.corpus.store import original_of
from engine.methods.are.values import Evidence
from engine.models.embedder import ScriptedEmbedder
from tests.engine.corpus.test_loaders import pdf_bytes

TEXT = "The tank holds 40 litres of brine. The pump was replaced in March 2021. Nobody was hurt."


@pytest.fixture
def case(tmp_path, monkeypatch):
    """A case that cites the second page of a PDF."""
    monkeypatch.setenv("GROUNDWORK_HOME", str(tmp_path / "home"))
    (tmp_path / "plant.pdf").write_bytes(pdf_bytes("A report on the plant.", TEXT))
    collection = Collection.create("plant", ScriptedEmbedder(), Chunking(words=20))
    collection.ingest([tmp_path / "plant.pdf"])
    passages = tuple(p for p in collection.snapshot().passages if "pump" in p.text)
    answer = annotate(Answer(text="Replaced: the pump, in March 2021 [cite_1]."), 1)
    stamp = Stamp(model="reader")
    return Case(id="case", question="What?", passages=passages, answer=answer, stamp=stamp, corpus="plant")


def opened(case, fact="", one=None):
    """The dialog of the first passage; of a fact's evidence where one is given."""

    def draw(case, fact, one):
        from components.source_view import open_evidence, open_source

        if one is None:
            open_source(case, 1)
        else:
            open_evidence(case, fact, one)

    app = AppTest.from_function(draw, args=(case, fact, one), default_timeout=120).run()
    assert not app.exception
    return " ".join(str(element.proto) for element in app.get("html")).replace("\\'", "'")


def test_the_sentence_that_a_citation_rests_on_is_found(case):
    text = case.passages[0].text
    start, end = source_sentence(case, 1, None, None)
    assert text[start:end] == "The pump was replaced in March 2021."
    quoted = replace(case, answer=replace(case.answer, quotes=((0, 1, 0, 3),)))
    assert source_sentence(quoted, 1, 1, None) == (0, 3)
    assert source_sentence(replace(case, answer=Answer(text="")), 1, None, None) is None


def test_the_page_is_drawn_with_the_sentence_marked_and_the_text_next_to_it(case):
    drawn = opened(case)
    assert "page 2" in drawn
    assert 'alt="Page 2 of plant"' in drawn.replace('\\"', '"')
    assert "data:image/png;base64," in drawn
    (left, top, width) = map(
        float, re.search(r"<i style=.{1,2}left:([\d.]+)%;top:([\d.]+)%;width:([\d.]+)%", drawn).groups()
    )
    assert 20 < left < 60 and 5 < top < 10 and 10 < width < 60
    assert "<mark>The pump was replaced in March 2021.</mark>" in drawn


@pytest.mark.parametrize("source", ["case", "corpus"])
def test_the_evidence_of_a_fact_opens_at_the_sentence_closest_to_it(case, source):
    (passage,) = case.passages
    one = Evidence(
        text=passage.text,
        source=source,
        passage=passage.id,
        document=passage.document,
        title=passage.title,
        number=1 if source == "case" else None,
    )
    drawn = opened(case, "The tank holds 40 litres", one)
    assert f"{'1' if source == 'case' else 'Corpus'} · plant, page 2" in drawn
    assert "<img" in drawn
    assert "<mark>The tank holds 40 litres of brine.</mark>" in drawn
    gone = opened(case, "The tank holds 40 litres", replace(one, passage="gone", text="The tank holds 40 litres. No."))
    assert CHANGED in gone and "<mark>The tank holds 40 litres.</mark>" in gone


def test_what_has_no_picture_says_why_in_one_line(case):
    collection = Collection.open("plant")
    (document,) = collection.snapshot().documents.values()
    original_of(collection.folder, document).unlink()
    drawn = opened(case)
    assert NO_FILE in drawn and "<img" not in drawn
    assert "A report on the plant." in drawn  # what is before the passage
    assert GIVEN in opened(replace(case, corpus=None))
    assert CHANGED in opened(replace(case, corpus="gone"))
    changed = replace(case.passages[0], text=case.passages[0].text.replace("pump", "tank"))
    assert CHANGED in opened(replace(case, passages=(changed,)))


def test_text_of_a_document_is_no_markup(case):
    hostile = replace(case.passages[0], text="<b>Bold</b> words.")
    assert "<mark>&lt;b&gt;Bold&lt;/b&gt;</mark>" in in_context(hostile, (0, 11))
