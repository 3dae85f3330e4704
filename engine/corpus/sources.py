"""What a user hands over, file by file: single files, folders, zip and tar archives.

Nothing is unpacked to the disk. A name that points out of its archive, a member that unpacks to too much, an archive in
an archive: each is skipped with its reason and the rest goes on. Links, devices and hidden files are passed over.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from engine.corpus.formats.jsonl import Fields
from engine.corpus.formats.limits import DAMAGED, MEMBERS, UNPACKED, check_zip, too_large
from engine.corpus.loaders import LARGEST, load_bytes, read_bytes
from engine.errors import FileError, InputError
from engine.progress import Watch
from engine.types import Document

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")

_OPENERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}


@dataclass(frozen=True)
class Source:
    """One file to be: its name in ids and messages, and how to get its bytes (raises `FileError`)."""

    name: str
    read: Callable[[], bytes]


def read_files(
    paths: Sequence[str | Path], watch: Watch, fields: Fields | None = None
) -> tuple[list[Document], list[tuple[str, str]]]:
    """(documents, skipped as (name, reason)) of files, folders and archives; a bad file never stops the batch."""
    documents: dict[str, Document] = {}
    skipped: list[tuple[str, str]] = []
    sources = [source for path in paths for source in files_in(Path(path), skipped)]
    for number, source in enumerate(sources):
        watch.step("read", number, len(sources))
        try:
            found = load_bytes(source.read(), source.name, fields=fields)
        except InputError as error:
            skipped.append((source.name, str(error)))
            continue
        clash = next((d.id for d in found if documents.get(d.id, d) != d), None)
        if clash is not None:
            reason = f"Another file of this batch already has the document {clash!r}. Give them different names."
            skipped.append((source.name, reason))
            continue
        documents.update((d.id, d) for d in found)
    return list(documents.values()), skipped


def files_in(path: Path, skipped: list[tuple[str, str]]) -> Iterator[Source]:
    """The files that `path` stands for, in the order of their names; what cannot be one is put into `skipped`."""
    if path.is_dir():
        yield from _folder(path)
    elif path.name.lower().endswith(ARCHIVES):
        try:
            yield from _archive(path, skipped)
        except FileError as error:
            skipped.append((path.name, str(error)))
    else:
        yield Source(path.name, lambda: read_bytes(path, path.name))


def _folder(folder: Path) -> Iterator[Source]:
    """Every file under a folder but hidden ones; links are not followed."""
    for place, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in sorted(names):
            path = Path(place) / name
            if name.startswith(".") or path.is_symlink():
                continue
            shown = path.relative_to(folder).as_posix()
            yield Source(shown, lambda path=path, shown=shown: read_bytes(path, shown))  # type: ignore[misc]


def _archive(path: Path, skipped: list[tuple[str, str]]) -> Iterator[Source]:
    """The members of an archive, each read within the limits."""
    data = read_bytes(path, path.name)
    try:
        members = _zip_members(data, path.name) if path.name.lower().endswith(".zip") else _tar_members(data, path.name)
        for name, read in members:
            reason = _refused(name)
            if reason:
                skipped.append((f"{path.name}/{name}", reason))
            elif not _hidden(name):
                yield Source(name, read)
    except DAMAGED as error:
        raise FileError(f"{path.name} is damaged or no archive of its kind. Pack it again.") from error


def _zip_members(data: bytes, shown: str) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """(name, read) of a zip archive's files."""
    archive = zipfile.ZipFile(io.BytesIO(data))
    check_zip(archive, shown)
    for member in archive.infolist():
        if not member.is_dir():
            yield member.filename, lambda member=member: _read_zip(archive, member)  # type: ignore[misc]


def _read_zip(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """The bytes of one member."""
    if member.flag_bits & 1:
        raise FileError(f"{member.filename} is protected by a password. Pack it without one.")
    try:
        with archive.open(member) as file:
            data = file.read(member.file_size + 1)
    except DAMAGED as error:
        raise FileError(f"{member.filename} is damaged inside its archive. Pack it again.") from error
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
            yield member.name, lambda member=member: _read_tar(archive, member)  # type: ignore[misc]


def _read_tar(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """The bytes of one member."""
    try:
        file = archive.extractfile(member)
        return file.read() if file is not None else b""
    except DAMAGED as error:
        raise FileError(f"{member.name} is damaged inside its archive. Pack it again.") from error


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
        return "Its name points out of the archive. Pack it with plain relative names."
    if name.lower().endswith(ARCHIVES):
        return "It is an archive inside an archive. Unpack it first."
    return ""


def _hidden(name: str) -> bool:
    """Is it something that a packing program adds for itself."""
    return any(part.startswith(".") or part == "__MACOSX" for part in PurePosixPath(name).parts)
