"""Read documents from single files, folders, zip and tar archives.

Nothing is unpacked to the disk. A name that points out of its archive, a member that unpacks to too much, an archive in
an archive, a link in a folder: each is skipped with its reason and the rest is read. Hidden files are passed over, and
so are links and devices in an archive. The format is told by the name and checked against the bytes; a document's id is
the name it was given by.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from engine.core.errors import FileError, InputError, raised_as
from engine.core.progress import Watch
from engine.core.text import well_formed
from engine.core.values import Document, DocumentSection
from engine.corpus.formats import documents, records
from engine.corpus.formats.documents import DAMAGED, MEMBERS, UNPACKED, check_zip, too_large
from engine.corpus.formats.records import Fields
from engine.corpus.store import PDF

# A document's text never changes after this: every offset points into it.

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MAIL = "message/rfc822"
SUBTITLES = "text/vtt"
LARGEST = 500 * 1024 * 1024  # bytes of one file; above, the text would not fit beside its vectors
_ENDINGS = {
    "text/plain": (".txt", ".text", ".log"),
    "text/markdown": (".md", ".markdown"),
    "application/jsonl": (".jsonl", ".ndjson"),
    "application/json": (".json",),
    MAIL: (".eml",),
    SUBTITLES: (".srt", ".vtt"),
    PDF: (".pdf",),
    DOCX: (".docx",),
    "text/html": (".html", ".htm", ".xhtml"),
    "text/csv": (".csv", ".tsv"),
}
MEDIA_TYPES = {ending: kind for kind, endings in _ENDINGS.items() for ending in endings}
_SIGNATURES = ((b"%PDF-", PDF), (b"PK\x03\x04", "application/zip"))


def load(path: Path) -> list[Document]:
    """The documents of one file, at any size in wiki_dpr's layout; raise `FileError` with what to do."""
    return list(documents_of(_file(path, path.name)))


def documents_of(
    source: Source,
    fields: Fields | None = None,
    watch: Watch = Watch(),
    keep: Keep | None = None,
    bad: records.Bad = records.refuse,
) -> Iterable[Document]:
    """The documents of one source, wiki_dpr's one by one; `keep` gets each other one with the bytes of its file."""
    if fields is None and source.path is not None and records.is_layout(source.path):
        return records.stream(source.path, watch, bad)
    data = source.read()
    found = load_bytes(data, source.name, fields=fields, bad=bad)
    if keep is not None:
        for document in found:
            keep(document, data)
    return found


def read_bytes(path: Path, shown: str) -> bytes:
    """A file's bytes; raise `FileError` for one that cannot be read or is larger than `LARGEST`."""
    with records.readable(shown):
        if not path.is_file():
            raise FileError(f"{shown} is not a file that can be read. Check the path.")
        if path.stat().st_size > LARGEST:
            raise FileError(f"{shown} is larger than {LARGEST // 2**20} MB. Split it into smaller files.")
        return path.read_bytes()


def load_bytes(
    data: bytes, name: str, *, fields: Fields | None = None, bad: records.Bad = records.refuse
) -> list[Document]:
    """The documents of a file's bytes, `name` telling format and id; raise `FileError` with what to do.

    `bad` is told of each record of JSON and CSV that does not fit. `fields` names the fields of JSON records and CSV
    columns. A document without a title has that of its first section, else the file's name less the ending.
    """
    if not data.strip():
        raise FileError(f"{name} is empty. Leave it out, or check that it was saved completely.")
    kind = media_type(name, data)
    sections: tuple[DocumentSection, ...] = ()
    pages: tuple[int, ...] = ()
    title = ""
    if kind == PDF:
        text, pages, title = documents.extract_pdf(data, name)
    elif kind == DOCX:
        text, sections, title = documents.extract_docx(data, name)
    elif kind == MAIL:
        text, title = documents.extract_mail(data, name)
    else:
        text = documents.require_text(documents.decode(data, name), name)
    if kind == "text/plain" and documents.is_markdown(text):
        kind = "text/markdown"
    match kind:
        case "application/jsonl":
            return records.jsonl_documents(text, name, fields, bad)
        case "application/json":
            return records.json_documents(text, name, fields, bad)
        case "text/csv":
            return records.table_documents(text, name, fields, bad)
        case "text/markdown":
            text, sections = documents.render(text)
        case "text/html":
            text, sections, title = documents.extract_html(text)
        case kind if kind == SUBTITLES:
            text = documents.spoken(text)
    title = well_formed(title or (sections[0].title if sections else "") or Path(name).stem.replace("_", " "))
    text = documents.require_text(text, name)
    return [Document(id=name, title=title, text=text, source=name, media_type=kind, sections=sections, pages=pages)]


