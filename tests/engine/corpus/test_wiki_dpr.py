"""wiki_dpr's layout: the same passages from TSV and JSONL, one line at a time, with progress, faults by line."""

from __future__ import annotations

import codecs
import csv
import json
import tracemalloc
from itertools import islice

import pytest

from engine.core.errors import FileError
from engine.core.progress import Watch
from engine.core.settings import Retrieval
from engine.corpus import sources
from engine.corpus.collection import Collection
from engine.corpus.formats import records
from engine.corpus.sources import load
from engine.models.embedder import ScriptedEmbedder
from engine.retrieve.search import search
from tests.engine.corpus.test_sources import read_files

ROWS = [("1", 'Aaron is said to be a "prophet" of old.', "Aaron"), ("2", "A tab\tand a bar.", "Ærø"), ("3", "Ice.", "")]


@pytest.fixture
def tsv(tmp_path):
    path = tmp_path / "psgs_w100.tsv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, dialect=csv.excel_tab)
        writer.writerow(records.COLUMNS)
        writer.writerows(ROWS)
    return path


@pytest.fixture
def jsonl(tmp_path):
    path = tmp_path / "wiki.jsonl"
    lines = [{"id": int(i), "text": t, "title": name, "embeddings": [0.5]} for i, t, name in ROWS]
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n\n", encoding="utf-8")
    return path


def test_both_files_hold_the_same_passages(tsv, jsonl):
    for path in (tsv, jsonl):
        assert records.is_layout(path)
        assert [(d.id, d.text, d.title) for d in records.stream(path)] == ROWS


def test_a_byte_order_mark_is_no_part_of_the_first_line(tsv, jsonl):
    for path in (tsv, jsonl):
        path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
        assert records.is_layout(path)
        assert [d.id for d in records.stream(path)] == ["1", "2", "3"]


def test_a_tsv_of_this_layout_is_loaded_by_its_own_ids(tsv):
    assert [(d.id, d.title) for d in load(tsv)] == [("1", "Aaron"), ("2", "Ærø"), ("3", "")]


def test_another_table_is_not_taken_for_it(tmp_path):
    path = tmp_path / "other.tsv"
    path.write_text("name\ttext\nx\ty\n")
    assert not records.is_layout(path)
    assert not records.is_layout(tmp_path / "absent.tsv")
    assert load(path)[0].text == "y"


def test_reading_stops_where_the_caller_stops(tmp_path):
    path = tmp_path / "cut.jsonl"
    path.write_text(json.dumps({"id": 1, "text": "One.", "title": ""}) + "\nnot json\n")
    assert [d.id for d in islice(records.stream(path), 1)] == ["1"]
    with pytest.raises(FileError, match="line 2"):
        list(records.stream(path))


def test_faults_are_named(tmp_path):
    path = tmp_path / "f.tsv"
    path.write_text("id\ttext\ttitle\n1\tGood.\tA\n2\t \tB\n")
    with pytest.raises(FileError, match="passage 2"):
        list(records.stream(path))
    path.write_text("id\ttext\ttitle\n")
    with pytest.raises(FileError, match="no passage"):
        list(records.stream(path))
    with pytest.raises(FileError, match="cannot be read"):
        list(records.stream(tmp_path / "absent.tsv"))


def test_progress_is_told_in_bytes(tsv):
    told = []
    list(records.stream(tsv, Watch(report=lambda *a: told.append(a))))
    size = tsv.stat().st_size
    assert told[-1] == ("read", size, size)


def test_a_stream_goes_into_a_collection(tsv):
    collection = Collection.create("wiki", ScriptedEmbedder())
    report = collection.add(records.stream(tsv))
    assert (report.documents, report.passages) == (3, 3)
    assert [p.title for p in collection.snapshot().passages] == ["Aaron", "Ærø", ""]


def write_rows(path, count):
    """A table in the layout of psgs_w100.tsv, written row by row."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, dialect=csv.excel_tab)
        writer.writerow(records.COLUMNS)
        writer.writerows((i, f"Passage {i} tells of the river. " * 12, f"River {i // 3}") for i in range(1, count + 1))


def test_an_ingest_takes_a_file_over_the_limit_of_size_and_keeps_its_ids(tmp_path, monkeypatch):
    path = tmp_path / "psgs_w100.tsv"
    write_rows(path, 60)
    monkeypatch.setattr(sources, "LARGEST", 1_000)
    (tmp_path / "large.txt").write_text("x" * 1_001)
    found, skipped = read_files([tmp_path])
    assert [d.id for d in found] == [str(i) for i in range(1, 61)]
    assert (found[0].title, found[3].title) == ("River 0", "River 1")
    assert [name for name, _ in skipped] == ["large.txt"]
    collection = Collection.create("wiki", ScriptedEmbedder())
    collection.ingest([path])
    assert search(collection, "passage 47", Retrieval(mode="bm25"))[0].passage.document == "47"


def test_an_id_that_stands_twice_is_told(tmp_path):
    path = tmp_path / "wiki.tsv"
    path.write_text("id\ttext\ttitle\n1\tGood.\tA\n1\tBetter.\tA\n")
    assert "'1' twice" in read_files([path])[1][0][1]


def test_reading_takes_no_memory_of_the_size_of_the_file(tmp_path):
    path = tmp_path / "psgs_w100.tsv"
    write_rows(path, 20_000)
    tracemalloc.start()
    try:
        assert sum(1 for _ in records.stream(path)) == 20_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 7_000_000 > 10 * peak


class TwoSides(ScriptedEmbedder):
    """Embeds passages with a word before them that no question has, and keeps what it was given."""

    def __init__(self):
        super().__init__()
        self.given = []

    def embed_passages(self, texts, watch=Watch()):
        self.given += texts
        return self.embed([f"shelfmark {text}" for text in texts], watch)


def test_passages_go_through_the_passage_tower_with_their_titles_and_questions_do_not(tsv):
    embedder = TwoSides()
    collection = Collection.create("wiki", embedder)
    collection.add(records.stream(tsv))
    assert sorted(embedder.given) == ["Aaron\n" + ROWS[0][1], "Ice.", "Ærø\n" + ROWS[1][1]]
    hit = search(collection, "prophet", Retrieval(mode="dense", k=1))[0]
    plain = ScriptedEmbedder()
    expected = plain.embed(["prophet"])[0] @ plain.embed([f"shelfmark Aaron\n{ROWS[0][1]}"])[0]
    assert (hit.passage.document, hit.score) == ("1", pytest.approx(float(expected), abs=1e-6))


@pytest.mark.long
def test_a_file_over_the_limit_of_other_files_streams_in_little_memory(tmp_path):
    path, text = tmp_path / "psgs_w100.tsv", "word " * 1_000
    rows = sources.LARGEST // len(text) + 1_000
    with path.open("w", encoding="utf-8") as file:
        file.write("id\ttext\ttitle\n")
        file.writelines(f"{number}\t{text}\tTitle\n" for number in range(rows))
    assert path.stat().st_size > sources.LARGEST
    tracemalloc.start()
    skipped: list[tuple[str, str]] = []
    count = sum(1 for _ in sources.stream_files([path], Watch(), skipped))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (count, skipped) == (rows, [])
    assert peak < 50 * 2**20
