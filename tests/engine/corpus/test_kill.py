"""A writer killed with SIGKILL at random points of ingest, re-ingest and index writing: nothing confirmed is lost.

The child says so when an ingest has returned; whatever was confirmed must be there afterwards, whole.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from engine.core.files import home
from engine.core.settings import Retrieval
from engine.corpus import collection as collections, index, store
from engine.corpus.chunking import passages
from engine.corpus.collection import Collection, embedding_text, health
from engine.models.embedder import ScriptedEmbedder
from engine.retrieve.search import search
from tests.trust.killing import Say, kill_often, killed


def write(say: Say, *paths: str) -> None:
    """Ingest the versions in turn; confirm each ingest and each index."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collections, "PIECE", 64)
        collection = Collection.create("k", ScriptedEmbedder())
        say("ready")
        for _ in range(1000):
            for path in paths:
                collection.ingest([path])
                say(path)
                index.open_index(collection.folder, collection.snapshot())
                say("index")


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
    # The index compares bytes: of rows that differ by less than their rounding either may come. Search asks for more
    # than it needs and compares the vectors themselves.
    np.testing.assert_allclose(np.sort(snapshot.vectors[rows] @ vector)[::-1], exact, atol=2e-3)
    assert [h.score for h in search(collection, question, Retrieval(k=10, mode="dense"))] == pytest.approx(list(exact))
    index.close_index(collection.folder)


@pytest.mark.parametrize(
    "trials", [pytest.param(8, marks=pytest.mark.slow), pytest.param(30, marks=[pytest.mark.slow, pytest.mark.long])]
)
def test_killed_at_random_points(trials, record_property, tmp_path: Path) -> None:
    paths = write_versions(tmp_path)

    def trial(rng: random.Random) -> bool:
        confirmed, in_time = killed(write, rng.randrange(1, 10), rng.uniform(0.0, 0.4), *map(str, paths))
        if (home() / "corpora" / "k" / store.MANIFEST).exists():
            check_whole(paths, confirmed)
            check_search(f"word{rng.randrange(100)} word{rng.randrange(100)} word{rng.randrange(100)}")
            assert health("k").state in ("good", "mended")
        return in_time

    kill_often("ingest", trials, record_property, trial)
    collection = Collection.open("k")
    collection.ingest([paths[-1]])
    assert {d.id: d.text for d in collection.snapshot().documents.values()} == texts_of(paths[-1])
