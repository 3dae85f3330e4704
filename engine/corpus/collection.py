"""A named collection: documents, passages and vectors in one folder, with its embedder and its chunking.

`ingest` is one transaction: it reads files, embeds what is new, writes a new generation and makes it current. The same
file again changes nothing and embeds nothing. A changed file replaces its passages; rows that it no longer has go, but
not records of JSONL with an id of their own, which may be split over files of one name. A bad file is skipped with its
reason and the batch goes on. After a cancelled or killed ingest the same files go on where it was.
"""

from __future__ import annotations

import re
import shutil
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from engine.core.errors import (
    CorpusError,
    CorpusLocked,
    CorpusMismatch,
    CorpusNotFound,
    GroundworkError,
    InputError,
    ModelError,
    ServerError,
    StorageError,
)
from engine.core.files import home, locked_now, now
from engine.core.progress import Watch
from engine.core.settings import Chunking
from engine.core.text import counted, titled
from engine.core.values import Document, Passage, T, Value
from engine.corpus import index, large, store
from engine.corpus.chunking import passages
from engine.corpus.formats.records import Fields
from engine.corpus.sources import stream_files
from engine.corpus.store import Manifest, Snapshot, storage
from engine.models.embedder import DEFAULT, embed_passages, full_name, load_embedder
from engine.models.protocols import Embedder, Floats

# Names, and whether a reader and a collection fit together.

_NAME = re.compile(r"[^\W_][\w .\-]{0,63}")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)  # devices of Windows


def corpora_folder() -> Path:
    """Where collections live."""
    return home() / "corpora"


def check_name(name: str) -> str:
    """`name` unchanged; raise `InputError` unless it is a plain name of letters, digits, space, `.`, `-`, `_`."""
    kept = isinstance(name, str) and _NAME.fullmatch(name) and not name.endswith((".", " ")) and ".." not in name
    if kept and _RESERVED.fullmatch(name):
        raise InputError(f"{name!r} is a reserved name on Windows and cannot name a corpus. Choose another name.")
    if not kept:
        raise InputError(
            f"{name!r} cannot name a corpus. Use 1 to 64 letters, digits, spaces, dots, hyphens or underscores."
        )
    return name


def check_new_name(name: str) -> str:
    """`name` unchanged; raise `InputError` where some systems would take it for another collection's name."""

    def folded(text: str) -> str:
        return unicodedata.normalize("NFC", text).lower()

    for path in corpora_folder().glob("*") if isinstance(name, str) else ():
        if path.name != name and folded(path.name) == folded(name):
            raise InputError(
                f"There is a corpus {path.name!r}. Windows and macOS cannot tell {name!r} from it; choose another name."
            )
    return check_name(name)


def list_corpora() -> list[Manifest]:
    """The manifests of all collections, by name; `unreadable_corpora` lists those whose manifest cannot be read."""
    return [manifest for _, manifest in _found() if isinstance(manifest, Manifest)]


def unreadable_corpora() -> dict[str, str]:
    """The problem of each collection with an unreadable manifest, and the way out, by name; `remove` accepts it."""
    return {name: str(error) for name, error in _found() if isinstance(error, CorpusError)}


def _found() -> Iterator[tuple[str, Manifest | CorpusError]]:
    """Every collection's name with its manifest, or the reason why it cannot be read."""
    folder = corpora_folder()
    for place in sorted(place for place in folder.iterdir() if place.is_dir()) if folder.is_dir() else ():
        try:
            if (manifest := store.read_manifest(place)) is not None:
                yield manifest.name, manifest
        except CorpusError as error:
            yield place.name, error


def agree(manifest: Manifest, embedder: Embedder | None, chunking: Chunking | None) -> None:
    """Raise `CorpusMismatch` unless embedder and chunking, where given, are those that made the collection."""
    if embedder is not None and (embedder.name, embedder.dimensions) != (manifest.embedder, manifest.dimensions):
        raise CorpusMismatch(
            f"The corpus {manifest.name!r} was embedded with {manifest.embedder}, not {embedder.name}. "
            f"Search it with {manifest.embedder}, or embed it again: {rebuild_command(manifest.name, embedder.name)}."
        )
    if chunking is not None and chunking != manifest.chunking:
        raise CorpusMismatch(
            f"The corpus {manifest.name!r} was split by {_told(manifest.chunking)}, not by {_told(chunking)}. "
            "Use the same chunking, chunk the corpus again, or ingest under another name."
        )


