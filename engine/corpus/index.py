"""The search index of a large collection: built from our own files, checked, and rebuilt when it fails.

It lies in `index-*/` (see `cells.py`), several processes may read it, and `index.json` (written last) says which
passages it holds. It is never trusted without that file, a count and a probe. Hits are scored again from our vectors.

With GROUNDWORK_CHROMA=http://HOST:PORT a Chroma server (`chroma run`) holds the index instead, on another machine if
need be. Chroma inside the process was measured at 12 GB of memory for a million passages, and a process killed while it
wrote left collections that never opened again.
"""

from __future__ import annotations

import logging
import os
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
import numpy as np
from numpy.typing import NDArray

from engine.core.errors import Cancelled, CorpusLocked, ServerError, StorageError, raised_as
from engine.core.files import locked_now, read_json, replace_file, sha256_of
from engine.core.progress import Watch
from engine.core.values import sha256
from engine.corpus import cells, large
from engine.corpus.store import Snapshot, storage
from engine.models.protocols import Floats

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection as ChromaCollection


# Chroma: always our own vectors, no embedding function, cosine, no telemetry.

_BATCH = 5_000  # Chroma refuses more than 5,461 a call
_PROBES = 8
_SERVER_TIMEOUT = 60.0  # seconds for one answer of a Chroma server
_CONFIGURATION: Any = {"hnsw": {"space": "cosine", "ef_construction": 200, "ef_search": 400, "max_neighbors": 32}}


def failures() -> tuple[type[Exception], ...]:
    """The errors raised when Chroma's files or server fail."""
    import sqlite3

    import httpx
    from chromadb.errors import ChromaError

    return (ChromaError, sqlite3.Error, httpx.HTTPError, OSError, ValueError, KeyError, RuntimeError, TypeError)


def _server_client(address: str) -> ClientAPI:
    """A client of the server, with a time-out (its own default is to wait for ever); `ValueError` for no address."""
    import chromadb
    from chromadb.config import Settings

    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it is not an address: write http://HOST:PORT")
    quiet = Settings(anonymized_telemetry=False)
    client = chromadb.HttpClient(parts.hostname, parts.port or 8000, parts.scheme == "https", settings=quiet)
    session = getattr(getattr(client, "_server", None), "_session", None)
    if session is not None:
        session.timeout = _SERVER_TIMEOUT
    return client


def _server_name(folder: Path) -> str:
    """The name on the server of the collection in `folder`: two data folders never share one."""
    return "groundwork-" + sha256(str(folder.resolve()))[:24]


def synchronise(collection: ChromaCollection, snapshot: Snapshot, watch: Watch) -> None:
    """Delete what the snapshot no longer has and add what the index lacks."""
    there = set(collection.get(include=[])["ids"])
    wanted = {p.id for p in snapshot.passages}
    gone = sorted(there - wanted)
    for first in range(0, len(gone), _BATCH):
        collection.delete(ids=gone[first : first + _BATCH])
    missing = [row for row, p in enumerate(snapshot.passages) if p.id not in there]
    for first in range(0, len(missing), _BATCH):
        watch.step("index", first, len(missing))
        batch = missing[first : first + _BATCH]
        collection.upsert(
            ids=[snapshot.passages[row].id for row in batch], embeddings=np.ascontiguousarray(snapshot.vectors[batch])
        )


@dataclass(frozen=True)
class Index:
    """An index of `size` passages, exactly those of `held`; `repaired` says what was wrong and done, or is empty.

    `nearest` gives the snapshot rows of about so many passages nearest to a vector, ascending; approximate, so ask for
    more than needed. It raises `ServerError` where the server has gone away since the index was opened.
    """

    held: str
    size: int
    nearest: Callable[[Floats, int], NDArray[np.intp]]
    repaired: str = ""


def check(found: Index, snapshot: Snapshot) -> None:
    """Raise `ValueError` unless the count is right and a few stored vectors each find themselves or their equal."""
    count = found.size
    if count != len(snapshot.passages):
        raise ValueError(f"it holds {count} passages, the corpus {len(snapshot.passages)}")
    for row in np.linspace(0, max(count - 1, 0), min(_PROBES, count), dtype=int):
        vector = snapshot.vectors[row]
        rows = found.nearest(vector, 2)
        if not len(rows) or float((snapshot.vectors[rows] @ vector).max()) < 0.999:
            raise ValueError("a stored passage was not found by its own vector")


log = logging.getLogger(__name__)
SERVER = "GROUNDWORK_CHROMA"
NEEDED_FROM = 50_000  # passages; below, exact search is as fast as the index
_STATE = "index.json"


class NotReady(Exception):
    """There is no index in step, and the caller did not ask for one to be built."""


def held_by(snapshot: Snapshot) -> str:
    """The hashes of the passages' and the vectors' files: the same exactly where one index serves for both."""
    hashes = snapshot.manifest.hashes
    return "-".join(hashes[name][:32] for name in ("passages.jsonl", large.TEXT, large.VECTORS) if name in hashes)


