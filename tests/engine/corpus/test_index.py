"""The search index: in step, rebuilt when damaged, shared by processes, on a Chroma server."""

from __future__ import annotations

import io
import json
import shutil
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from engine.core.errors import ServerError
from engine.core.settings import Chunking, Retrieval
from engine.corpus import index, large, store
from engine.corpus.collection import Collection, health
from engine.models.embedder import ScriptedEmbedder
from engine.retrieve.search import search

LISTED = "iron gold salt glass copper sand water air rust melt shine cool heat filter wash dry weigh store"
WORDS = LISTED.split()


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GROUNDWORK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(index.SERVER, raising=False)
    yield
    for folder in list(index._OPEN):
        index.close_index(folder)


def records(first: int, count: int) -> str:
    rng = np.random.default_rng(5)
    texts = [" ".join(rng.choice(WORDS, 5)) + f" {i}." for i in range(first + count)]
    return "\n".join(json.dumps({"_id": f"r{i}", "text": texts[i]}) for i in range(first, first + count))


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    (tmp_path / "a.jsonl").write_text(records(0, 120))
    made = Collection.create("c", ScriptedEmbedder())
    made.ingest([tmp_path / "a.jsonl"])
    return made


def nearest(collection: Collection, found: index.Index, question: str) -> bool:
    """Are the index's ten nearest the exact ten nearest, by score."""
    snapshot = collection.snapshot()
    vector = collection.embedder.embed([question])[0]
    exact = np.sort(snapshot.vectors @ vector)[::-1][:10]
    rows = found.nearest(vector, 10)
    return np.allclose(np.sort(snapshot.vectors[rows] @ vector)[::-1], exact, atol=1e-5)


def reopen(collection: Collection) -> index.Index:
    index.close_index(collection.folder)
    return index.open_index(collection.folder, collection.snapshot())


