"""A collection: one transaction an ingest, nothing embedded twice, mismatches told, names harmless."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from engine.core.errors import (
    Cancelled,
    CorpusError,
    CorpusLocked,
    CorpusMismatch,
    CorpusNotFound,
    InputError,
    StorageError,
)
from engine.core.files import sha256_of
from engine.core.progress import Watch
from engine.core.settings import Chunking
from engine.corpus import collection as collections, large, store
from engine.corpus.collection import NAMED, Collection, health, list_corpora, remove, unreadable_corpora
from engine.corpus.formats.records import Fields
from engine.models.embedder import ScriptedEmbedder


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDWORK_HOME", str(tmp_path / "home"))


@pytest.fixture
def embedder() -> ScriptedEmbedder:
    return ScriptedEmbedder()


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    (tmp_path / "iron.txt").write_text("Iron rusts in damp air. Salt makes it rust faster.")
    (tmp_path / "gold.md").write_text("# Gold\n\nGold does not rust.\n")
    records = [{"_id": f"r{i}", "title": "Metals", "text": f"Metal number {i} melts."} for i in range(3)]
    (tmp_path / "metals.jsonl").write_text("\n".join(map(json.dumps, records)))
    return [tmp_path / n for n in ("iron.txt", "gold.md", "metals.jsonl")]


def test_ingest_reports_and_the_same_files_again_change_nothing(files: list[Path], embedder: ScriptedEmbedder) -> None:
    collection = Collection.create("metals", embedder)
    first = collection.ingest(files)
    assert (first.added, first.unchanged, first.replaced, first.documents, first.passages) == (5, 0, 0, 5, 5)
    assert first.told == "3 files, 5 documents: 5 added. Each row of a table or JSONL file is a document."
    before = collection.manifest
    count = embedder.embedded
    again = collection.ingest(files)
    assert (again.files, again.added, again.unchanged, again.replaced) == (3, 0, 5, 0)
    assert collection.ingest(files[:1]).told == "1 file, 1 document: 1 unchanged."
    assert collection.manifest == before
    assert embedder.embedded == count


def test_a_changed_file_replaces_its_passages_only(files: list[Path], embedder: ScriptedEmbedder) -> None:
    collection = Collection.create("metals", embedder)
    collection.ingest(files)
    count = embedder.embedded
    files[0].write_text("Iron is grey.")
    report = collection.ingest(files)
    assert (report.added, report.unchanged, report.replaced, report.documents) == (0, 4, 1, 5)
    assert embedder.embedded == count + 1
    snapshot = collection.snapshot()
    assert [p.text for p in snapshot.passages if p.document == "iron.txt"] == ["Iron is grey."]
    texts = [collections.embedding_text(p) for p in snapshot.passages]
    np.testing.assert_array_equal(snapshot.vectors, ScriptedEmbedder().embed(texts))


def test_a_bad_file_is_skipped_with_its_reason(files: list[Path], tmp_path: Path, embedder: ScriptedEmbedder) -> None:
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "false.pdf").write_bytes(b"not a pdf")
    report = Collection.create("m", embedder).ingest([tmp_path / "empty.txt", *files, tmp_path / "false.pdf"])
    assert report.added == 5
    assert [name for name, _ in report.skipped] == ["empty.txt", "false.pdf"]
    assert all(reason.endswith(".") for _, reason in report.skipped)


def test_a_bad_record_is_skipped_with_its_line_and_the_others_are_added(
    tmp_path: Path, embedder: ScriptedEmbedder
) -> None:
    rows = ['{"_id": "a", "text": "One."}', '{"_id": "a", "text": "Two."}', "no json", '{"_id": "c"}', "[1]"]
    wiki = [b'{"id": 1, "title": "", "text": "Four."}', b"{", b'{"id": 2, "title": ""}', b'{"id": 1, "text": "Five."}']
    last = [b'{"id": 3, "text": "caf\xe9"}', b'{"id": 4, "text": "Six."}']
    given = {
        "none.jsonl": b"no json\nno json either",
        "rows.jsonl": "\n".join([*rows, '{"_id": 5, "text": "Three."}']).encode(),
        "table.csv": b"_id,text\nx,Seven.\nx,Eight.\n",
        "wiki.jsonl": b"\n".join([*wiki, *last]),
    }
    for name, data in given.items():
        (tmp_path / name).write_bytes(data)
    collection = Collection.create("m", embedder)
    report = collection.ingest([tmp_path / name for name in given])
    texts = {document.text for document, _, _ in collection.snapshot().spans()}
    assert texts == {"One.", "Three.", "Four.", "Six.", "Seven."}
    said = [
        "none.jsonl, line 1, is not JSON",
        "rows.jsonl, line 2, has the id 'a' of an earlier line",
        "rows.jsonl, line 3, is not JSON",
        "rows.jsonl, line 4, has no text",
        "rows.jsonl, line 5, is not a JSON object",
        "table.csv has the id 'x' twice",
        "wiki.jsonl, line 2, is not JSON",
        "wiki.jsonl, line 3, has no id or no text",
        "wiki.jsonl has the id '1' twice",
        "wiki.jsonl, line 5, is not UTF-8 text",
    ]
    assert [reason[: len(start)] for (_, reason), start in zip(report.skipped, said, strict=True)] == said
    assert collection.ingest([tmp_path / name for name in given]).unchanged == 5


def test_a_replaced_document_names_its_own_file_also_for_a_row_of_a_table(
    tmp_path: Path, embedder: ScriptedEmbedder
) -> None:
    paths = [tmp_path / name for name in ("old notes.txt", "notes.txt", "bought.csv")]
    paths[2].write_text("item,colour\nkiln,green\n")
    for path in paths[:2]:
        path.write_text("Iron rusts.")
    collection = Collection.create("m", embedder)
    collection.ingest(paths)
    paths[1].write_text("Salt helps.")
    paths[2].write_text("item,colour\nkiln,red\n")
    replaced = collection.ingest(paths).replacements
    assert replaced == (("notes.txt", str(paths[1])), ("bought.csv#1", str(paths[2])))


def test_a_record_that_replaces_another_files_document_of_the_same_id_says_so(
    tmp_path: Path, embedder: ScriptedEmbedder
) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text('{"_id": "1", "text": "Iron rusts."}')
    second.write_text('{"_id": "1", "text": "Gold shines."}')
    collection = Collection.create("m", embedder)
    assert collection.ingest([first]).warning == ""
    report = collection.ingest([second])
    assert (report.replaced, report.displaced) == (1, (("1", "a.jsonl"),))
    assert "'1' of a.jsonl. Different documents need different ids." in report.told
    own = tmp_path / "own.jsonl"
    own.write_text("\n".join(json.dumps({"_id": f"o{n}", "text": f"Row {n}."}) for n in range(NAMED + 9)))
    collection.ingest([own])
    third = [{"_id": f"o{n}", "text": f"Row {n} is new."} for n in range(NAMED + 9)]
    own.write_text("\n".join(map(json.dumps, third)))
    first.write_text('{"_id": "1", "text": "Iron melts."}')
    report = collection.ingest([own, first])
    assert (len(report.replacements), report.displaced) == (NAMED, (("1", "b.jsonl"),))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"_id": "1", "text": "Iron glows."}')
    assert collection.ingest([tmp_path / "in" / "a.jsonl"]).displaced == ()
    collection.ingest([second])
    second.write_text('{"_id": "1", "text": "Gold melts."}')
    assert collection.ingest([second]).displaced == ()


def test_two_tables_that_number_their_rows_alike_are_both_kept(tmp_path: Path, embedder: ScriptedEmbedder) -> None:
    people, orders, items = (tmp_path / name for name in ("people.csv", "orders.csv", "items.json"))
    people.write_text("id,name,role\n1,Ada Quill,chemist\n2,Ben Orr,clerk\n")
    orders.write_text("id,item,price\n1,Bolt,3\n2,Nut,4\n3,Gear,9\n")
    items.write_text('[{"id": 1, "item": "Saw"}]')
    apart = Collection.create("apart", embedder)
    for path in (people, orders, items):
        report = apart.ingest([path])
        assert (report.replaced, report.displaced) == (0, ())
    together = Collection.create("together", embedder)
    assert together.ingest([people, orders, items]).skipped == ()
    assert set(together.snapshot().documents) == set(apart.snapshot().documents)
    assert len(together.snapshot().documents) == 6
    orders.write_text("id,item,price\n3,Gear,9\n1,Bolt,5\n2,Nut,4\n")
    assert together.ingest([orders]).documents == 6, "a row keeps its id, whatever its place"
    assert together.snapshot().documents["orders.csv#id=1"].text == "id: 1 | item: Bolt | price: 5"
    named = [tmp_path / name for name in ("a.csv", "b.csv")]
    for path in named:
        path.write_text(f"_id,text\n1,{path.name}\n")
    ((_, reason),) = together.ingest(named).skipped
    assert reason.endswith("also has the document '1'. Give their records different ids.")
    assert together.ingest(named, fields=Fields(id="")).skipped == ()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "orders.csv").write_text("id,item\n1,Cog\n")
    ((_, reason),) = together.ingest([orders, tmp_path / "b" / "orders.csv"]).skipped
    assert reason.endswith("also has the document 'orders.csv#id=1'. Rename one of them.")


def test_rows_and_records_that_a_file_no_longer_has_go(tmp_path: Path, embedder: ScriptedEmbedder) -> None:
    table, records, note = (tmp_path / name for name in ("t.csv", "r.jsonl", "n.txt"))
    collection = Collection.create("m", embedder)
    table.write_text("text\nIron\nGold\nTin\n")
    records.write_text('{"text": "Salt."}\n{"text": "Sand."}\n{"_id": "c", "text": "Chalk."}')
    note.write_text("Glass.")
    assert collection.ingest([table, records, note]).added == 7
    table.write_text("text\nGold\nTin\n")
    report = collection.ingest([table])
    assert (report.replaced, report.removed, report.documents) == (2, 1, 6)
    assert report.told.startswith("1 file, 2 documents: 2 replaced, 1 removed that the files no longer have.")
    records.write_text('{"text": "Salt."}')
    report = collection.ingest([records])
    assert (report.unchanged, report.replaced, report.removed, report.documents) == (1, 0, 1, 5)
    assert report.stayed == 1 and "1 removed that the files no longer have, 1 record kept that" in report.told
    snapshot = collection.snapshot()
    assert sorted(snapshot.documents) == ["c", "n.txt", "r.jsonl#1", "t.csv#1", "t.csv#2"], "c has an id of its own"
    texts = [collections.embedding_text(p) for p in snapshot.passages]
    np.testing.assert_array_equal(snapshot.vectors, ScriptedEmbedder().embed(texts))
    records.write_text("no json")
    assert collection.ingest([records, note]).removed == 0
    assert "c" in collection.snapshot().documents


@pytest.mark.parametrize("column", ["id", "_id"])
def test_rows_with_an_id_that_a_table_no_longer_has_go_too(
    tmp_path: Path, embedder: ScriptedEmbedder, column: str
) -> None:
    table = tmp_path / "t.csv"
    collection = Collection.create("m", embedder)
    table.write_text(f"{column},text\na,Iron\nb,Gold\nc,Tin\n")
    collection.ingest([table])
    table.write_text(f"{column},text\na,Iron\nc,Tin\n")
    report = collection.ingest([table])
    assert (report.removed, report.stayed) == (1, 0)
    assert sorted(d.text for d in collection.snapshot().documents.values()) == ["Iron", "Tin"]


def test_another_embedder_or_chunking_is_told(files: list[Path], embedder: ScriptedEmbedder) -> None:
    Collection.create("m", embedder).ingest(files)
    with pytest.raises(CorpusMismatch, match="scripted-bag-of-words, not other"):
        Collection.open("m", ScriptedEmbedder(name="other"))
    with pytest.raises(CorpusMismatch, match="words to 50 words"):
        Collection.create("m", embedder, Chunking(method="words", words=50))
    assert Collection.open("m").chunking == Chunking()


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "a\\b", ".hidden", "x" * 65, "a\n", "a..b", "end."])
def test_names_with_path_tricks_are_refused(name: str) -> None:
    with pytest.raises(InputError):
        Collection.create(name, ScriptedEmbedder())


def test_list_remove_and_not_found(files: list[Path], embedder: ScriptedEmbedder) -> None:
    Collection.create("b", embedder)
    Collection.create("a corpus", embedder).ingest(files)
    assert [m.name for m in list_corpora()] == ["a corpus", "b"]
    remove("b")
    assert [m.name for m in list_corpora()] == ["a corpus"]
    with pytest.raises(CorpusNotFound, match="a corpus"):
        Collection.open("b")


def test_a_collection_with_a_damaged_manifest_is_named_and_can_be_removed(
    files: list[Path], embedder: ScriptedEmbedder
) -> None:
    collection = Collection.create("m", embedder)
    collection.ingest(files)
    (collection.folder / store.MANIFEST).write_text("{")
    with pytest.raises(CorpusError, match=r"damaged manifest .* Remove it"):
        Collection.open("m")
    Collection.create("n", embedder)
    (collection.folder.parent / "a stray file").touch()
    assert [m.name for m in list_corpora()] == ["n"]
    assert list(unreadable_corpora()) == ["m"] and "Remove it" in unreadable_corpora()["m"]
    remove("m")
    assert not unreadable_corpora() and not collection.folder.exists()
    with pytest.raises(CorpusNotFound):
        remove("m")


@pytest.mark.parametrize("damage", [b"\xff\xfe{", b'{"name": "\xff"}', b"[" * 100_000])
def test_a_manifest_that_is_not_text_leaves_the_others_listed(
    files: list[Path], embedder: ScriptedEmbedder, damage: bytes
) -> None:
    Collection.create("whole", embedder).ingest(files)
    damaged = Collection.create("damaged", embedder)
    (damaged.folder / store.MANIFEST).write_bytes(damage)
    assert [m.name for m in list_corpora()] == ["whole"]
    assert "damaged manifest" in unreadable_corpora()["damaged"]
    (damaged.folder / store.MANIFEST).unlink()
    (damaged.folder / store.MANIFEST).mkdir()
    assert "cannot be read" in unreadable_corpora()["damaged"]


def test_a_copied_or_renamed_folder_is_the_corpus_of_its_name(files: list[Path], embedder: ScriptedEmbedder) -> None:
    one = Collection.create("one", embedder)
    one.ingest(files)
    shutil.copytree(one.folder, one.folder.with_name("two"))
    one.folder.rename(one.folder.with_name("three"))
    assert [m.name for m in list_corpora()] == ["three", "two"]
    copied = Collection.open("two", embedder)
    assert copied.manifest.name == copied.snapshot().manifest.name == "two"
    files[0].write_text("Iron melts.")
    assert copied.ingest(files[:1]).replaced == 1
    assert health("two").state == health("three").state == "good"
    remove("two")
    assert [m.name for m in list_corpora()] == ["three"]


def test_a_second_writer_is_told(files: list[Path], embedder: ScriptedEmbedder) -> None:
    collection = Collection.create("m", embedder)
    with collection.writing(), pytest.raises(CorpusLocked):
        Collection.open("m").ingest(files)
    assert collection.ingest(files).added == 5


def test_what_another_process_adds_while_the_embedder_is_loaded_stays(
    files: list[Path], embedder: ScriptedEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(_name: str) -> ScriptedEmbedder:
        Collection.create("m", embedder).ingest([coming.pop()])
        return embedder

    monkeypatch.setattr(collections, "load_embedder", load)
    coming = files[:2]
    assert list(Collection.create("m").snapshot().documents) == ["gold.md"]
    assert sorted(Collection.open("m").rebuild().snapshot().documents) == ["gold.md", "iron.txt"]


def test_a_collection_that_is_being_removed_is_not_made_again(
    embedder: ScriptedEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delete(folder: Path, **_: bool) -> None:
        with pytest.raises(CorpusLocked):
            Collection.create("m", embedder)
        deleted.append(folder)

    deleted: list[Path] = []
    collection = Collection.create("m", embedder)
    monkeypatch.setattr(collections.shutil, "rmtree", delete)
    remove("m")
    assert deleted == [collection.folder]


def test_cancel_keeps_what_was_stored(files: list[Path], embedder: ScriptedEmbedder) -> None:
    collection = Collection.create("m", embedder)
    collection.ingest(files[:1])
    watch = Watch()
    watch.cancel.set()
    with pytest.raises(Cancelled):
        collection.ingest(files, watch)
    assert len(collection.snapshot().passages) == 1


def test_a_full_disk_harms_nothing(
    files: list[Path], embedder: ScriptedEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = Collection.create("m", embedder)
    collection.ingest(files[:1])

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(large.os, "fsync", full)
        with pytest.raises(StorageError, match="No space left"):
            collection.ingest(files)
    assert len(collection.snapshot().passages) == 1
    assert store.verify_hashes(collection.folder, collection.manifest) == []
    assert collection.ingest(files).added == 4


def many_texts(tmp_path: Path, count: int) -> Path:
    path = tmp_path / "many.jsonl"
    path.write_text("\n".join(json.dumps({"_id": f"m{i}", "text": f"Text number {i} of words."}) for i in range(count)))
    return path


class Stops(ScriptedEmbedder):
    """Cancels the run after a number of embedded texts."""

    def __init__(self, after: int, watch: Watch) -> None:
        super().__init__()
        self._after, self._watch = after, watch

    def embed(self, texts, watch=Watch()):  # type: ignore[no-untyped-def]
        if self.embedded + len(texts) > self._after:
            self._watch.cancel.set()
        return super().embed(texts, watch)


def test_a_cancelled_ingest_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.corpus.collection.PIECE", 10)
    path, watch = many_texts(tmp_path, 95), Watch()
    with pytest.raises(Cancelled):
        Collection.create("m", Stops(40, watch)).ingest([path], watch)
    again = ScriptedEmbedder()
    collection = Collection.create("m", again)
    assert collection.manifest.passages == 0
    assert collection.ingest([path]).added == 95
    assert again.embedded == 55
    assert not (collection.folder / "staged").exists()
    snapshot = collection.snapshot()
    texts = [collections.embedding_text(p) for p in snapshot.passages]
    np.testing.assert_array_equal(snapshot.vectors, ScriptedEmbedder().embed(texts))


def test_unchanged_passages_of_a_changed_file_are_not_embedded_again(tmp_path: Path) -> None:
    embedder = ScriptedEmbedder()
    collection = Collection.create("m", embedder, Chunking(words=3))
    path = tmp_path / "a.txt"
    path.write_text("One two three. Four five six. Seven eight nine.")
    collection.ingest([path])
    path.write_text("Zero one. One two three. Four five six. Seven eight nine.")
    before = embedder.embedded
    report = collection.ingest([path])
    assert (report.replaced, report.passages) == (1, 4)
    assert embedder.embedded == before + 1


def test_a_collection_in_the_first_form_is_read_and_written_anew(files: list[Path], embedder: ScriptedEmbedder) -> None:
    collection = Collection.create("m", embedder)
    collection.ingest(files[:2])
    before, manifest = collection.snapshot(), collection.manifest
    place = store.generation_folder(collection.folder, manifest.generation)
    (place / large.TEXT).unlink()
    for name, values in (("documents", before.documents.values()), ("passages", before.passages)):
        (place / f"{name}.jsonl").write_bytes(b"".join(msgspec.json.encode(value) + b"\n" for value in values))
    hashes = {path.name: sha256_of(path) for path in place.iterdir()}
    store.write_manifest(collection.folder, msgspec.structs.replace(manifest, hashes=hashes))
    found = collection.snapshot()
    assert (found.documents, found.passages) == (before.documents, before.passages)
    assert health("m").state == "good"
    count = embedder.embedded
    assert collection.ingest(files).added == 3
    assert embedder.embedded == count + 3
    assert (store.generation_folder(collection.folder, collection.manifest.generation) / large.TEXT).exists()
    assert dict(before.documents).items() <= dict(collection.snapshot().documents).items()


def test_rebuild_with_another_chunking_and_embedder(files: list[Path], embedder: ScriptedEmbedder) -> None:
    collection = Collection.create("m", embedder)
    collection.ingest(files)
    new = collection.rebuild(ScriptedEmbedder(16, "other"), Chunking(method="words", words=2))
    assert new.manifest.chunking == Chunking(method="words", words=2)
    assert new.snapshot().vectors.shape == (new.manifest.passages, 16)
    assert new.manifest.documents == 5
    with pytest.raises(CorpusMismatch):
        collection.snapshot()
    with pytest.raises(CorpusMismatch):
        collection.ingest(files)


def test_a_damaged_collection_whose_embedder_is_missing_is_told(files: list[Path]) -> None:
    collection = Collection.create("m", ScriptedEmbedder(name="no such embedder"))
    collection.ingest(files)
    place = store.generation_folder(collection.folder, collection.manifest.generation)
    (place / large.VECTORS).write_bytes(b"")
    found = health("m")
    assert found.state == "damaged" and "no such embedder" in found.notes[0]


def test_a_removed_collection_is_told(files: list[Path], embedder: ScriptedEmbedder) -> None:
    collection = Collection.create("m", embedder)
    remove("m")
    with pytest.raises(CorpusNotFound, match="was removed"):
        collection.snapshot()