def media_type(name: str, data: bytes) -> str:
    """The format by suffix, refused where the bytes say otherwise."""
    expected = MEDIA_TYPES.get(Path(name).suffix.lower())
    actual = next((kind for signature, kind in _SIGNATURES if data.lstrip()[:8].startswith(signature)), None)
    if expected is None and actual != PDF:
        raise FileError(f"{name} has an unknown format. Use one of: {', '.join(sorted(MEDIA_TYPES))}.")
    wanted = "application/zip" if expected == DOCX else expected  # what a DOCX is, by its bytes
    if expected in (PDF, DOCX) and actual != wanted:
        kind = Path(name).suffix[1:].upper()
        raise FileError(
            f"{name} does not start like a {kind} file: it is damaged or has another format. Download it again."
        )
    if actual and expected and actual != wanted:
        raise FileError(f"{name} does not match its name: its content is {actual}. Correct the file extension.")
    return expected or actual or ""


Keep = Callable[[Document, bytes], None]
"""Takes a document and the bytes of the file that it was read from."""
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")

_OPENERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}


@dataclass(frozen=True)
class Source:
    """One file to be: its name in ids and messages, how to get its bytes (raises `FileError`), and where it lies."""

    name: str
    read: Callable[[], bytes]
    path: Path | None = None  # None for a member of an archive


def stream_files(
    paths: Sequence[str | Path],
    watch: Watch,
    skipped: list[tuple[str, str]],
    fields: Fields | None = None,
    keep: Keep | None = None,
    read: list[str] | None = None,
    taken: dict[int, int] | None = None,
) -> Iterator[Document]:
    """The documents of files, folders and archives, one by one; a bad file never stops the batch, nor a bad record.

    What is left out is put into `skipped` on the way as (name, reason), the names of the other files into `read`, and
    into `taken` by the hash of its id the hash of each document; `keep` as in `documents_of`. A file in wiki_dpr's
    layout is read twice, once to see what of it can be taken, and never held.
    """
    taken = {} if taken is None else taken
    sources = [source for path in paths for source in files_in(Path(path), skipped)]
    for number, source in enumerate(sources):
        watch.step("read", number, len(sources))
        shown = source.name.encode("utf-8", "replace").decode()
        if shown != source.name:
            skipped.append((shown, "Its name is not UTF-8 text. Rename the file."))
            continue
        bad: list[FileError] = []
        try:
            found = documents_of(source, fields, watch, keep, bad.append)
            own = {hash(d.id): hash(d) for d in records.without_repeats(found, source.name, bad.append)}
        except InputError as error:
            skipped.append((source.name, str(bad[0] if bad else error)))  # of nothing but bad records the first is told
            continue
        skipped += [(source.name, str(error)) for error in bad]
        again = found if isinstance(found, list) else _again(source, fields)
        if any(taken.get(key, value) != value for key, value in own.items()):
            clash = next(d.id for d in again if taken.get(hash(d.id), own[hash(d.id)]) != own[hash(d.id)])
            named = clash == source.name or clash.startswith(f"{source.name}#")  # else by an id of the record's own
            way_out = "Rename one of them." if named else "Give their records different ids."
            reason = f"Another file in this batch also has the document {clash!r}. {way_out}"
            skipped.append((source.name, reason))
            continue
        yield from (d for d in again if hash(d.id) not in taken)
        taken |= own
        if read is not None:
            read.append(source.name)


def _again(source: Source, fields: Fields | None) -> Iterator[Document]:
    """The documents of a source whose bad records are told already."""
    told: list[FileError] = []
    return records.without_repeats(documents_of(source, fields, bad=told.append), source.name, told.append)