def rebuild_command(name: str, embedder: str) -> str:
    """The command that embeds a collection again."""
    return f'python -m engine corpora rebuild "{name}" --embedder "{embedder}"'


def _told(how: Chunking) -> str:
    return f"{how.method} to {how.words} words with overlap {how.overlap}"


Absent = Callable[[Snapshot], set[str]]
"""The ids of a snapshot's documents that go because their file no longer has them."""
_ROW = re.compile(r"#\d+$")  # in the source of a table's row
_SNAPSHOTS: dict[Path, Snapshot] = {}  # the latest one of each collection
PIECE = 1_024  # passages embedded and stored at a time; about 15 seconds of work


NAMED = 100  # replaced documents that a report names


class IngestReport(Value, frozen=True):
    """The result of one ingest. `added`, `unchanged` and `replaced` count documents; `skipped` are (name, reason).

    `removed` counts the earlier rows that the files no longer have, `stayed` the records with an id of their own that
    they no longer have.
    `replacements` are the first `NAMED` of the replaced documents, each with the file that has its new text.
    `displaced` are the first of those whose old text was another file's, each with that file.
    `files` counts those that were read, 0 where the documents were given without files.
    """

    added: int
    unchanged: int
    replaced: int
    skipped: tuple[tuple[str, str], ...]
    documents: int
    passages: int
    seconds: float
    files: int = 0
    removed: int = 0
    replacements: tuple[tuple[str, str], ...] = ()
    displaced: tuple[tuple[str, str], ...] = ()
    stayed: int = 0

    @property
    def told(self) -> str:
        """The counts in words; where a file gave several documents, why.

        >>> counts = {"unchanged": 0, "replaced": 0, "skipped": (), "documents": 11, "passages": 17, "seconds": 1.0}
        >>> IngestReport(added=11, files=5, **counts).told
        '5 files, 11 documents: 11 added. Each row of a table or JSONL file is a document.'
        """
        counts = {"added": self.added, "replaced": self.replaced, "unchanged": self.unchanged}
        given = sum(counts.values())
        told = ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "none added"
        if self.removed:
            told += f", {self.removed:,} removed that the files no longer have"
        if self.stayed:
            told += f", {counted(self.stayed, 'record')} kept that the files no longer have"
        rows = " Each row of a table or JSONL file is a document." if given > self.files else ""
        return f"{counted(self.files, 'file')}, {counted(given, 'document')}: {told}.{rows} {self.warning}".strip()

    @property
    def warning(self) -> str:
        """Which documents took the place of another file's, and what to do if they are not the same; else empty."""
        if not self.displaced:
            return ""
        listed = ", ".join(f"{document!r} of {file}" for document, file in self.displaced[:3])
        more = " and others" if len(self.displaced) > 3 else ""
        return f"Replaced by another file's records: {listed}{more}. Different documents need different ids."


def _same_file(one: str, other: str) -> bool:
    """Are two documents of one file, which a folder's name may precede."""
    short, long = sorted((_ROW.sub("", one), _ROW.sub("", other)), key=len)
    return long == short or long.endswith(f"/{short}")


def _is_row(document: Document) -> bool:
    """Is it a row of a table or a numbered record, and not a record with an id of its own?"""
    return bool(_ROW.search(document.source)) or document.id.startswith(f"{document.source}#")


def remove(name: str) -> None:
    """Delete a collection with everything in it, a damaged one too; raise `CorpusNotFound` or `CorpusLocked`."""
    folder = corpora_folder() / check_name(name)
    if not (folder / store.MANIFEST).exists():
        raise _not_found(name)
    with Collection(name, folder, None).writing():
        index.forget(folder)
        (folder / store.MANIFEST).unlink(missing_ok=True)  # first, so that the rest is not taken for a corpus
        shutil.rmtree(folder, ignore_errors=True)


def _not_found(name: str) -> CorpusNotFound:
    known = ", ".join(m.name for m in list_corpora()) or "none yet"
    return CorpusNotFound(f"There is no corpus {name!r}. Available: {known}.")


def embedding_text(passage: Passage) -> str:
    """The text embedded and indexed for a passage: its heading, then the passage's text."""
    return titled(passage.heading, passage.text)


