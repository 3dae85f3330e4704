"""The files of one collection: our own, and the truth. Every index is made from them.

    corpora/NAME/
      manifest.json        what the collection is and which generation is current; replaced atomically, last
      generation-0001/     text.sqlite (see `large.py`), vectors.npy (float32), row i = passage i;
                           in older collections documents.jsonl and passages.jsonl in place of text.sqlite
      originals/           the PDF files, SHA-256 of the text read from each: to show a page; may be missing
      staged/              the next generation while it is written
      index-*/             the search index of a large collection; may be deleted at any time

A generation is written whole under a name of its own and never changed; renaming the manifest makes it current.
A process killed at any point leaves either the old manifest or the new one, each with all its files.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np

from engine.core.errors import CorpusError, StorageError, raised_as
from engine.core.files import place_folder, replace_file, sha256_of
from engine.core.settings import Chunking
from engine.core.text import Span
from engine.core.values import Document, Passage, T, Value, decoded, sha256
from engine.corpus import large
from engine.models.protocols import Floats

MANIFEST = "manifest.json"
PDF = "application/pdf"
SCHEMA = 1


class Manifest(Value, frozen=True):
    """The description of a collection. `hashes` are SHA-256 of the current generation's files by name."""

    name: str
    embedder: str
    dimensions: int
    chunking: Chunking
    generation: int = 0
    documents: int = 0
    passages: int = 0
    hashes: dict[str, str] = {}
    created: str = ""
    changed: str = ""
    schema: int = SCHEMA


@dataclass(frozen=True)
class Snapshot:
    """One generation; `vectors`: (len(passages), dimensions), unit rows. Large ones read texts when asked for them."""

    manifest: Manifest
    documents: Mapping[str, Document]
    passages: Sequence[Passage]
    vectors: Floats

    def rows(self, passages: Iterable[str]) -> dict[str, int]:
        """The rows of those of the passages, by id, that are here."""
        if not isinstance(self.passages, large.StoredPassages):
            wanted = set(passages)
            return {p.id: row for row, p in enumerate(self.passages) if p.id in wanted}
        named = {name: name.rpartition("@")[0] for name in passages}  # see `chunking.passages`
        there = {p.id: row for document in set(named.values()) for row, p in self.rows_of(document)}
        return {name: there[name] for name in named if name in there}

    def named(self, passages: Iterable[str]) -> dict[str, Passage]:
        """Those of the passages, by id, that are here."""
        return {name: self.passages[row] for name, row in self.rows(passages).items()}

    def spans(self) -> Iterator[tuple[Document, int, list[Span]]]:
        """Every document with its first row and the spans of its passages, which are consecutive rows."""
        if isinstance(self.documents, large.StoredDocuments):
            yield from self.documents.all()
            return
        for name, document in self.documents.items():
            rows = self._places.get(name, range(0))
            yield document, rows.start, [(p.start, p.end) for p in map(self.passages.__getitem__, rows)]

    @cached_property
    def listing(self) -> list[tuple[str, str, int]]:
        """The id, title (else the id again) and number of passages of every document; read once."""
        return [(document.id, document.title or document.id, len(spans)) for document, _, spans in self.spans()]

    def rows_of(self, name: str) -> Iterator[tuple[int, Passage]]:
        """A document's passages with their rows, in order."""
        if isinstance(self.passages, large.StoredPassages):
            return self.passages.rows_of(name)
        return ((row, self.passages[row]) for row in self._places.get(name, ()))

    @cached_property
    def _places(self) -> dict[str, range]:
        """The rows of each document that has some, where the passages are in memory."""
        places: dict[str, range] = {}
        for row, passage in enumerate(self.passages):
            places[passage.document] = range(places.get(passage.document, range(row, 0)).start, row + 1)
        return places


def empty(manifest: Manifest) -> Snapshot:
    """The snapshot of a collection that holds nothing yet."""
    return Snapshot(manifest, {}, (), np.zeros((0, manifest.dimensions), dtype=np.float32))


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest; None where there is none; raise `CorpusError` where it cannot be read or understood."""
    try:
        data = (folder / MANIFEST).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        unread = f"The manifest of the corpus {folder.name} cannot be read ({error.strerror})"
        raise CorpusError(f"{unread}. Check that you may read it.") from error
    damaged = f"The corpus {folder.name} has a damaged manifest"
    with raised_as(CorpusError, damaged, "Remove it and ingest its files again.", msgspec.DecodeError):
        manifest = decoded(data, Manifest)
    if manifest.schema > SCHEMA:
        raise CorpusError(f"The corpus {folder.name} was created by a newer version of Groundwork. Update Groundwork.")
    return msgspec.structs.replace(manifest, name=folder.name)  # a copied or renamed folder has the old name in it


def read_snapshot(folder: Path, manifest: Manifest) -> Snapshot:
    """The current generation; raise `CorpusError` where a file is missing or does not fit the manifest."""
    if not manifest.generation:
        return empty(manifest)
    place = generation_folder(folder, manifest.generation)
    with _reading(folder):
        documents, passages = _texts(place)
        if len(passages) != manifest.passages:
            raise ValueError("counts do not agree")
    with _reading(folder, "vectors", "Make them again: python -m engine corpora."):
        vectors: Floats = np.load(place / large.VECTORS, mmap_mode="r", allow_pickle=False)
        if vectors.shape != (len(passages), manifest.dimensions):
            raise ValueError("counts do not agree")
    return Snapshot(manifest, documents, passages, vectors)


def read_documents(folder: Path, manifest: Manifest) -> Mapping[str, Document]:
    """The current generation's documents alone, if there is one; raise `CorpusError` where they cannot be read."""
    if not manifest.generation:
        return {}
    with _reading(folder):
        return _texts(generation_folder(folder, manifest.generation), of_passages=False)[0]


