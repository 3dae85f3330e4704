"""Collections larger than memory behave like small ones, row by row: streamed, resumed, replaced."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import bm25s
import numpy as np
import pytest

from engine.core.errors import Cancelled, CorpusError, InputError
from engine.core.files import scattered
from engine.core.progress import Watch
from engine.core.settings import Chunking, Retrieval
from engine.core.text import stemmer
from engine.core.values import Document
from engine.corpus import cells, collection, large
from engine.corpus.collection import Collection, embedding_text, health
from engine.models.embedder import ScriptedEmbedder
from engine.retrieve import bm25
from engine.retrieve.search import search

WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in ("n", "ral", "st")]
CHUNKING = Chunking(words=12)


class Counting(ScriptedEmbedder):
    """Counts the passages that it embeds, and stops before one too many."""

    def __init__(self, most: int = 10**9) -> None:
        super().__init__()
        self.most, self.given = most, 0

    def embed_passages(self, texts, watch=None):
        if self.given + len(texts) > self.most:
            raise Cancelled("Stopped.")
        self.given += len(texts)
        return self.embed(texts)


def documents(count: int, seed: int = 1) -> Iterator[Document]:
    rng = random.Random(seed)
    for number in range(count):
        sentences = [" ".join(rng.choices(WORDS, k=rng.randint(3, 9))).capitalize() + "." for _ in range(4)]
        text = f"Nr {number} — ż.\n" + " ".join(sentences)
        yield Document(id=f"d{number}", title=f"Title {number % 7}", text=text, source="s", media_type="text/plain")


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("GROUNDWORK_HOME", str(tmp_path / "home"))


@pytest.fixture
def lowered(monkeypatch):
    """Collections of more than 20 passages are large, and 8 passages make a batch."""
    monkeypatch.setattr(large, "FROM", 20)
    monkeypatch.setattr(bm25, "_KEPT_FROM", 20)
    monkeypatch.setattr(collection, "PIECE", 8)


def made(name: str, found, embedder=None) -> Collection:
    corpus = Collection.create(name, embedder or Counting(), CHUNKING)
    corpus.add(found)
    return corpus


@pytest.fixture
def both(monkeypatch):
    """The same documents in a collection held in memory and in one that is not."""
    small = made("small", documents(60))
    bm25.index_of(small.folder, small.snapshot())
    assert not list(small.folder.glob("generation-*/bm25"))
    monkeypatch.setattr(large, "FROM", 20)
    monkeypatch.setattr(bm25, "_KEPT_FROM", 20)
    monkeypatch.setattr(collection, "PIECE", 8)
    return small, made("large", documents(60))


def test_the_passages_of_every_document_are_found_in_one_walk(both):
    """The ingest of many small documents took a time that grew with their square."""
    walks = []

    class Walked(tuple):
        def __iter__(self):
            walks.append(len(self))
            return super().__iter__()

    held = both[0].snapshot()
    walked = replace(held, passages=Walked(held.passages))
    found = [part for name in held.documents for part in walked.rows_of(name)]
    assert found == list(enumerate(held.passages)) and list(walked.rows_of("nobody")) == []
    assert list(walked.spans()) == list(both[1].snapshot().spans())
    assert walks == [len(held.passages)]


def test_a_large_collection_reads_as_a_small_one(both):
    small, stored = (corpus.snapshot() for corpus in both)
    assert isinstance(stored.passages, large.StoredPassages) and isinstance(small.passages, tuple)
    assert tuple(stored.passages) == small.passages
    assert dict(stored.documents) == small.documents
    assert len(stored.documents) == 60 and "d7" in stored.documents and stored.documents.get("d60") is None
    rows = np.random.default_rng(0).permutation(len(small.passages))[:25]
    assert [stored.passages[row] for row in rows] == [small.passages[row] for row in rows]
    assert stored.passages[-1] == small.passages[-1]
    assert stored.passages[3:6] == list(small.passages[3:6])
    with pytest.raises(IndexError):
        stored.passages[len(small.passages)]
    np.testing.assert_array_equal(stored.vectors, small.vectors)
    assert list(stored.rows_of("d5")) == list(small.rows_of("d5")) != []
    asked = [p.id for p in small.passages[10:20]] + ["d5@0000000000:0-9", "nobody"]
    assert stored.rows(asked) == small.rows(asked) == {p.id: 10 + i for i, p in enumerate(small.passages[10:20])}
    assert list(stored.spans()) == list(small.spans())


@pytest.mark.parametrize("mode", ["dense", "bm25", "hybrid"])
def test_a_large_collection_is_searched_as_a_small_one(both, mode):
    for question in ("ban gral fost", "nothing of it", "kun kun dest Title 3", "nr 41"):
        small, stored = (search(c, question, Retrieval(k=6, mode=mode)) for c in both)
        assert [h.passage for h in stored] == [h.passage for h in small]
        assert [h.score for h in stored] == pytest.approx([h.score for h in small], abs=1e-5)


def test_postings_equal_the_librarys_own_index(both, tmp_path, monkeypatch):
    texts = [embedding_text(p) for p in both[0].snapshot().passages] + ["", "of the and"]
    own = bm25s.BM25()
    own.index(bm25s.tokenize(texts, **bm25._HOW, stemmer=stemmer()), show_progress=False)
    monkeypatch.setattr(bm25, "_AT_ONCE", 7)  # several batches, in reading and in writing
    bm25.write_postings(tmp_path, iter(texts), len(texts))
    stored, held = bm25.Postings.load(tmp_path), bm25.Postings.of(texts)
    rows = np.array([0, 3, 40, len(texts) - 1])
    questions = ("ban", "ban ban gral", "title 3 kost bun", "zzz", "the", "nr 41 dust fan gral kest")
    for question, index in product(questions, (stored, held)):
        words = bm25s.tokenize([question], **bm25._HOW, stemmer=stemmer(), return_ids=False)[0]
        known = [word for word in words if word in own.vocab_dict]
        expected = own.get_scores(known) if known else np.zeros(len(texts), np.float32)
        np.testing.assert_allclose(index.scores(question), expected, atol=1e-5)
        np.testing.assert_allclose(index.scores(question, rows), expected[rows], atol=1e-5)
        for count in (1, 5, 50):
            best = index.best(question, count)
            np.testing.assert_allclose(expected[best], np.sort(expected)[::-1][:count], atol=1e-5)
            assert len(set(best.tolist())) == count


@pytest.mark.parametrize("looked_up", [0, bm25._LOOKED_UP, 10**9])
def test_the_best_by_words_are_the_same_whether_words_are_added_up_or_looked_up(monkeypatch, looked_up):
    monkeypatch.setattr(bm25, "_LOOKED_UP", looked_up)
    rng = np.random.default_rng(4)
    drawn = rng.zipf(1.3, size=(2_000, 12)) % 400
    texts = [" ".join(f"w{number}q" for number in row) for row in drawn]
    index = bm25.Postings.of(texts)
    for text, count in product(texts[::100], (1, 10, 200)):
        scores, best = index.scores(text), index.best(text, count)
        np.testing.assert_allclose(scores[best], np.sort(scores)[::-1][:count], atol=1e-4)


def test_scattered_rows_of_a_mapped_file_are_those_of_the_array(tmp_path):
    whole = np.arange(3_000, dtype=np.float32).reshape(1_000, 3)
    np.save(tmp_path / "rows.npy", whole)
    rows = np.array([0, 7, 512, 999])
    for array in (whole, np.load(tmp_path / "rows.npy", mmap_mode="r")):
        np.testing.assert_array_equal(scattered(array, rows), whole[rows])
        np.testing.assert_array_equal(array, whole)


def test_a_word_index_that_cannot_be_written_is_held_in_memory(lowered):
    corpus = made("c", documents(30))
    place = next(corpus.folder.glob("generation-*"))
    (place / "bm25.new").write_text("in the way")
    assert bm25.index_of(corpus.folder, corpus.snapshot()).size == len(corpus.snapshot().passages)
    assert not (place / "bm25").exists()


def test_a_word_index_made_of_other_words_is_made_again(lowered):
    corpus = made("c", documents(30))
    bm25.index_of(corpus.folder, corpus.snapshot())
    said = next(corpus.folder.glob("generation-*")) / "bm25" / "words.txt"
    said.write_text(r"\w\w+")
    bm25._INDEXES.clear()
    bm25.index_of(corpus.folder, corpus.snapshot())
    assert said.read_text() != r"\w\w+"


def test_an_ingest_that_was_stopped_goes_on_where_it_was(lowered):
    whole = made("whole", documents(60), plain := Counting())
    stopping = Collection.create("c", Counting(most=50), CHUNKING)
    with pytest.raises(Cancelled):
        stopping.add(documents(60))
    assert stopping.snapshot().passages == ()
    again = Counting()
    report = Collection.open("c", again).add(documents(60))
    assert (report.added, report.replaced, report.documents) == (60, 0, 60)
    assert again.given <= plain.given - 40
    first, second = Collection.open("c").snapshot(), whole.snapshot()
    assert tuple(first.passages) == tuple(second.passages)
    np.testing.assert_array_equal(first.vectors, second.vectors)
    assert first.manifest.hashes["vectors.npy"] == second.manifest.hashes["vectors.npy"]
    assert not (stopping.folder / "staged").exists()


def test_other_documents_after_a_stopped_ingest_leave_nothing_of_it(lowered):
    with pytest.raises(Cancelled):
        Collection.create("c", Counting(most=50), CHUNKING).add(documents(60))
    other = list(documents(30, seed=2))
    corpus = Collection.open("c", Counting())
    corpus.add([*list(documents(3)), *other[3:]])
    found = corpus.snapshot()
    assert dict(found.documents) == {d.id: d for d in [*documents(3), *other[3:]]}
    np.testing.assert_array_equal(found.vectors, ScriptedEmbedder().embed([embedding_text(p) for p in found.passages]))


@pytest.mark.parametrize("damage", ["vectors cut off", "text overwritten", "vectors too long"])
def test_a_damaged_stage_is_not_gone_on_with(lowered, damage):
    with pytest.raises(Cancelled):
        Collection.create("c", Counting(most=50), CHUNKING).add(documents(60))
    stage = Collection.open("c").folder / "staged"
    vectors = stage / large.VECTORS
    match damage:
        case "vectors cut off":
            vectors.write_bytes(vectors.read_bytes()[:-40])
        case "vectors too long":  # as after a kill between the vectors and the texts of a batch
            vectors.write_bytes(vectors.read_bytes() + b"\1" * 999)
        case "text overwritten":
            (stage / large.TEXT).write_bytes(b"no database" * 1000)
    corpus = Collection.open("c", Counting())
    corpus.add(documents(60))
    found = corpus.snapshot()
    assert [d.id for d in found.documents.values()] == [f"d{i}" for i in range(60)]
    np.testing.assert_array_equal(found.vectors, ScriptedEmbedder().embed([embedding_text(p) for p in found.passages]))


def test_changed_documents_take_the_place_of_the_old_ones(lowered):
    corpus = made("c", documents(60), counting := Counting())
    assert corpus.add(documents(60)).unchanged == 60
    before, embedded = corpus.manifest, counting.given
    assert corpus.add(documents(40)).unchanged == 40
    assert corpus.manifest == before and counting.given == embedded
    changed = [
        Document(id="d3", title="Title 3", text="Quite another text.", source="s", media_type="text/plain"),
        Document(id="new", title="", text="A new text.", source="s", media_type="text/plain"),
    ]
    report = corpus.add(changed)
    assert (report.added, report.replaced, report.unchanged, report.documents) == (1, 1, 0, 61)
    assert counting.given == embedded + 2
    found = corpus.snapshot()
    assert dict(found.documents) == {d.id: d for d in [*documents(60), *changed]}
    np.testing.assert_array_equal(found.vectors, ScriptedEmbedder().embed([embedding_text(p) for p in found.passages]))
    assert search(corpus, "quite another", Retrieval(k=1, mode="bm25"))[0].passage.document == "d3"
    assert len(list(corpus.folder.glob("generation-*"))) == 1


def test_a_small_collection_grows_large_and_keeps_what_it_has(monkeypatch):
    corpus = made("c", documents(30), counting := Counting())
    had = counting.given
    monkeypatch.setattr(large, "FROM", 20)
    corpus.add(documents(40))
    found = corpus.snapshot()
    assert dict(found.documents) == {d.id: d for d in documents(40)}
    assert counting.given == len(found.passages) and counting.given > had
    np.testing.assert_array_equal(found.vectors, ScriptedEmbedder().embed([embedding_text(p) for p in found.passages]))


def test_two_documents_of_one_name_are_refused(lowered):
    twice = [*documents(30), next(documents(1, seed=9))]
    with pytest.raises(InputError, match="'d0'"):
        made("c", iter(twice * 1 + [*documents(60)]))
    assert Collection.open("c").snapshot().passages == ()


def test_a_large_collection_is_cut_again_and_mended(lowered):
    corpus = made("c", documents(60))
    assert health("c").state == "good"
    cut = corpus.rebuild(chunking=Chunking(words=30))
    assert 60 <= len(cut.snapshot().passages) < len(list(documents(60))) * 3
    assert dict(cut.snapshot().documents) == {d.id: d for d in documents(60)}
    place = next(corpus.folder.glob("generation-*"))
    (place / large.VECTORS).write_bytes((place / large.VECTORS).read_bytes()[:-4] + b"\0\0\x80\x7f")
    found = health("c")
    assert found.state == "mended" and large.VECTORS in found.notes[0]
    (next(corpus.folder.glob("generation-*")) / large.TEXT).write_bytes(b"no database" * 1000)
    assert health("c").state == "damaged"


@pytest.mark.parametrize("most", [10**9, 20])
def test_a_damaged_text_is_told_whether_it_is_held_in_memory_or_not(monkeypatch, most):
    monkeypatch.setattr(large, "FROM", most)
    corpus = made("c", documents(60))
    place = next(corpus.folder.glob("generation-*"))
    with sqlite3.connect(place / large.TEXT) as connection:
        connection.execute("UPDATE documents SET text = ? WHERE id = 'd5'", (b"x\1not what was written",))
    connection.close()
    monkeypatch.setattr(collection, "_SNAPSHOTS", {})
    for read in (lambda: corpus.snapshot().documents["d5"], lambda: list(corpus.snapshot().spans())):
        with pytest.raises(CorpusError, match=r"files of the corpus c are damaged .* Remove the corpus"):
            read()
    assert health("c").state == "damaged"


@pytest.mark.parametrize("left", [b"", b"\x93NUMPY", b"no array"])
def test_damaged_vectors_name_the_command_that_makes_them_again(lowered, monkeypatch, left):
    corpus = made("c", documents(60))
    before = np.array(corpus.snapshot().vectors)
    (next(corpus.folder.glob("generation-*")) / large.VECTORS).write_bytes(left)
    monkeypatch.setattr(collection, "_SNAPSHOTS", {})
    with pytest.raises(CorpusError, match=r"vectors of the corpus c are damaged .* python -m engine corpora"):
        corpus.snapshot()
    assert health("c").state == "mended"
    np.testing.assert_array_equal(corpus.snapshot().vectors, before)


def test_cells_name_the_nearest_of_clustered_vectors(tmp_path, monkeypatch):
    rng = np.random.default_rng(4)
    centres = rng.normal(size=(40, 32))
    vectors = (centres[rng.integers(0, 40, 6_000)] + 0.5 * rng.normal(size=(6_000, 32))).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    np.save(tmp_path / "v.npy", vectors)
    monkeypatch.setattr(cells, "_LEAST", 1_200)  # a fifth of the rows
    cells.build(tmp_path, np.load(tmp_path / "v.npy", mmap_mode="r"), Watch())
    found = cells.Cells(tmp_path)
    assert found.size == 6_000
    right = 0
    for query in vectors[::60]:
        exact = set(np.argsort(-(vectors @ query))[:10].tolist())
        right += len(exact & set(found.nearest(query, 50).tolist()))
    assert right >= 0.98 * 1_000
    np.testing.assert_array_equal(found.nearest(vectors[0], 6_000), np.arange(6_000))
