"""Passages: exact offsets, budgets, ids, and nothing lost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from engine.core.settings import Chunking
from engine.core.values import Document, DocumentSection, sha256
from engine.corpus.chunking import passages
from engine.corpus.collection import embedding_text

TEXT = "One two three. Four five.\n\nSix seven eight nine. Ten."


def document(text: str, **more: object) -> Document:
    return Document(id="d", title="T", text=text, source="d", media_type="text/plain", **more)  # type: ignore[arg-type]


def test_whole_sentences_to_the_budget() -> None:
    cut = passages(document(TEXT), Chunking(words=5))
    assert [p.text for p in cut] == ["One two three. Four five.", "Six seven eight nine. Ten."]
    assert [p.ordinal for p in cut] == [0, 1]
    assert cut[1].id == f"d@{sha256(TEXT)[:10]}:27-53"


def test_words_and_overlap() -> None:
    blocks = passages(document("a b c d e f g"), Chunking(method="words", words=3))
    assert [p.text for p in blocks] == ["a b c", "d e f", "g"]
    overlapping = passages(document("a b c d e f g"), Chunking(method="words", words=3, overlap=1))
    assert [p.text for p in overlapping] == ["a b c", "c d e", "e f g"]


def test_headings_start_passages() -> None:
    text = "Intro here.\n\nHeat\n\nHeat it well. Stop.\n\nCool\n\nCool it."
    sections = (DocumentSection(start=13, level=1, title="Heat"), DocumentSection(start=40, level=1, title="Cool"))
    cut = passages(document(text, sections=sections), Chunking(method="headings", words=50))
    assert [p.text.split("\n")[0] for p in cut] == ["Intro here.", "Heat", "Cool"]
    assert len(passages(document(text, sections=sections), Chunking(method="headings", words=3))) == 5


def test_what_says_little_alone_stays_with_what_follows() -> None:
    text = "One two three.\n\nHeat\n\nHeat it well.\nWhy?\nIt is cold.\n\nWho | Fee\nAnn | 4\nBen | 9\n\nEnd it now."
    assert [p.text for p in passages(document(text), Chunking(words=6))] == [
        "One two three.",
        "Heat\n\nHeat it well.",
        "Why?\nIt is cold.",
        "Who | Fee\nAnn | 4",  # a table that is too long for one passage
        "Ben | 9\n\nEnd it now.",
    ]


def test_a_turn_of_a_transcript_stays_with_its_speaker_and_a_reply_with_its_question() -> None:
    text = "Q: You left. It was May.\nP: Yes. It hurt.\nQ: Why?\nP: Money. It was little. I had none."
    assert [p.text for p in passages(document(text), Chunking(words=11))] == [
        "Q: You left. It was May.\nP: Yes. It hurt.",
        "Q: Why?\nP: Money. It was little. I had none.",
    ]


def test_a_passage_within_a_turn_has_its_speaker_and_names_it() -> None:
    text = "Q: Why?\nP: It was May. I had no bus. It hurt.\nQ: And now?\nP: I rest."
    cut = passages(document(text), Chunking(words=6))
    assert [(p.text, p.speaker) for p in cut] == [
        ("Q: Why?\nP: It was May.", ""),
        ("I had no bus. It hurt.", "P"),
        ("Q: And now?\nP: I rest.", ""),
    ]
    assert [p.label for p in cut[:2]] == ["T", "T (P continues)"]
    assert embedding_text(cut[1]) == "T (P continues)\nI had no bus. It hurt."
    assert {p.speaker for p in passages(document(TEXT), Chunking(words=5))} == {""}


def test_page_of_a_passage() -> None:
    cut = passages(document("First page.\n\nSecond page.", pages=(0, 13)), Chunking(words=2))
    assert [p.page for p in cut] == [1, 2]


def test_one_megabyte_line_is_cut_at_white_space() -> None:
    text = "word " * 200_000
    cut = passages(document(text), Chunking(words=100))
    assert max(len(p.text) for p in cut) <= 4_000
    assert "".join(p.text for p in cut).count("word") == 200_000
    assert max(len(p.text) for p in passages(document("x" * 50_000))) <= 4_000


@pytest.mark.parametrize("method", ["sentences", "words", "headings"])
@given(
    text=st.text(alphabet=st.sampled_from(list("abC. \n1?")), max_size=200),
    words=st.integers(1, 12),
    overlap=st.integers(0, 12),
)
def test_offsets_are_exact_and_nothing_is_lost(method: str, text: str, words: int, overlap: int) -> None:
    source = document(text, sections=(DocumentSection(start=len(text) // 2, level=1, title="x"),))
    cut = passages(source, Chunking(method=method, words=words, overlap=overlap))  # type: ignore[arg-type]
    assert all(p.text == text[p.start : p.end] != "" for p in cut)
    covered = {i for p in cut for i in range(p.start, p.end)}
    assert {i for i, c in enumerate(text) if not c.isspace()} <= covered
    assert [p.start for p in cut] == sorted({p.start for p in cut})
    if overlap == 0:
        assert all(a.end <= b.start for a, b in pairwise(cut))