def _reading(folder: Path, what: str = "files", way_out: str = large.LOST) -> AbstractContextManager[None]:
    """Around what reads a generation: `CorpusError` where a file is missing or is not as it was written."""
    damaged = f"The stored {what} of the corpus {folder.name} are damaged"
    return raised_as(CorpusError, damaged, way_out, OSError, EOFError, *large.FAILURES)  # numpy's for an empty file


def _texts(place: Path, *, of_passages: bool = True) -> tuple[Mapping[str, Document], Sequence[Passage]]:
    """A generation's documents by id, and its passages; in memory up to `large.FROM` passages."""
    if (place / large.TEXT).exists():
        stored = large.StoredDocuments(place / large.TEXT)
        return stored.whole() if stored.passages <= large.FROM else (stored, large.StoredPassages(stored))
    documents = {d.id: d for d in _read_lines(place / "documents.jsonl", Document)}  # the first form
    return documents, tuple(_read_lines(place / "passages.jsonl", Passage)) if of_passages else ()


def verify_hashes(folder: Path, manifest: Manifest) -> list[str]:
    """Names of the current generation's files whose bytes are not those that were written."""
    place = generation_folder(folder, manifest.generation)
    return [name for name, digest in manifest.hashes.items() if _digest(place / name) != digest]


def place_generation(folder: Path, staged: large.Staging, manifest: Manifest) -> Manifest:
    """Make what was staged the next generation and current; raise `StorageError` with nothing changed."""
    with storage(f"the corpus {manifest.name}"):
        documents = staged.finish()
        hashes = {name: sha256_of(staged.place / name) for name in (large.TEXT, large.VECTORS)}
        place = generation_folder(folder, manifest.generation + 1)
        shutil.rmtree(place, ignore_errors=True)
        place_folder(staged.place, place)
        counts = {"generation": manifest.generation + 1, "documents": documents, "passages": staged.passages}
        placed = msgspec.structs.replace(manifest, **counts, hashes=hashes)
        write_manifest(folder, placed)
        return placed


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest atomically."""
    replace_file(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1))


def drop_old_generations(folder: Path, current: int, keep: int) -> None:
    """Delete generations older than the `keep` before the current one, and any newer one left by a crash.

    A reader that still holds a dropped generation's vectors mapped keeps them until it lets go.
    """
    for place in folder.glob("generation-*"):
        number = int(place.name.removeprefix("generation-"))
        if number > current or number < current - keep:
            shutil.rmtree(place, ignore_errors=True)


def generation_folder(folder: Path, number: int) -> Path:
    """Where generation `number` stands."""
    return folder / f"generation-{number:04d}"


def storage(what: str) -> AbstractContextManager[None]:
    """Turn a full disk or a folder that cannot be written into a `StorageError`."""
    way_out = "Free some space or choose another GROUNDWORK_HOME. Earlier data is intact."
    return raised_as(StorageError, f"Writing {what} failed", way_out, OSError, sqlite3.Error)


# The PDF files that documents were read from, so that a page can be shown as it looks. Nothing else depends on them: a
# collection made before they were stored shows text alone until the same files are ingested again.


def store_original(folder: Path, document: Document, data: bytes) -> None:
    """Store the file of a document that was read from a PDF, whole; raise `StorageError`."""
    if document.media_type == PDF and not (path := _original(folder, document)).exists():
        with storage("the original files"):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, data)


def original_of(folder: Path, document: Document) -> Path | None:
    """The stored file of a document, None where there is none."""
    path = _original(folder, document)
    return path if path.is_file() else None


def originals_size(folder: Path) -> int:
    """Bytes of all the stored files of a collection."""
    return sum(path.stat().st_size for path in (folder / "originals").glob("*.pdf"))


def drop_originals(folder: Path, documents: Iterable[Document]) -> None:
    """Delete the files that none of `documents` was read from."""
    stored = set((folder / "originals").glob("*.pdf"))
    if stored:
        for path in stored - {_original(folder, document) for document in documents}:
            path.unlink(missing_ok=True)


def _original(folder: Path, document: Document) -> Path:
    return folder / "originals" / f"{sha256(document.text)}.pdf"


def _read_lines(path: Path, kind: type[T]) -> list[T]:
    with path.open("rb") as file:
        return [decoded(line, kind) for line in file]


def _digest(path: Path) -> str:
    """SHA-256 of a file, or an empty string where it cannot be read."""
    try:
        return sha256_of(path)
    except OSError:
        return ""
