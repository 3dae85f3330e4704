"""A named collection: documents, passages and vectors under one folder, with the embedder and chunking it was
made with.

`ingest` is one transaction: it reads files, embeds what is new, writes a new generation and makes it current. The
same file again changes nothing and embeds nothing; a changed file replaces its passages; a bad file is skipped
with its reason and the batch goes on. Vectors already embedded are kept by text across a cancel or a kill.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from engine.clock import now
from engine.corpus import index, store
from engine.corpus.chunking import passages
from engine.corpus.formats.jsonl import Fields
from engine.corpus.names import agree, check_name, corpora_folder
from engine.corpus.names import list_corpora as list_corpora
from engine.corpus.names import unreadable_corpora as unreadable_corpora
from engine.corpus.pending import drop_pending, embed_resumably
from engine.corpus.sources import read_files
from engine.corpus.store import Manifest, Snapshot
from engine.errors import CorpusLocked, CorpusNotFound
from engine.models.embedder import DEFAULT, load_embedder
from engine.models.protocols import Embedder
from engine.progress import Watch
from engine.settings import Chunking
from engine.text import titled
from engine.types import Document, Passage, Value


class IngestReport(Value, frozen=True):
    """What one ingest did. `added`, `unchanged` and `replaced` count documents; `skipped` are (name, reason)."""

    added: int
    unchanged: int
    replaced: int
    skipped: tuple[tuple[str, str], ...]
    documents: int
    passages: int
    seconds: float


def remove(name: str) -> None:
    """Delete a collection with everything in it, a damaged one too; raise `CorpusNotFound` or `CorpusLocked`."""
    folder = corpora_folder() / check_name(name)
    if not (folder / store.MANIFEST).exists():
        raise _not_found(name)
    collection = Collection(name, folder, None)
    with collection.writing():
        index.forget(collection.folder)
        (collection.folder / store.MANIFEST).unlink()
    shutil.rmtree(collection.folder, ignore_errors=True)


def _not_found(name: str) -> CorpusNotFound:
    """The error for a name that no collection has, with those there are."""
    known = ", ".join(m.name for m in list_corpora()) or "none yet"
    return CorpusNotFound(f"There is no collection {name!r}. There are: {known}.")


def embedding_text(passage: Passage) -> str:
    """What is embedded and indexed for a passage: the document's title in front of its text."""
    return titled(passage.title, passage.text)