def open_index(folder: Path, snapshot: Snapshot, watch: Watch = Watch(), *, build: bool = True) -> Index:
    """The index of a collection in step with `snapshot`: opened, brought up to date, or rebuilt.

    Raises `CorpusLocked` where another process is building it, `ServerError` where the server named by
    GROUNDWORK_CHROMA does not answer, `NotReady` where there is something to write and `build` is False. Each leaves
    exact search, which needs no index.
    """
    held = held_by(snapshot)
    known = _OPEN.get(folder)
    if known is not None and known.held == held:
        return known
    opened = (_on_server if os.environ.get(SERVER) else _local)(folder, snapshot, held, watch, build)
    _OPEN[folder] = opened
    return opened


def keep_in_step(folder: Path, snapshot: Snapshot, watch: Watch) -> None:
    """After an ingest: update the index if searches need it. Where that fails, the next ingest or check does it."""
    if len(snapshot.passages) <= NEEDED_FROM and not os.environ.get(SERVER):
        return
    try:
        open_index(folder, snapshot, watch)
    except (CorpusLocked, ServerError, StorageError, Cancelled) as error:
        log.warning("The search index was not changed: %s", error)


def exists(folder: Path) -> bool:
    """Is there an index on the disk, whole or not, or a server that should hold one."""
    return bool(os.environ.get(SERVER)) or (folder / _STATE).exists() or any(folder.glob("index-*"))


def forget(folder: Path) -> None:
    """Close the index of a collection that is being removed, and delete what a server holds of it."""
    server = os.environ.get(SERVER, "")
    if server:
        try:
            _server_client(server).delete_collection(_server_name(folder))
        except failures() as error:
            log.warning("The Chroma server at %s kept the index of %s (%s).", server, folder.name, error)
    close_index(folder)


def close_index(folder: Path) -> None:
    """Forget the open index of a collection."""
    _OPEN.pop(folder, None)


_OPEN: dict[Path, Index] = {}


def _local(folder: Path, snapshot: Snapshot, held: str, watch: Watch, build: bool) -> Index:
    """The index under the collection's own folder, rebuilt where it is not that of `held` or damaged."""
    state, trouble = read_json(folder / _STATE, dict[str, str], {}, "The search index", "")[0], ""
    place = folder / Path(state.get("folder", "")).name
    if place.match("index-*") and state.get("held") == held:
        try:
            if changed := [name for name in cells.FILES if state.get(name) != sha256_of(place / name)]:
                raise ValueError(f"{changed[0]} was changed after it was written")
            own = cells.Cells(place)
            check(found := Index(held, own.size, own.nearest), snapshot)
            return found
        except (OSError, ValueError, EOFError) as error:
            trouble = f"The search index did not match its corpus ({error}). It was rebuilt from the vectors."
            log.warning("The search index of %s did not match its corpus (%s).", folder.name, error)
    if not build:
        raise NotReady(trouble or f"The search index of {folder.name!r} has not been built.")
    refusal = f"Another process is building the search index of {folder.name!r}. Search works without it and is exact."
    with locked_now(folder / "index.build", CorpusLocked(refusal)):
        own = cells.Cells(_rebuilt(folder, snapshot, held, watch))
        return Index(held, own.size, own.nearest, trouble)


def _rebuilt(folder: Path, snapshot: Snapshot, held: str, watch: Watch) -> Path:
    """A new index under a new name; the old folders go."""
    place = folder / f"index-{uuid.uuid4().hex[:12]}"
    with storage("the search index"):
        (folder / _STATE).unlink(missing_ok=True)
        for old in folder.glob("index-*"):
            shutil.rmtree(old, ignore_errors=True)
        place.mkdir()
        cells.build(place, snapshot.vectors, watch)
        hashes = {path.name: sha256_of(path) for path in place.iterdir()}
        replace_file(folder / _STATE, msgspec.json.encode({"folder": place.name, "held": held, **hashes}))
    return place


def _on_server(folder: Path, snapshot: Snapshot, held: str, watch: Watch, build: bool) -> Index:
    """The index on the server, named after the collection's folder; one process at a time brings it up to date."""
    from filelock import FileLock

    def nearest(vector: Floats, count: int) -> NDArray[np.intp]:
        with raised_as(ServerError, "The search index did not answer", "Open the corpus again.", *failures()):
            answer = collection.query(query_embeddings=[vector.tolist()], n_results=count, include=[])
        return np.array(sorted(snapshot.rows(answer["ids"][0]).values()), dtype=np.intp)

    address = os.environ[SERVER]
    way_out = f"Start it with `chroma run`, or unset {SERVER} to use the index in the data folder."
    with raised_as(ServerError, f"The Chroma server at {address} gave an unexpected reply", way_out, *failures()):
        collection = _server_client(address).get_or_create_collection(
            _server_name(folder), embedding_function=None, configuration=_CONFIGURATION
        )
        with FileLock(folder / "server.lock"):
            if (collection.metadata or {}).get("held") != held:
                if not build:
                    raise NotReady(f"The index on {address} does not match the corpus.")
                synchronise(collection, snapshot, watch)
                collection.modify(metadata={"held": held})
        check(found := Index(held, collection.count(), nearest), snapshot)
        return found