@dataclass(frozen=True)
class Collection:
    """A collection on disk, without documents in memory: `snapshot()` reads the current generation."""

    name: str
    folder: Path
    given: Embedder | None
    chunking: Chunking = field(default_factory=Chunking)

    @classmethod
    def open(cls, name: str, embedder: Embedder | None = None, chunking: Chunking | None = None) -> Collection:
        """Open a collection with its own embedder and chunking; raise `CorpusNotFound`, `CorpusMismatch` for others."""
        folder = corpora_folder() / check_name(name)
        manifest = store.read_manifest(folder)
        if manifest is None:
            raise _not_found(name)
        agree(manifest, embedder, chunking)
        return cls(name, folder, embedder, manifest.chunking)

    @classmethod
    def create(cls, name: str, embedder: Embedder | None = None, chunking: Chunking | None = None) -> Collection:
        """Open a collection, made empty if there is none of that name."""
        folder = corpora_folder() / check_new_name(name)
        if store.read_manifest(folder) is not None:
            return cls.open(name, embedder, chunking)
        model = embedder or load_embedder(DEFAULT)
        how = chunking or Chunking()
        made = cls(name, folder, model, how)
        with store.storage(f"the corpus {name}"):
            folder.mkdir(parents=True, exist_ok=True)
        with made.writing(), store.storage(f"the corpus {name}"):
            if store.read_manifest(folder) is None:  # else another process made it since
                manifest = Manifest(
                    name=name, embedder=model.name, dimensions=model.dimensions, chunking=how, created=now()
                )
                store.write_manifest(folder, manifest)
                return made
        return cls.open(name, embedder, chunking)

    def embedded_by(self, name: str) -> Collection:
        """This collection; raise `CorpusMismatch` unless it was embedded by the embedder of that name (empty: any)."""
        own = self.manifest.embedder
        if name and full_name(name) != own:
            raise CorpusMismatch(
                f"The corpus {self.name!r} was embedded with {own}, not {name}. Leave retrieval.embedder empty, or"
                f" embed it again: {rebuild_command(self.name, name)}."
            )
        return self

    @property
    def embedder(self) -> Embedder:
        """The embedder that made the vectors, loaded when something is to be embedded and not before."""
        return self.given or load_embedder(self.manifest.embedder)

    @property
    def manifest(self) -> Manifest:
        """The manifest currently on disk; raise `CorpusNotFound` if the collection was removed."""
        manifest = store.read_manifest(self.folder)
        if manifest is None:
            raise CorpusNotFound(f"The corpus {self.name!r} was removed. Choose another one.")
        return manifest

    def snapshot(self) -> Snapshot:
        """The current generation, read once and shared; `CorpusMismatch` if it was embedded or chunked anew since."""
        manifest = self.manifest
        agree(manifest, self.given, self.chunking)
        known = _SNAPSHOTS.get(self.folder)
        if known is None or known.manifest != manifest:
            known = _SNAPSHOTS[self.folder] = store.read_snapshot(self.folder, manifest)
        return known

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the collection for writing; raise `CorpusLocked` if another process or thread does."""
        refusal = CorpusLocked(f"The corpus {self.name!r} is being written by another process. Wait until it finishes.")
        with store.storage(f"the corpus {self.name}"):
            lock = locked_now(self.folder / "write.lock", refusal)
        with lock:
            yield

    def ingest(self, paths: Sequence[str | Path], watch: Watch = Watch(), fields: Fields | None = None) -> IngestReport:
        """Make the documents of files part of the collection (see the module), and store the originals of PDFs."""
        skipped: list[tuple[str, str]] = []
        read: list[str] = []
        taken: dict[int, int] = {}
        stayed = [0]
        keep = partial(store.store_original, self.folder)
        documents = stream_files(paths, watch, skipped, fields, keep, read, taken)

        def absent(old: Snapshot) -> set[str]:
            tables = {name for name in read if hash(name) not in taken}  # another file is one document of its name
            earlier = (document for document, _, _ in old.spans() if _ROW.sub("", document.source) in tables)
            gone = {d.id: _is_row(d) for d in earlier if hash(d.id) not in taken} if tables else {}
            stayed.append(sum(not row for row in gone.values()))
            return {name for name, row in gone.items() if row}

        report = self.add(documents, watch, skipped, absent)
        named = tuple((document, _file_of(source, paths)) for document, source in report.replacements)
        return msgspec.structs.replace(report, files=len(read), replacements=named, stayed=stayed[-1])

    def add(
        self,
        documents: Iterable[Document],
        watch: Watch = Watch(),
        skipped: Sequence[tuple[str, str]] = (),
        absent: Absent = lambda _: set(),
    ) -> IngestReport:
        """Make `documents` part of the collection; one with a known id replaces the old one where its text differs.

        `absent` is asked, once all documents came, which of the old ones go.
        """
        started = time.perf_counter()
        with self.writing():
            old = self.snapshot()
            replaced: list[tuple[str, str, str]] = []
            tally = self._write(old, documents, watch, replaced, absent)
            if tally["added"] or tally["replaced"] or tally["removed"]:
                index.keep_in_step(self.folder, self.snapshot(), watch)
            if tally["replaced"]:
                store.drop_originals(self.folder, (document for document, _, _ in self.snapshot().spans()))
        now = self.manifest
        return IngestReport(
            **{what: tally[what] for what in ("added", "unchanged", "replaced", "removed")},
            skipped=tuple(skipped),
            documents=now.documents,
            passages=now.passages,
            seconds=time.perf_counter() - started,
            replacements=tuple((document, source) for document, source, _ in replaced[:NAMED]),
            displaced=tuple((document, old) for document, new, old in replaced if not _same_file(new, old)),
        )

    def rebuild(
        self, embedder: Embedder | None = None, chunking: Chunking | None = None, watch: Watch = Watch()
    ) -> Collection:
        """Chunk and embed the stored documents again, with another chunking or embedder where given; return it so.

        Cancelled or killed, it leaves the old state; started again, it embeds only what was not embedded yet.
        """
        new = Collection(self.name, self.folder, embedder or self.embedder, chunking or self.chunking)
        with new.writing():
            before = self.manifest
            documents = store.read_documents(self.folder, before)
            manifest = msgspec.structs.replace(
                before, embedder=new.embedder.name, dimensions=new.embedder.dimensions, chunking=new.chunking
            )
            if documents:
                new._write(store.empty(manifest), documents.values(), watch, [])
                index.keep_in_step(new.folder, new.snapshot(), watch)
            else:
                store.write_manifest(new.folder, manifest)
        return new

    def _write(
        self,
        old: Snapshot,
        documents: Iterable[Document],
        watch: Watch,
        replaced: list[tuple[str, str, str]],
        absent: Absent = lambda _: set(),
    ) -> Counter[str]:
        """Write the generation in which the new and changed documents stand before all others; how many were what.

        The replaced ones are added to `replaced` with their sources, the new and the old one.
        """
        coming = iter(documents)
        held = list(_held(coming))
        more = list(islice(coming, 1))
        total = sum(len(passages(d, self.chunking)) for d in held if _change(old, d) != "unchanged")
        if not total and not more and not absent(old):
            return Counter(_change(old, d) for d in held)
        tally: Counter[str] = Counter()
        manifest = old.manifest
        made = msgspec.json.encode((manifest.embedder, manifest.dimensions, manifest.chunking))
        with storage(f"the corpus {self.name}"):
            stage = large.Staging(self.folder, manifest.dimensions, made)
        with closing(stage) as staged:
            documents = chain(held, more, coming)
            new = ((d, passages(d, self.chunking)) for d in self._new(old, documents, staged, tally, replaced))
            for batch in _batches(new, lambda item: len(item[1])):
                vectors = self._vectors(old, batch, watch.part(staged.passages, total))
                with storage(f"the corpus {self.name}"):
                    staged.add([(d, [(p.start, p.end) for p in found]) for d, found in batch], vectors)
            gone = absent(old)
            tally["removed"] = len(gone)
            if not staged.passages and not gone:
                return tally
            kept = (part for part in old.spans() if part[0].id not in gone and not staged.has(part[0].id))
            with storage(f"the corpus {self.name}"):
                for part in _batches(kept, lambda item: len(item[2])):
                    watch.step("store", staged.passages, 0)
                    rows = [first + i for _, first, spans in part for i in range(len(spans))]
                    staged.add([(document, spans) for document, _, spans in part], old.vectors[rows])
            current = store.place_generation(self.folder, staged, msgspec.structs.replace(manifest, changed=now()))
        store.drop_old_generations(self.folder, current.generation, keep=int(current.passages <= large.FROM))
        return tally

    def _new(
        self,
        old: Snapshot,
        documents: Iterable[Document],
        staged: large.Staging,
        tally: Counter[str],
        replaced: list[tuple[str, str, str]],
    ) -> Iterator[Document]:
        """Documents that are new or changed and not yet in the stage; raise `InputError` for two of one id."""
        for document in documents:
            what = _change(old, document)
            tally[what] += 1
            if what == "unchanged":
                continue
            if what == "replaced":
                before = old.documents[document.id].source
                tally["displaced"] += (other := not _same_file(document.source, before))
                if len(replaced) < NAMED or (other and tally["displaced"] <= NAMED):
                    replaced.append((document.id, document.source, before))
            if staged.has(document.id):
                raise InputError(f"Two of these documents have the id {document.id!r}. Rename one of them.")
            if not staged.again(document):
                yield document

    def _vectors(self, old: Snapshot, batch: Sequence[tuple[Document, Sequence[Passage]]], watch: Watch) -> Floats:
        """The vectors of a batch's passages; those of texts that the collection has are taken from it."""
        texts = [embedding_text(p) for _, found in batch for p in found]
        had = {embedding_text(p): row for document, _ in batch for row, p in old.rows_of(document.id)}
        vectors = np.zeros((len(texts), self.embedder.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            if text in had:
                vectors[row] = old.vectors[had[text]]
        missing = [row for row, text in enumerate(texts) if text not in had]
        vectors[missing] = embed_passages(self.embedder, [texts[row] for row in missing], watch)
        return vectors


def _file_of(source: str, paths: Iterable[str | Path]) -> str:
    """The one of the paths, or the file below one, that a document's source names; the source where it is in neither.

    Files of one name in two folders are one document, so the name alone does not tell which of them was read. The
    source of a table's row is the file with the row's number ("bought.csv#3").
    """
    name = _ROW.sub("", source)
    for path in map(Path, paths):
        place = path / name if path.is_dir() else path.parent / name
        if place.is_file() and (path.is_dir() or place == path):
            return str(place)
    return source


_HELD = 32_000_000  # characters of documents held in memory until it is known whether there are more


def _held(documents: Iterator[Document]) -> Iterator[Document]:
    """The first documents of a stream, as many as memory may hold."""
    characters = 0
    for document in islice(documents, large.FROM):
        yield document
        characters += len(document.text)
        if characters > _HELD:
            return


def _change(old: Snapshot, document: Document) -> str:
    """The effect of ingesting a document: "added", "replaced", or "unchanged"."""
    had = old.documents.get(document.id)
    return "added" if had is None else "unchanged" if had == document else "replaced"


def _batches(items: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """The items in lists that hold about `PIECE` passages by `size`."""
    batch: list[T] = []
    held = 0
    for item in items:
        batch.append(item)
        held += size(item)
        if held >= PIECE:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


# Is a collection whole: its files' hashes, its offsets, its vectors, its index; and what can be mended is mended. The
# documents are the truth: passages and vectors are made again from them, the index from the vectors.


class Health(Value, frozen=True):
    """The result of a check. `notes` say in sentences what was wrong and what was done about it."""

    state: Literal["good", "mended", "damaged"]
    notes: tuple[str, ...] = ()


def health(name: str, watch: Watch = Watch()) -> Health:
    """Check a collection, with its index if it has one, and mend what can be mended; raise `CorpusNotFound`."""
    collection = Collection.open(name)
    manifest = collection.manifest
    wrong = store.verify_hashes(collection.folder, manifest) if manifest.generation else []
    if {"documents.jsonl", large.TEXT} & set(wrong):
        lost = "The stored documents are damaged. Remove the corpus and ingest its files again."
        return Health(state="damaged", notes=(lost,))
    notes: list[str] = []
    try:
        if wrong:
            collection.rebuild(watch=watch)
            notes.append(f"{' and '.join(wrong)} did not match the stored documents and were rebuilt from them.")
        snapshot = collection.snapshot()
    except (CorpusError, ModelError, StorageError) as error:
        return Health(state="damaged", notes=(*notes, str(error)))
    # Offsets hold where the files are as they were written: passages are spans of the stored documents.
    if broken := not np.isfinite(snapshot.vectors).all():
        notes.append("Some vectors contain values that are not numbers.")
    index.close_index(collection.folder)  # an open one is not compared with its files again
    try:
        if snapshot.passages and index.exists(collection.folder):
            notes += filter(None, [index.open_index(collection.folder, snapshot, watch).repaired])
    except GroundworkError as error:  # not damage where another process builds the index or the server is away
        away = isinstance(error, CorpusLocked | ServerError) and not broken
        return Health(state="good" if away else "damaged", notes=(*notes, str(error)))
    return Health(state="damaged" if broken else "mended" if notes else "good", notes=tuple(notes))
