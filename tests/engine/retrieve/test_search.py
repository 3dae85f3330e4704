"""Search: dense by brute force, BM25 by its words, hybrid as the sum of z-scores, alignment without repeats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, strategies as st

from engine.answer.context import consecutive_alignment, find_context, merged_text
from engine.core.errors import InputError, QuestionError
from engine.core.settings import Chunking, Retrieval
from engine.core.values import Document, Hit, Passage
from engine.corpus.chunking import passages
from engine.corpus.collection import Collection
from engine.models.embedder import ScriptedEmbedder
from engine.models.reranker import BestSentence
from engine.retrieve.bm25 import Postings, unknown_words
from engine.retrieve.search import rerank, rerank_hits, search, search_many

TEXTS = [
    "Iron rusts in damp air.",
    "Gold never rusts.",
    "Copper turns green in damp air.",
    "Salt water corrodes iron quickly.",
    "Glass is made from sand.",
]


@pytest.fixture
def collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Collection:
    monkeypatch.setenv("GROUNDWORK_HOME", str(tmp_path / "home"))
    path = tmp_path / "c.jsonl"
    path.write_text("\n".join(json.dumps({"_id": f"d{i}", "title": "", "text": t}) for i, t in enumerate(TEXTS)))
    made = Collection.create("c", ScriptedEmbedder())
    made.ingest([path])
    return made


def test_dense_is_the_cosine_in_order(collection: Collection) -> None:
    hits = search(collection, "damp iron air", Retrieval(k=99, mode="dense"))
    vectors = ScriptedEmbedder().embed(["damp iron air", *TEXTS])
    cosines = vectors[1:] @ vectors[0]
    assert [h.passage.text for h in hits] == [TEXTS[i] for i in np.argsort(-cosines, kind="stable")]
    assert [h.score for h in hits] == pytest.approx(sorted(cosines, reverse=True))
    assert len(hits) == len(TEXTS)


def test_bm25_finds_by_stem_and_a_foreign_question_finds_nothing_in_particular(collection: Collection) -> None:
    hits = search(collection, "rusting of golden things: gold", Retrieval(k=1, mode="bm25"))
    assert hits[0].passage.document == "d1"
    assert {h.score for h in search(collection, "qqq zzz", Retrieval(mode="bm25"))} == {0.0}


@pytest.mark.parametrize(
    ("question", "best"),
    [("release 2.0", 1), ("release 3", 2), ("vitamin C", 3), ("the child's vitamin", 3), ("2,500 vitamins", 4)],
)
def test_bm25_tells_numbers_and_words_of_one_letter_apart(question, best):
    texts = [
        "The release had parts, the vitamin B's and the s of the plural.",
        "Release 2.0 had 30 parts.",
        "Release 3 had 20 parts.",
        "A child needs vitamin C, and more.",
        "They sold 2,500 vitamins, or more of them, and then some other things too.",
    ]
    scores = Postings.of(texts).scores(question)
    assert int(scores.argmax()) == best


@pytest.mark.parametrize(
    ("question", "unknown"),
    [
        ("What is the orgin of rust?", [("orgin", "origin")]),
        ("What is the origin of the rusting?", []),
        ("Which Musk made 2.5 l of GPT-4 with elongations?", [("Musk", ""), ("2.5", ""), ("l", ""), ("GPT-4", "")]),
        ("How much do swimmers pay to enter?", [("swimmers", "")]),
        ("What is the orgiin in Itso?", [("orgiin", "origin"), ("Itso", "")]),
        ("Was it Mu\u0308ller who sold 2500?", []),
        ("Elon's mask?", [("Elon's", ""), ("mask", "")]),
        ("锈的起源是什么?", []),
        ("one two three four five six seven", [(w, "") for w in ["one", "two", "three", "four", "five"]]),
    ],
)
def test_words_that_no_document_has_come_with_the_nearest_one(
    collection: Collection, tmp_path: Path, question: str, unknown: list[tuple[str, str]]
) -> None:
    path = tmp_path / "more.md"
    path.write_text("# Rust\n\nIts origin, made by elongation of what it is made of. M\u00fcller sold 2,500.")
    collection.ingest([path])
    assert list(unknown_words(question, collection.folder, collection.snapshot())) == unknown


def test_hybrid_is_cosine_plus_a_fifth_of_relative_bm25(collection: Collection) -> None:
    hits = search(collection, "iron in damp air", Retrieval(k=5))
    best = max(h.parts["bm25"] for h in hits)
    for hit in hits:
        assert hit.score == pytest.approx(hit.parts["dense"] + 0.2 * hit.parts["bm25"] / best)
    assert hits[0].passage.document == "d0"
    foreign = search(collection, "qqq zzz", Retrieval(k=5))
    assert [h.score for h in foreign] == [h.parts["dense"] for h in foreign]


def test_many_equals_one_by_one(collection: Collection) -> None:
    questions = ["iron", "what is glass made from"]
    assert search_many(collection, questions) == [search(collection, q) for q in questions]


@pytest.mark.parametrize("mode", ["dense", "bm25"])
@pytest.mark.parametrize(
    ("names", "wanted"),
    [(("d3", "d0"), "d0 d3"), (("d4", "*4"), "d4"), (("D?",), "d0 d1 d2 d3 d4"), (("*",), "d0 d1 d2 d3 d4")],
)
def test_some_documents_are_searched_as_all_are_and_the_rest_left_out(
    collection: Collection, mode: Literal["dense", "bm25"], names: tuple[str, ...], wanted: str
) -> None:
    everything = search(collection, "damp iron air", Retrieval(mode=mode))
    hits = search(collection, "damp iron air", Retrieval(mode=mode, documents=names))
    assert hits == [hit for hit in everything if hit.passage.document in wanted.split()]


def test_a_document_that_is_not_there_is_told_with_the_nearest_names(collection: Collection) -> None:
    with pytest.raises(InputError, match=r"no document 'd9'\. Is it 'd"):
        search(collection, "iron", Retrieval(documents=("d1", "d9")))
    with pytest.raises(InputError, match="means any part of a name"):
        search(collection, "iron", Retrieval(documents=("xyz",)))
    with pytest.raises(InputError, match="no document"):  # brackets are letters
        search(collection, "iron", Retrieval(documents=("d[0-9]",)))


def test_documents_without_text_give_no_hits(collection: Collection) -> None:
    kind = {"title": "", "source": "n.txt", "media_type": "text/plain"}
    collection.add([Document(id="blank", text=" ", **kind), Document(id="full", text="Tin melts.", **kind)])
    for mode in ("dense", "bm25", "hybrid"):
        assert search(collection, "iron", Retrieval(mode=mode, documents=("blank",))) == []


@pytest.mark.parametrize("question", ["", "  \n", "x" * 100_000])
def test_questions_that_cannot_be_asked(collection: Collection, question: str) -> None:
    with pytest.raises(QuestionError):
        search(collection, question)


def test_an_empty_collection_gives_no_hits(collection: Collection) -> None:
    assert search(Collection.create("empty", ScriptedEmbedder()), "anything") == []


def hit(passage: Passage, score: float) -> Hit:
    return Hit(passage=passage, score=score)


def test_alignment_joins_neighbours_of_one_document() -> None:
    cut = passages(
        Document(id="d", title="", text="A a. B b. C c. D d. E e.", source="", media_type=""), Chunking(words=2)
    )
    other = passages(Document(id="e", title="", text="F f.", source="", media_type=""))
    sets = consecutive_alignment([hit(cut[3], 0.9), hit(other[0], 0.8), hit(cut[1], 0.5), hit(cut[0], 0.4)])
    assert [[p.ordinal for p in s.passages] for s in sets] == [[3], [0], [0, 1]]
    assert [s.score for s in sets] == [0.9, 0.8, 0.5]
    assert sets[2].text == "A a.\nB b."
    assert len(consecutive_alignment([hit(cut[3], 0.9), hit(cut[1], 0.5)], align_gap=2)) == 1


@given(
    words=st.integers(1, 5),
    overlap=st.integers(0, 4),
    picked=st.sets(st.integers(0, 30), min_size=1),
    gap=st.integers(1, 3),
)
def test_no_character_stands_twice(words: int, overlap: int, picked: set[int], gap: int) -> None:
    text = " ".join(f"w{i:03d}" for i in range(40))  # every word occurs once
    document = Document(id="d", title="", text=text, source="", media_type="")
    cut = passages(document, Chunking(method="words", words=words, overlap=overlap))
    chosen = [cut[i] for i in picked if i < len(cut)] or [cut[0]]
    for group in consecutive_alignment([hit(p, float(p.ordinal)) for p in chosen], gap):
        found = group.text.split()
        assert found == sorted({w for p in group.passages for w in p.text.split()})
        assert merged_text(group.passages) == group.text


def test_rerank_by_best_sentence() -> None:
    reranker = BestSentence(ScriptedEmbedder())
    long, short = "Iron rusts quickly. " + "Sand is fine. " * 20, "Iron is in the sand of the sea."
    scores = reranker.rank_scores("iron rusts quickly", [short, long, ""])
    assert scores[1] == pytest.approx(1.25, abs=1e-6)  # cosine 1 and all words
    assert scores[2] == -1.0
    cut = [passages(Document(id=t[-3:], title="", text=t, source="", media_type=""))[0] for t in (short, long)]
    sets = rerank("iron rusts quickly", consecutive_alignment([hit(p, 1.0) for p in cut]), reranker)
    assert sets[0].text.startswith("Iron rusts")
    ranked = rerank_hits("iron rusts quickly", [hit(p, 1.0) for p in cut], reranker)
    assert ranked[0].passage == cut[1]
    assert ranked[0].score == ranked[0].parts["rerank"]


def test_a_writers_passages_overlap_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDWORK_HOME", str(tmp_path / "home"))
    words = [f"w{i:03d}" for i in range(20)]
    (tmp_path / "words.txt").write_text(" ".join(words))
    made = Collection.create("c", ScriptedEmbedder(), Chunking(method="words", words=6, overlap=3))
    made.ingest([tmp_path / "words.txt"])
    found = find_context("w003 w010", made, BestSentence(ScriptedEmbedder()), Retrieval(k=9, mode="bm25", keep=9))
    assert sorted(word for passage in found.passages for word in passage.text.split()) == words
