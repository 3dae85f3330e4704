"""How large a packed file may become: an archive that unpacks to far more than it holds is refused unread."""

from __future__ import annotations

import lzma
import struct
import tarfile
import zipfile
import zlib

from engine.errors import FileError

UNPACKED = 500 * 1024 * 1024  # bytes in all
MEMBERS = 20_000  # files in one archive
RATIO = 200  # unpacked over packed, for a member of more than `SMALL` bytes
SMALL = 1024 * 1024
# What the standard library raises for an archive that is damaged or of a kind that it does not unpack.
DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    LookupError,
    OverflowError,
    RuntimeError,
)


def check_zip(archive: zipfile.ZipFile, name: str) -> None:
    """Raise `FileError` where the directory of a zip file announces too many, too large or too packed members."""
    members = archive.infolist()
    total = sum(member.file_size for member in members)
    packed = any(m.file_size > SMALL and m.file_size > RATIO * max(m.compress_size, 1) for m in members)
    if len(members) > MEMBERS or total > UNPACKED or packed:
        raise too_large(name)


def too_large(name: str) -> FileError:
    """The error for a file that unpacks to too much."""
    return FileError(
        f"{name} unpacks to far more than a document would and is not opened. "
        f"Give its files unpacked, at most {UNPACKED // 2**20} MB at a time."
    )
