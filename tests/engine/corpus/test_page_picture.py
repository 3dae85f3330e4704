"""Originals of PDF files are stored with the collection, and a page of one is drawn with the words marked."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from engine.core.errors import FileError
from engine.corpus import page_picture
from engine.corpus.collection import Collection
from engine.corpus.page_picture import draw_page, place_of, squeezed
from engine.corpus.store import original_of, originals_size
from engine.models.embedder import ScriptedEmbedder
from tests.engine.corpus.test_loaders import pdf_bytes

PUMP = "The pump was replaced in March 2021."


@pytest.fixture
def paper(tmp_path):
    path = tmp_path / "paper.pdf"
    path.write_bytes(pdf_bytes("The first page.", f"Notes. {PUMP} The end."))
    return path


def size(picture):
    return Image.open(io.BytesIO(picture.png)).size


def dark(picture, left, top, right, bottom):
    """How much ink there is within [left, right) x [top, bottom), in shares of the picture."""
    image = Image.open(io.BytesIO(picture.png)).convert("L")
    width, height = image.size
    part = image.crop((int(left * width), int(top * height), round(right * width), round(bottom * height)))
    return sum(part.histogram()[:128])


def test_words_are_marked_where_they_are_on_the_page(paper):
    picture = draw_page(paper, 2, "The pump was re-\nplaced in March 2021.")
    (mark,) = picture.marks
    left, top, right, bottom = mark
    # 12 points of Helvetica from x = 72 on, base line 720 of 792: the sentence follows "Notes. ".
    assert 72 / 612 < left < 0.25 and left + 0.2 < right < 0.6
    assert (792 - 732) / 792 < top < bottom < (792 - 715) / 792
    # All the ink of the page is in its one line, some of it before the mark and some behind.
    whole = dark(picture, 0, 0, 1, 1)
    assert 0.5 * whole < dark(picture, *mark) < 0.9 * whole
    assert dark(picture, 0, 0, 1, top - 0.01) == dark(picture, 0, bottom + 0.01, 1, 1) == 0
    assert draw_page(paper, 1, PUMP).marks == ()


def test_a_turned_page_is_marked_where_its_words_are(paper):
    from pypdf import PdfWriter

    writer = PdfWriter(clone_from=paper)
    writer.pages[1].rotate(90)
    with paper.open("wb") as file:
        writer.write(file)
    picture = draw_page(paper, 2, PUMP)
    width, height = size(picture)
    assert width > height
    (mark,) = picture.marks
    assert 0.5 * dark(picture, 0, 0, 1, 1) < dark(picture, *mark)


def test_a_picture_has_no_more_pixels_than_the_limit(tmp_path):
    from pypdf import PdfWriter

    writer = PdfWriter()
    writer.add_blank_page(width=100, height=14_400)
    path = tmp_path / "long.pdf"
    writer.write(path)
    width, height = size(draw_page(path, 1))
    assert 0 < width * height <= 1.01 * page_picture.PIXELS


@pytest.mark.parametrize(("data", "page"), [(b"%PDF-1.4 nothing", 1), (pdf_bytes("One."), 2), (pdf_bytes("One."), 0)])
def test_what_cannot_be_drawn_is_said(tmp_path, data, page):
    path = tmp_path / "bad.pdf"
    path.write_bytes(data)
    with pytest.raises(FileError, match=f"Page {page} cannot be drawn"):
        draw_page(path, page)


def test_words_are_found_whatever_breaks_them():
    text = "A scienti\ufb01c note,\nhy-\nphenated; more."
    start, end = place_of("scientific note, hyphenated", text)
    assert text[start:end] == "scienti\ufb01c note,\nhy-\nphenated"
    # A sentence that goes on overleaf is marked as far as it is here.
    start, end = place_of("hyphenated; more. And what is said on the next page of it.", "x hyphenated; more.") or (0, 0)
    assert (start, end) == (0, 0)  # too little of it is here to be sure
    here = "x The beginning of a long sentence that goes on"
    start, end = place_of("The beginning of a long sentence that goes on overleaf", here)
    assert here[start:].startswith("The beginning of a long sentence")
    assert squeezed("É-2 ") == ("é2", [0, 2])


def test_originals_are_stored_with_the_collection_and_go_with_their_document(tmp_path, paper, monkeypatch):
    monkeypatch.setenv("GROUNDWORK_HOME", str(tmp_path / "home"))
    (tmp_path / "note.txt").write_text("A note.")
    collection = Collection.create("papers", ScriptedEmbedder())
    collection.ingest([paper, tmp_path / "note.txt"])
    documents = collection.snapshot().documents
    first = original_of(collection.folder, documents["paper.pdf"])
    assert first.read_bytes() == paper.read_bytes()
    assert original_of(collection.folder, documents["note.txt"]) is None
    assert originals_size(collection.folder) == len(paper.read_bytes())

    # A collection from before has none; the same file again changes nothing else.
    first.unlink()
    assert originals_size(collection.folder) == 0
    assert collection.ingest([paper]).unchanged == 1
    assert original_of(collection.folder, documents["paper.pdf"]).read_bytes() == paper.read_bytes()

    paper.write_bytes(pdf_bytes("Another text."))
    assert collection.ingest([paper]).replaced == 1
    assert not first.exists()
    assert originals_size(collection.folder) == len(paper.read_bytes())
