"""A generation on the disk: texts in SQLite, vectors in a mapped file, both written batch by batch.

    generation-0001/     text.sqlite (documents, each with the places of its passages), vectors.npy as elsewhere

A document's passages are consecutive rows. The generation grows in `staged/` until it is whole; every batch there is on
the disk before the next begins, so an ingest that was stopped or killed goes on where it was when the same documents
come again.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, overload

import msgspec
import numpy as np
from numpy.lib.format import write_array_header_1_0

from engine.core.errors import CorpusError, raised_as
from engine.core.text import Span, well_formed
from engine.core.values import Document, DocumentSection, Passage, converted
from engine.corpus.chunking import passages_at
from engine.models.protocols import Floats

TEXT, VECTORS = "text.sqlite", "vectors.npy"
FROM = 50_000  # passages; a collection of more is not held in memory
_HEADER = 128  # bytes of the vectors' header, of whatever length the array is
_PAGE = 1_000  # documents read at a time
_SCHEMA = """
CREATE TABLE IF NOT EXISTS made (by BLOB);
CREATE TABLE IF NOT EXISTS documents (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, first INTEGER NOT NULL, spans BLOB, text BLOB, rest BLOB);
CREATE INDEX IF NOT EXISTS places ON documents (first);
"""
_LAST = "SELECT first, length(spans) / 8 FROM documents ORDER BY number DESC LIMIT 1"  # their sum is the rows
FAILURES = (sqlite3.Error, zlib.error, ValueError, msgspec.DecodeError)  # of reading a damaged file
LOST = "Remove the corpus and ingest its files again."
_COLUMNS = "SELECT number, id, first, spans, text, rest FROM documents"


class _Rest(NamedTuple):
    """A document as it is stored, less its id and its text."""

    title: str
    source: str
    media_type: str
    sections: tuple[DocumentSection, ...]
    pages: tuple[int, ...]


class StoredDocuments(Mapping[str, Document]):
    """The documents of a generation by id, in stored order, read when asked for; several threads may ask."""

    def __init__(self, path: Path) -> None:
        """Open `text.sqlite`, which nobody changes any more; raise `CorpusError` where it is none."""
        damaged = f"The stored files of the corpus {path.parent.parent.name} are damaged"
        self._reading = partial(raised_as, CorpusError, damaged, LOST, *FAILURES)
        self._file = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
        )
        self._one_at_a_time = threading.Lock()
        self._size = int(self.ask("SELECT count(*) FROM documents")[0][0])
        self.passages = int(sum((self.ask(_LAST) or [(0,)])[0]))

    def ask(self, query: str, *values: object) -> list[Any]:
        """The rows that answer a query."""
        with self._one_at_a_time, self._reading():
            return self._file.execute(query, values).fetchall()

    def all(self) -> Iterator[tuple[Document, int, list[Span]]]:
        """Every document in stored order with its first row and its spans."""
        last = -1
        while page := self.ask(f"{_COLUMNS} WHERE number > ? ORDER BY number LIMIT {_PAGE}", last):
            last = page[-1][0]
            yield from map(self._document, page)

    def whole(self) -> tuple[dict[str, Document], tuple[Passage, ...]]:
        """All documents by id and all passages; the file is closed."""
        found = list(self.all())
        self._file.close()
        passages = tuple(passage for document, _, spans in found for passage in passages_at(document, spans))
        return {document.id: document for document, _, _ in found}, passages

    def named(self, name: object) -> tuple[Document, int, list[Span]] | None:
        """A document by its id."""
        can_be_asked = isinstance(name, str) and well_formed(name) == name
        found = self.ask(f"{_COLUMNS} WHERE id = ?", name) if can_be_asked else []
        return self._document(found[0]) if found else None

    def holding(self, row: int) -> tuple[Document, int, list[Span]]:
        """The document whose passage has this row."""
        return self._document(self.ask(f"{_COLUMNS} WHERE first <= ? ORDER BY first DESC, number DESC LIMIT 1", row)[0])

    def _document(self, row: Any) -> tuple[Document, int, list[Span]]:
        with self._reading():
            return _read(row)

    def __getitem__(self, name: str) -> Document:
        found = self.named(name)
        if found is None:
            raise KeyError(name)
        return found[0]

    def __iter__(self) -> Iterator[str]:
        return (document.id for document, _, _ in self.all())

    def __len__(self) -> int:
        return self._size


def _read(row: tuple[int, str, int, bytes, bytes, bytes]) -> tuple[Document, int, list[Span]]:
    """A document with its first row and the spans of its passages."""
    _, name, first, spans, text, rest = row
    more = converted(msgspec.msgpack.decode(rest), _Rest)
    document = Document(id=name, text=zlib.decompress(text).decode(), **more._asdict())
    pairs = np.frombuffer(spans, dtype="<u4").reshape(-1, 2).tolist()
    return document, first, [(start, end) for start, end in pairs]


class StoredPassages(Sequence[Passage]):
    """The passages by row."""

    def __init__(self, documents: StoredDocuments) -> None:
        self._documents, self._size = documents, documents.passages

    @overload
    def __getitem__(self, row: int) -> Passage: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[Passage]: ...
    def __getitem__(self, row: int | slice) -> Passage | Sequence[Passage]:
        if isinstance(row, slice):
            return [self[each] for each in range(self._size)[row]]
        place = range(self._size)[row]
        document, first, spans = self._documents.holding(place)
        ordinal = place - first
        return next(passages_at(document, spans[ordinal : ordinal + 1], ordinal))

    def __iter__(self) -> Iterator[Passage]:
        return (passage for document, _, spans in self._documents.all() for passage in passages_at(document, spans))

    def __len__(self) -> int:
        return self._size

    def rows_of(self, name: str) -> Iterator[tuple[int, Passage]]:
        """The passages of a document with their rows; nothing if the document does not exist."""
        found = self._documents.named(name)
        return enumerate(passages_at(found[0], found[2]), found[1]) if found else iter(())


class Staging:
    """The next generation while it grows in `staged/`."""

    def __init__(self, folder: Path, dimensions: int, made: bytes) -> None:
        """Open what an ingest left that did not finish, or begin.

        `made` names all that vectors and passages depend on; an ingest that depends on anything else does not resume.
        """
        self.place = folder / "staged"
        self._bytes = dimensions * 4
        if not self._opened(made):
            self.close()
            shutil.rmtree(self.place, ignore_errors=True)
            self._opened(made, new=True)
        self._coming: set[str] = set()  # asked for since the last batch
        self.kept = 0  # documents of an earlier ingest that have come again, the first ones of the stage
        self._earlier = self._count()
        self.passages = 0  # rows of the documents kept or added

    def _opened(self, made: bytes, new: bool = False) -> bool:
        """Open both files at the last batch that is whole; False where they are others' or damaged."""
        self.place.mkdir(parents=True, exist_ok=True)
        self._vectors = (self.place / VECTORS).open("wb" if new else "ab")
        self._file = sqlite3.connect(self.place / TEXT, isolation_level=None)
        try:
            self._file.executescript(_SCHEMA)
            if new:
                self._file.execute("INSERT INTO made VALUES (?)", (made,))
                self._write_header(self._vectors, 0)
            known = self._file.execute("SELECT by FROM made").fetchall() == [(made,)]
            rows = int(sum(self._file.execute(_LAST).fetchone() or (0,)))
            return known and self._vectors.tell() >= _HEADER + rows * self._bytes
        except sqlite3.Error:
            return False

    def close(self) -> None:
        """Let go of the files; what was added stays."""
        self._file.close()
        self._vectors.close()

    def again(self, document: Document) -> bool:
        """Is it the next document of the earlier ingest, unchanged, so that it is already here?"""
        if self.kept < self._earlier:
            (found,) = self._file.execute(f"{_COLUMNS} WHERE number = ?", (self.kept,)).fetchall()
            stored, first, spans = _read(found)
            if stored == document:
                self.kept += 1
                self.passages = first + len(spans)
                return True
            self._cut()
        self._coming.add(document.id)
        return False

    def has(self, name: str) -> bool:
        """Is there a document of that id among those kept, added or asked for."""
        if name in self._coming:
            return True
        found = self._file.execute("SELECT number FROM documents WHERE id = ?", (name,)).fetchone()
        return bool(found) and not self.kept <= found[0] < self._earlier

    def add(self, documents: Sequence[tuple[Document, Sequence[Span]]], vectors: Floats) -> None:
        """One batch, on the disk when this returns: its documents with their spans, its vectors in the same order."""
        self._cut()
        self._vectors.truncate(_HEADER + self.passages * self._bytes)
        self._vectors.seek(0, os.SEEK_END)
        self._vectors.write(np.ascontiguousarray(vectors, dtype=np.float32).data)
        self._vectors.flush()
        os.fsync(self._vectors.fileno())
        rows = []
        for number, (document, spans) in enumerate(documents, start=self._count()):
            own = [getattr(document, field) for field in _Rest._fields]
            places = np.array(spans, dtype="<u4").tobytes()
            text = zlib.compress(document.text.encode(), 1)
            rows.append((number, document.id, self.passages, places, text, msgspec.msgpack.encode(own)))
            self.passages += len(spans)
        self._file.execute("BEGIN")
        self._file.executemany("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?)", rows)
        self._file.execute("COMMIT")
        self._coming.clear()

    def finish(self) -> int:
        """Make the files what readers expect; the number of documents."""
        self._cut()
        self._vectors.truncate(_HEADER + self.passages * self._bytes)
        count = self._count()
        self.close()
        with (self.place / VECTORS).open("rb+") as file:
            self._write_header(file, self.passages)
        return count

    def _write_header(self, file: BinaryIO, rows: int) -> None:
        """The header of a float32 array of that many rows; numpy leaves room in it for any number."""
        shape = (rows, self._bytes // 4)
        write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
        file.flush()

    def _cut(self) -> None:
        """Forget the documents of the earlier ingest that did not come again in their order."""
        if self.kept < self._earlier:
            self._file.execute("DELETE FROM documents WHERE number >= ?", (self.kept,))
            self._earlier = self.kept

    def _count(self) -> int:
        return int(self._file.execute("SELECT coalesce(max(number) + 1, 0) FROM documents").fetchone()[0])