def test_an_index_answers_as_exact_search_and_follows_the_collection(collection: Collection, tmp_path: Path) -> None:
    first = index.open_index(collection.folder, collection.snapshot())
    assert nearest(collection, first, "iron rust")
    assert index.open_index(collection.folder, collection.snapshot()) is first
    (tmp_path / "b.jsonl").write_text(records(120, 30))
    (tmp_path / "a.jsonl").write_text(records(0, 120).replace("gold", "silver"))
    collection.ingest([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    second = index.open_index(collection.folder, collection.snapshot())
    assert second.size == collection.manifest.passages == 150
    assert nearest(collection, second, "silver shine")
    assert second.repaired == ""
    assert reopen(collection).repaired == ""


@pytest.mark.parametrize("damage", ["no state", "damaged state", "no folder", "foreign state"])
def test_an_index_that_is_not_said_to_be_whole_is_built_again(collection: Collection, damage: str) -> None:
    index.open_index(collection.folder, collection.snapshot())
    index.close_index(collection.folder)
    (place,) = collection.folder.glob("index-*")
    state = collection.folder / "index.json"
    match damage:
        case "no state":
            state.unlink()
        case "damaged state":
            state.write_bytes(state.read_bytes()[:-5])
        case "no folder":
            shutil.rmtree(place)
        case "foreign state":
            held = index.held_by(collection.snapshot())
            state.write_text(json.dumps({"folder": "../" + collection.folder.name, "held": held}))
    with pytest.raises(index.NotReady):
        index.open_index(collection.folder, collection.snapshot(), build=False)
    found = index.open_index(collection.folder, collection.snapshot())
    assert nearest(collection, found, "salt water")
    assert found.size == 120
    assert [p.name for p in collection.folder.glob("index-*")] == [place_of(collection)]


@pytest.mark.parametrize("file", ["centres", "starts", "rows", "bytes", "signs"])
@pytest.mark.parametrize("damage", ["truncated", "deleted", "emptied", "random", "of others"])
def test_damage_to_its_files_is_mended_and_said(collection: Collection, file: str, damage: str) -> None:
    index.open_index(collection.folder, collection.snapshot())
    index.close_index(collection.folder)
    path = collection.folder / place_of(collection) / f"{file}.npy"
    data = path.read_bytes()
    path.unlink()  # what is mapped elsewhere stays as it is
    match damage:
        case "truncated":
            path.write_bytes(data[: len(data) // 2])
        case "emptied":
            path.write_bytes(b"")
        case "random":
            path.write_bytes(data[:128] + np.random.default_rng(1).bytes(len(data) - 128))
        case "of others":
            np.save(path, np.load(io.BytesIO(data))[:-1])
    found = index.open_index(collection.folder, collection.snapshot())
    assert found.size == 120
    assert "was rebuilt" in found.repaired
    assert nearest(collection, found, "salt water")
    assert reopen(collection).repaired == ""


def place_of(collection: Collection) -> str:
    return json.loads((collection.folder / "index.json").read_text())["folder"]


def test_a_check_compares_an_open_index_with_its_files_again(collection: Collection) -> None:
    index.open_index(collection.folder, collection.snapshot())
    path = collection.folder / place_of(collection) / "signs.npy"
    path.unlink()  # what is mapped stays as it is
    path.write_bytes(b"")
    assert "was rebuilt" in health("c").notes[0]
    assert health("c").state == "good"


def test_health_checks_files_and_index(collection: Collection) -> None:
    assert health("c").state == "good"
    index.open_index(collection.folder, collection.snapshot())
    assert health("c").state == "good"
    vectors = store.generation_folder(collection.folder, collection.manifest.generation) / "vectors.npy"
    vectors.write_bytes(vectors.read_bytes()[:-9])
    found = health("c")
    assert found.state == "mended"
    assert "vectors.npy" in found.notes[0]
    assert health("c").state == "good"
    place = store.generation_folder(collection.folder, collection.manifest.generation)
    (place / large.TEXT).write_text("{}")
    assert health("c").state == "damaged"


def test_an_ingest_of_a_large_collection_keeps_the_index_in_step(
    collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "NEEDED_FROM", 130)
    (tmp_path / "b.jsonl").write_text(records(120, 30))
    collection.ingest([tmp_path / "b.jsonl"])
    found = index.open_index(collection.folder, collection.snapshot(), build=False)
    assert found.size == 150
    collection = collection.rebuild(chunking=Chunking(words=40))
    assert index.open_index(collection.folder, collection.snapshot(), build=False).held != found.held
    (tmp_path / "b.jsonl").write_text(records(120, 40))
    monkeypatch.setattr(index, "NEEDED_FROM", 1_000)
    collection.ingest([tmp_path / "b.jsonl"])
    with pytest.raises(index.NotReady):
        index.open_index(collection.folder, collection.snapshot(), build=False)


def test_two_processes_read_one_index(collection: Collection) -> None:
    index.open_index(collection.folder, collection.snapshot())
    script = (
        "from engine.corpus import index\nfrom engine.corpus.collection import Collection\n"
        "c = Collection.open('c')\n"
        "found = index.open_index(c.folder, c.snapshot(), build=False)\n"
        "print(*found.nearest(c.embedder.embed(['iron rust'])[0], 7))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    vector = collection.embedder.embed(["iron rust"])[0]
    here = index.open_index(collection.folder, collection.snapshot())
    assert [int(row) for row in done.stdout.split()] == here.nearest(vector, 7).tolist()


def test_while_another_process_builds_it_search_is_exact(collection: Collection) -> None:
    script = (
        "from engine.corpus import index\nfrom engine.corpus.collection import Collection\n"
        "from engine.retrieve.search import search\n"
        "from engine.core.settings import Retrieval\n"
        "c = Collection.open('c')\n"
        "try:\n    index.open_index(c.folder, c.snapshot())\nexcept Exception as e:\n    print(type(e).__name__)\n"
        "print(search(c, 'iron rust', Retrieval(k=1, mode='dense'))[0].passage.document)\n"
    )
    with FileLock(collection.folder / "index.build"):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    expected = search(collection, "iron rust", Retrieval(k=1, mode="dense"))[0].passage.document
    assert done.stdout.split() == ["CorpusLocked", expected]


def test_a_second_writer_process_is_told(collection: Collection) -> None:
    script = (
        "from engine.corpus.collection import Collection\nfrom engine.core.errors import CorpusLocked\n"
        "try:\n    Collection.open('c').ingest([])\nexcept CorpusLocked as e:\n    print('told', e)\n"
    )
    with collection.writing():
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("told")


@pytest.mark.parametrize("mode", ["dense", "hybrid"])
def test_search_through_the_index_equals_exact_search(
    collection: Collection, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = Retrieval(k=5, mode=mode)  # type: ignore[arg-type]
    exact = [search(collection, w, how) for w in WORDS[:6]]
    monkeypatch.setattr(index, "NEEDED_FROM", 0)
    monkeypatch.setattr("engine.retrieve.search._LEAST", 50)
    assert search(collection, WORDS[0], how)
    assert collection.folder not in index._OPEN  # a search never builds
    index.open_index(collection.folder, collection.snapshot())
    found = [search(collection, w, how) for w in WORDS[:6]]
    assert collection.folder in index._OPEN
    for a, b in zip(exact, found, strict=True):
        assert [h.score for h in a] == pytest.approx([h.score for h in b], abs=1e-5)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    chroma = Path(sys.executable).with_name("chroma")
    command = [str(chroma), "run", "--path", str(tmp_path / "served"), "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{address}/api/v2/heartbeat", process)
        yield address
    finally:
        process.kill()
        process.wait()


def wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    pause = threading.Event()
    for _ in range(600):
        assert process.poll() is None, "the server ended"
        try:
            urllib.request.urlopen(address, timeout=5).read()
            return
        except OSError:
            pause.wait(0.1)
    raise AssertionError("the server did not start")


@pytest.mark.slow
def test_a_server_instead_of_the_own_index(
    collection: Collection, server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(index.SERVER, server)
    found = index.open_index(collection.folder, collection.snapshot())
    assert nearest(collection, found, "gold shine")
    assert not list(collection.folder.glob("index-*"))
    (tmp_path / "b.jsonl").write_text(records(120, 30))
    collection.ingest([tmp_path / "b.jsonl"])
    assert index.open_index(collection.folder, collection.snapshot()).size == 150
    assert reopen(collection).size == 150
    monkeypatch.setattr("engine.retrieve.search._LEAST", 50)
    hits = search(collection, "gold shine", Retrieval(k=3, mode="dense"))
    assert len(hits) == 3


@pytest.mark.slow
def test_a_server_that_is_not_there_is_told_and_search_goes_on(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(index.SERVER, "http://127.0.0.1:9")
    with pytest.raises(ServerError, match="chroma run"):
        index.open_index(collection.folder, collection.snapshot())
    monkeypatch.setattr("engine.retrieve.search._LEAST", 50)
    assert search(collection, "gold", Retrieval(k=3, mode="dense"))


def test_a_server_named_without_a_scheme_is_refused_and_no_other_is_asked(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(index.SERVER, "chroma.example:9000")
    with pytest.raises(ServerError, match="write http://HOST:PORT"):
        index.open_index(collection.folder, collection.snapshot())
