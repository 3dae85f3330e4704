"""Chroma itself: clients, collections of our vectors, and whether they hold what they should.

Always with our own vectors and no embedding function, by cosine, nothing reported to anybody. The index that stands
on this is `index.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from engine.corpus.store import Snapshot
from engine.progress import Watch

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection as ChromaCollection

_BATCH = 5_000  # Chroma refuses more than 5,461 a call
_PROBES = 8
_SERVER_TIMEOUT = 60.0  # seconds for one answer of a Chroma server
_HNSW = {"space": "cosine", "ef_construction": 200, "ef_search": 400, "max_neighbors": 32}
# Written to the disk by the batch: `index.json` is absent meanwhile, so that a kill only costs a rebuild.
_EMBEDDED_HNSW = {**_HNSW, "sync_threshold": 20_000, "batch_size": 5_000}


class NotInStep(Exception):
    """The index does not hold what it should."""


def failures() -> tuple[type[Exception], ...]:
    """What is raised when Chroma's files or its server are out of order."""
    import sqlite3

    import httpx
    from chromadb.errors import ChromaError

    return (
        NotInStep,
        ChromaError,
        sqlite3.Error,
        httpx.HTTPError,
        OSError,
        ValueError,
        KeyError,
        RuntimeError,
        TypeError,
    )


def embedded(place: Path) -> ChromaCollection:
    """The one collection of an embedded index folder."""
    import chromadb

    return _named(chromadb.PersistentClient(path=str(place), settings=_settings()), "passages", _EMBEDDED_HNSW)


def served(address: str, folder: Path) -> ChromaCollection:
    """The collection on a server that stands for the data folder's collection `folder`."""
    return _named(_server_client(address), _server_name(folder), _HNSW)


def delete_served(address: str, folder: Path) -> None:
    """Delete from a server what stands for `folder`."""
    _server_client(address).delete_collection(_server_name(folder))


def _server_client(address: str) -> ClientAPI:
    """A client of the server, with a time-out (its own default is to wait for ever); `ValueError` for no address."""
    import chromadb

    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it is no address: write http://HOST:PORT")
    client = chromadb.HttpClient(
        host=parts.hostname, port=parts.port or 8000, ssl=parts.scheme == "https", settings=_settings()
    )
    session = getattr(getattr(client, "_server", None), "_session", None)
    if session is not None:
        session.timeout = _SERVER_TIMEOUT
    return client


def _server_name(folder: Path) -> str:
    """The name on the server of the collection in `folder`: two data folders never share one."""
    return "groundwork-" + hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:24]


def _named(client: ClientAPI, name: str, hnsw: dict[str, Any]) -> ChromaCollection:
    """A collection by name, made if absent; our vectors only, no embedding function."""
    configuration: Any = {"hnsw": hnsw}
    return client.get_or_create_collection(name, embedding_function=None, configuration=configuration)


def _settings() -> Any:
    """Chroma's settings: nothing is reported to anybody."""
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)


def synchronise(collection: ChromaCollection, snapshot: Snapshot, watch: Watch) -> None:
    """Delete what the snapshot no longer has and add what the index lacks."""
    there = set(collection.get(include=[])["ids"])
    wanted = {p.id for p in snapshot.passages}
    for batch in _batches(sorted(there - wanted)):
        collection.delete(ids=batch)
    missing = [row for row, p in enumerate(snapshot.passages) if p.id not in there]
    fill(collection, snapshot, missing, watch)


def fill(collection: ChromaCollection, snapshot: Snapshot, rows: Sequence[int], watch: Watch) -> None:
    """Add the vectors of `rows`."""
    for number, batch in enumerate(_batches(rows)):
        watch.step("index", number * _BATCH, len(rows))
        collection.upsert(
            ids=[snapshot.passages[row].id for row in batch],
            embeddings=np.ascontiguousarray(snapshot.vectors[list(batch)]),
        )


def _batches(items: Sequence[Any]) -> Iterator[Any]:
    """`items` in pieces that Chroma takes."""
    for first in range(0, len(items), _BATCH):
        yield items[first : first + _BATCH]


def check(collection: ChromaCollection, snapshot: Snapshot) -> None:
    """Compare the count, and ask for a few stored vectors: each must come back as itself or as its equal."""
    count = collection.count()
    if count != len(snapshot.passages):
        raise NotInStep(f"it holds {count} passages, the collection {len(snapshot.passages)}")
    rows = rows_of(snapshot)
    for row in np.linspace(0, max(count - 1, 0), min(_PROBES, count), dtype=int):
        vector = snapshot.vectors[row]
        found = collection.query(query_embeddings=[vector.tolist()], n_results=1, include=[])["ids"][0]
        if not found or found[0] not in rows or float(snapshot.vectors[rows[found[0]]] @ vector) < 0.999:
            raise NotInStep("a stored passage was not found by its own vector")


def rows_of(snapshot: Snapshot) -> dict[str, int]:
    """Row of each passage id."""
    return {passage.id: row for row, passage in enumerate(snapshot.passages)}
