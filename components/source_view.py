"""A passage in its document: the exact sentence marked in its context, and for a PDF on a picture of its page."""

from __future__ import annotations

import base64
from bisect import bisect
from pathlib import Path

import streamlit as st

from components.cache import page_picture, snapshot_of
from components.html import escape, note, plain, show, tag, text_after, text_before
from engine.analyses.case_verdict import CaseVerdict, closest_sentence, source_sentence
from engine.core.errors import FileError, GroundworkError
from engine.core.text import Span
from engine.core.values import Case, Document, Passage, own_title
from engine.corpus.collection import Collection
from engine.corpus.page_picture import PagePicture
from engine.corpus.store import PDF, original_of
from engine.methods.are.values import Evidence

AROUND = 900  # characters of the document shown before and after the passage
GIVEN = "This source was given with the answer; the rest of its document is not stored."
CHANGED = "The document was changed or removed since the answer was written. This is the passage as it was."
NO_FILE = "The corpus does not store this PDF file. Add the file to the corpus again to see its page here."


def open_source(case: Case, number: int, sentence: int | None = None, verdict: CaseVerdict | None = None) -> None:
    """Open passage `number` where the answer's `sentence` (from 1) rests on it."""
    _open(case, case.passages[number - 1], source_sentence(case, number, sentence, verdict), number)


def open_evidence(case: Case, fact: str, one: Evidence) -> None:
    """Open the evidence of a fact, a passage of the case or of its corpus, at the sentence closest to the fact."""
    _open(case, _passage(case, one), closest_sentence(fact, one), one.number)


def _passage(case: Case, one: Evidence) -> Passage:
    """The passage with the text of the evidence; without a place in a document where nothing holds it any more."""
    given = case.passages[one.number - 1 : one.number] if one.number else ()
    known = next((passage for passage in (*given, *_in_corpus(case, one)) if passage.text == one.text), None)
    return known or Passage(
        id=one.passage, document=one.document, title=one.title, ordinal=0, start=0, end=len(one.text), text=one.text
    )


def _in_corpus(case: Case, one: Evidence) -> tuple[Passage, ...]:
    snapshot = snapshot_of(case.corpus)
    return tuple(snapshot.named([one.passage]).values()) if snapshot is not None else ()


@st.dialog("Source in its document", width="large")
def _open(case: Case, passage: Passage, span: Span | None, number: int | None) -> None:
    """Show the passage, numbered in the case or found in the corpus (None), with `span` of it marked."""
    found = _document(case, passage)
    page = _page(found[1], passage, span) if found else passage.page
    named = (f"{number}" if number else "Corpus", passage.label)
    place = f"{' · '.join(named if own_title(number, passage.label) else named[1:])}{f', page {page}' if page else ''}"
    show(tag("h3", escape(place), class_="gw-question"))
    if found is None:
        note(CHANGED if case.corpus else GIVEN)
        show(in_context(passage, span))
        return
    folder, document = found
    file = original_of(folder, document)
    if file is None or page is None:
        if document.media_type == PDF:
            note(NO_FILE)
        show(in_context(passage, span, document))
        return
    left, right = st.columns([3, 2], gap="large")
    with left:
        _draw_page(file, page, passage.text[slice(*span)] if span else passage.text, passage.label)
    with right:
        show(in_context(passage, span, document))


def in_context(passage: Passage, span: Span | None, document: Document | None = None) -> str:
    """The passage as HTML, characters `span` of it marked, with what is before and after it in the document."""
    start, end = span or (0, 0)
    marked = escape(passage.text[:start]) + tag("mark", escape(passage.text[start:end])) if span else ""
    inside = tag("span", marked + escape(passage.text[end:]), class_="gw-inside")
    before = text_before(document.text[: passage.start], AROUND) if document else ""
    after = text_after(document.text[passage.end :], AROUND) if document else ""
    text = tag("span", escape(before), class_="gw-around") + inside + tag("span", escape(after), class_="gw-around")
    return tag("div", text, class_="gw-context", tabindex="0", role="region", aria_label="Text of the document")


def _document(case: Case, passage: Passage) -> tuple[Path, Document] | None:
    """The folder of the case's corpus and the passage's document there, if it still holds the passage."""
    if case.corpus is None:
        return None
    try:
        collection = Collection.open(case.corpus)
        document = collection.snapshot().documents.get(passage.document)
    except GroundworkError:
        return None
    if document is None or document.text[passage.start : passage.end] != passage.text:
        return None
    return collection.folder, document


def _page(document: Document, passage: Passage, span: Span | None) -> int | None:
    """The page, from 1, that the marked characters begin on; None for a document without pages."""
    return bisect(document.pages, passage.start + (span[0] if span else 0)) or None


def _draw_page(file: Path, page: int, words: str, title: str) -> None:
    with st.spinner(f"Drawing page {page}"):
        try:
            picture = page_picture(str(file), page, words)
        except FileError as error:
            st.warning(plain(str(error)))
            return
    show(page_markup(picture, f"Page {page} of {title}"))
    if not picture.marks:
        st.caption("The words could not be located on this page.")


def page_markup(picture: PagePicture, said: str) -> str:
    """The page as HTML with its marks over it."""
    data = base64.b64encode(picture.png).decode("ascii")
    marks = (
        f"left:{100 * a:.2f}%;top:{100 * b:.2f}%;width:{100 * (c - a):.2f}%;height:{100 * (d - b):.2f}%"
        for a, b, c, d in picture.marks
    )
    image = tag("img", src=f"data:image/png;base64,{data}", alt=said)
    return tag("div", image + "".join(tag("i", style=style) for style in marks), class_="gw-page")
