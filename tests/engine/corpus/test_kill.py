"""A writer killed with SIGKILL at random points of ingest, re-ingest and index writing: nothing confirmed is lost.

The child prints a line when an ingest has returned; whatever was confirmed must be there afterwards, whole.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from engine.core.settings import Retrieval
from engine.corpus import index, store
from engine.corpus.chunking import passages
from engine.corpus.collection import Collection, embedding_text
from engine.corpus.health import health
from engine.models.embedder import ScriptedEmbedder
from engine.retrieve.search import search

WRITER = """
import json, sys
from engine.corpus import collection as collections, index
from engine.corpus.collection import Collection
from engine.models.embedder import ScriptedEmbedder
collections.PIECE = 64
collection = Collection.create("k", ScriptedEmbedder())
import chromadb
print("ready", flush=True)
for turn in range(1000):
    for path in sys.argv[1:]:
        collection.ingest([path])
        print(path, flush=True)
        index.open_index(collection.folder, collection.snapshot())
        print("index", flush=True)
"""
VERSIONS = 4


def write_versions(folder: Path) -> list[Path]:
    """Versions of one file: the same ids with changed texts, and more of them each time."""
    rng = random.Random(11)
    words = [f"word{i}" for i in range(200)]
    paths = []
    for version in range(VERSIONS):
        lines = [
            {"_id": f"d{i}", "text": " ".join(rng.choices(words, k=30)) + f" version {version}."}
            for i in range(150 + 40 * version)
        ]
        paths.append(folder / f"v{version}.jsonl")
        paths[-1].write_text("\n".join(map(json.dumps, lines)))
    return paths


def run_and_kill(paths: list[Path], after_lines: int, seconds: float) -> list[str]:
    """Start the writer, let it confirm `after_lines` lines, and kill it `seconds` later; the confirmed lines."""
    child = subprocess.Popen([sys.executable, "-c", WRITER, *map(str, paths)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    confirmed = [child.stdout.readline().strip() for _ in range(1 + after_lines)]
    assert all(confirmed), "the writer ended by itself"
    threading.Event().wait(seconds)
    os.kill(child.pid, signal.SIGKILL)
    rest, _ = child.communicate()
    return confirmed + rest.split()


def texts_of(path: Path) -> dict[str, str]:
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return {r["_id"]: r["text"] for r in records}


def check_whole(paths: list[Path], confirmed: list[str]) -> None:
    """The stored documents are those of one ingest: the last confirmed one or the one after it."""
    collection = Collection.open("k")
    assert store.verify_hashes(collection.folder, collection.manifest) == []
    snapshot = collection.snapshot()
    stored = {d.id: d.text for d in snapshot.documents.values()}
    names = [str(p) for p in paths]
    ingested = [names.index(line) for line in confirmed if line in names]
    at = {ingested[-1], (ingested[-1] + 1) % len(paths)} if ingested else set(range(len(paths)))
    assert any(texts_of(paths[place]).items() <= stored.items() for place in at) or not (ingested or stored)
    expected = [p.id for d in snapshot.documents.values() for p in passages(d, collection.chunking)]
    assert sorted(p.id for p in snapshot.passages) == sorted(expected)
    vectors = ScriptedEmbedder().embed([embedding_text(p) for p in snapshot.passages])
    np.testing.assert_array_equal(snapshot.vectors, vectors)


def check_search(question: str) -> None:
    """Search through the reopened index equals exact search."""
    collection = Collection.open("k")
    snapshot = collection.snapshot()
    if not snapshot.passages:
        return
    vector = collection.embedder.embed([question])[0]
    exact = np.sort(snapshot.vectors @ vector)[::-1][:10]
    found = index.open_index(collection.folder, snapshot)
    rows = found.nearest(vector, 10)
    np.testing.assert_allclose(np.sort(snapshot.vectors[rows] @ vector)[::-1], exact, atol=1e-5)
    assert [h.score for h in search(collection, question, Retrieval(k=10, mode="dense"))] == pytest.approx(list(exact))
    index.close_index(collection.folder)


@pytest.mark.parametrize(
    "points", [pytest.param(8, marks=pytest.mark.slow), pytest.param(30, marks=[pytest.mark.slow, pytest.mark.long])]
)
def test_killed_at_random_points(points: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDWORK_HOME", str(tmp_path / "home"))
    paths = write_versions(tmp_path)
    rng = random.Random(7)
    for trial in range(points):
        confirmed = run_and_kill(paths, after_lines=rng.randrange(0, 9), seconds=rng.uniform(0.0, 0.4))
        if (tmp_path / "home" / "corpora" / "k" / store.MANIFEST).exists():
            check_whole(paths, confirmed)
            check_search(f"word{trial} word{trial + 50} word{trial + 100}")
            assert health("k").state in ("good", "mended")
    collection = Collection.open("k")
    collection.ingest([paths[-1]])
    assert {d.id: d.text for d in collection.snapshot().documents.values()} == texts_of(paths[-1])