@dataclass(frozen=True)
class Collection:
    """A collection on disk; holds no documents itself: `snapshot()` reads the current generation."""

    name: str
    folder: Path
    given: Embedder | None
    chunking: Chunking = field(default_factory=Chunking)

    @classmethod
    def open(cls, name: str, embedder: Embedder | None = None, chunking: Chunking | None = None) -> Collection:
        """Open an existing collection with the embedder and chunking it remembers.

        Raises `CorpusNotFound`, or `CorpusMismatch` where another embedder or chunking is asked for.
        """
        folder = corpora_folder() / check_name(name)
        manifest = store.read_manifest(folder)
        if manifest is None:
            raise _not_found(name)
        agree(manifest, embedder, chunking)
        return cls(name, folder, embedder, manifest.chunking)

    @classmethod
    def create(cls, name: str, embedder: Embedder | None = None, chunking: Chunking | None = None) -> Collection:
        """Open a collection, made empty if there is none of that name."""
        folder = corpora_folder() / check_name(name)
        if store.read_manifest(folder) is not None:
            return cls.open(name, embedder, chunking)
        model = embedder or load_embedder(DEFAULT)
        how = chunking or Chunking()
        with store.storage(f"the collection {name}"):
            folder.mkdir(parents=True, exist_ok=True)
            manifest = Manifest(
                name=name, embedder=model.name, dimensions=model.dimensions, chunking=how, created=now()
            )
            store.write_manifest(folder, manifest)
        return cls(name, folder, model, how)

    @property
    def embedder(self) -> Embedder:
        """The embedder that made the vectors, loaded when something is to be embedded and not before."""
        return self.given or load_embedder(self.manifest.embedder)

    @property
    def manifest(self) -> Manifest:
        """The manifest as it stands on the disk now; raise `CorpusNotFound` if the collection was removed."""
        manifest = store.read_manifest(self.folder)
        if manifest is None:
            raise CorpusNotFound(f"The collection {self.name!r} was removed. Choose another one.")
        return manifest

    def snapshot(self) -> Snapshot:
        """The current generation; read once and shared until a new one is current.

        Raises `CorpusMismatch` if the collection was embedded or chunked anew since it was opened here.
        """
        manifest = self.manifest
        agree(manifest, self.given, self.chunking)
        return _cached_snapshot(self.folder, manifest)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the collection for writing; raise `CorpusLocked` if another process or thread does."""
        from filelock import FileLock, Timeout

        with store.storage(f"the collection {self.name}"):
            lock = FileLock(self.folder / "write.lock", thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise CorpusLocked(
                f"The collection {self.name!r} is being written by another process. Wait until it has finished."
            ) from error
        try:
            yield
        finally:
            lock.release()

    def ingest(
        self, paths: Sequence[str | Path], watch: Watch | None = None, fields: Fields | None = None
    ) -> IngestReport:
        """Read files and make their documents part of the collection; see the module's docstring."""
        documents, skipped = read_files(paths, watch or Watch(), fields)
        return self.add(documents, watch, skipped)

    def add(
        self, documents: Iterable[Document], watch: Watch | None = None, skipped: Sequence[tuple[str, str]] = ()
    ) -> IngestReport:
        """Make `documents` part of the collection; one with a known id replaces the old one where its text differs."""
        watch = watch or Watch()
        started = time.perf_counter()
        with self.writing():
            old = self.snapshot()
            new = {d.id: d for d in documents}
            changed = {k: d for k, d in new.items() if old.documents.get(k) != d}
            if changed:
                self._write(old, changed, watch)
                index.keep_in_step(self.folder, self.snapshot(), watch)
        replaced = len(changed.keys() & old.documents.keys())
        now = self.manifest
        return IngestReport(
            added=len(changed) - replaced,
            unchanged=len(new) - len(changed),
            replaced=replaced,
            skipped=tuple(skipped),
            documents=now.documents,
            passages=now.passages,
            seconds=time.perf_counter() - started,
        )

    def rebuild(
        self, embedder: Embedder | None = None, chunking: Chunking | None = None, watch: Watch | None = None
    ) -> Collection:
        """Chunk and embed the stored documents again, with another chunking or embedder where given; return it so.

        Cancelled or killed, it leaves the old state; started again, it embeds only what was not embedded yet.
        """
        documents = store.read_documents(self.folder, self.manifest) if self.manifest.generation else {}
        new = Collection(self.name, self.folder, embedder or self.embedder, chunking or self.chunking)
        new.rebuild_from(documents, watch or Watch())
        return new

    def rebuild_from(self, documents: dict[str, Document], watch: Watch) -> None:
        """Write a generation made of nothing but `documents`, this embedder and this chunking."""
        with self.writing():
            manifest = msgspec.structs.replace(
                self.manifest, embedder=self.embedder.name, dimensions=self.embedder.dimensions, chunking=self.chunking
            )
            self._write(store.empty(manifest), documents, watch)

    def _write(self, old: Snapshot, changed: dict[str, Document], watch: Watch) -> None:
        """Write the generation in which `changed` documents take the place of their old selves."""
        kept = np.array([p.document not in changed for p in old.passages], dtype=bool)
        fresh = [p for d in changed.values() for p in passages(d, self.chunking)]
        had = {embedding_text(p): row for row, p in enumerate(old.passages) if not kept[row]}
        known = {text: old.vectors[row] for text, row in had.items()}
        vectors = embed_resumably(self.folder, self.embedder, [embedding_text(p) for p in fresh], watch, known)
        watch.step("store", 0, 1)
        new = Snapshot(
            msgspec.structs.replace(old.manifest, changed=now()),
            {**old.documents, **changed},
            (*(p for p, keep in zip(old.passages, kept, strict=True) if keep), *fresh),
            np.concatenate([old.vectors[kept], vectors]) if kept.any() else vectors,
        )
        manifest = store.write_generation(self.folder, new)
        store.drop_old_generations(self.folder, manifest.generation)
        drop_pending(self.folder)


_SNAPSHOTS: dict[Path, Snapshot] = {}


def _cached_snapshot(folder: Path, manifest: Manifest) -> Snapshot:
    """The snapshot of a manifest, the latest one of each collection kept in memory."""
    known = _SNAPSHOTS.get(folder)
    if known is None or known.manifest != manifest:
        known = store.read_snapshot(folder, manifest)
        _SNAPSHOTS[folder] = known
    return known