def files_in(path: Path, skipped: list[tuple[str, str]]) -> Iterator[Source]:
    """The files of `path`, in the order of their names; anything else is added to `skipped`."""
    if path.is_dir():
        left_out = len(skipped)
        found = list(_folder(path, skipped))
        if not found and len(skipped) == left_out:
            skipped.append((path.name or str(path), "The folder has no files, or hidden ones only. Check the path."))
        yield from found
    elif path.name.lower().endswith(ARCHIVES):
        try:
            yield from _archive(path, skipped)
        except FileError as error:
            skipped.append((path.name, str(error)))
    else:
        yield _file(path, path.name)


def _file(path: Path, shown: str) -> Source:
    """A file on the disk, named `shown` in ids and messages."""
    return Source(shown, partial(read_bytes, path, shown), path)


def _folder(folder: Path, skipped: list[tuple[str, str]]) -> Iterator[Source]:
    """Every file under a folder but hidden ones and archives; links are not followed."""
    for place, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        linked = [f for f in folders if (Path(place) / f).is_symlink()]
        for name in sorted([*names, *linked]):
            path = Path(place) / name
            if name.startswith("."):
                continue
            shown = path.relative_to(folder).as_posix()
            if path.is_symlink():
                skipped.append((shown, "It is a link, and links are not followed. Add what it points to by itself."))
            elif name.lower().endswith(ARCHIVES):
                skipped.append((shown, "An archive inside a folder is left out. Add it by itself."))
            else:
                yield _file(path, shown)


def _archive(path: Path, skipped: list[tuple[str, str]]) -> Iterator[Source]:
    """The members of an archive, each read within the limits."""
    data = read_bytes(path, path.name)
    damaged = f"{path.name} is damaged or not an archive of its type"
    with raised_as(FileError, damaged, "Create it again.", *DAMAGED):
        members = _zip_members(data, path.name) if path.name.lower().endswith(".zip") else _tar_members(data, path.name)
        for name, read in members:
            reason = _refused(name)
            if reason:
                skipped.append((f"{path.name}/{name}", reason))
            elif not any(part.startswith(".") or part == "__MACOSX" for part in PurePosixPath(name).parts):
                yield Source(name, read)


def _zip_members(data: bytes, shown: str) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """(name, read) of a zip archive's files."""
    archive = zipfile.ZipFile(io.BytesIO(data))
    check_zip(archive, shown)
    for member in archive.infolist():
        if not member.is_dir():
            yield member.filename, partial(_read_zip, archive, member)


def _read_zip(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    if member.flag_bits & 1:
        raise FileError(f"{member.filename} is protected by a password. Create it without one.")
    with _inside_archive(member.filename), archive.open(member) as file:
        data = file.read(member.file_size + 1)
    if len(data) > min(member.file_size, LARGEST):
        raise too_large(member.filename)
    return data


def _tar_members(data: bytes, shown: str) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """(name, read) of a tar archive's regular files; links and devices are left out."""
    if _unpacked_size(data) > UNPACKED:
        raise too_large(shown)
    archive = tarfile.open(fileobj=io.BytesIO(data))  # noqa: SIM115 (members are read after this has returned)
    for number, member in enumerate(archive):
        if number >= MEMBERS:
            raise too_large(shown)
        if member.isfile():
            yield member.name, partial(_read_tar, archive, member)


def _read_tar(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    with _inside_archive(member.name):
        file = archive.extractfile(member)
        return file.read() if file is not None else b""


def _inside_archive(name: str) -> AbstractContextManager[None]:
    return raised_as(FileError, f"{name} is damaged inside its archive", "Create the archive again.", *DAMAGED)


def _unpacked_size(data: bytes) -> int:
    """Bytes of a tar stream once decompressed, counted only up to the limit."""
    opener = _OPENERS.get(data[:2])
    if opener is None:
        return len(data)
    total = 0
    with opener(io.BytesIO(data)) as stream:
        while total <= UNPACKED and (block := stream.read(2**20)):
            total += len(block)
    return total


def _refused(name: str) -> str:
    """Why a member is not read, or an empty string."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or (path.parts and path.parts[0].endswith(":")):
        return "Its name points outside the archive. Create the archive with plain relative names."
    if name.lower().endswith(ARCHIVES):
        return "It is an archive inside an archive. Unpack it first."
    return ""
