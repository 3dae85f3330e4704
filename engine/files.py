"""Files and folders put in place whole or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from secrets import token_hex


def replace_file(path: Path, data: bytes) -> None:
    """Write a file so that whoever reads it, also after a crash, finds the old one or the new one, whole.

    It is on the disk when this returns. Raises `OSError` where it cannot be written, with the old one as it was.
    """
    draft = path.with_name(f".{token_hex(8)}.new")  # a name of its own: two writers would mix their bytes in one draft
    try:
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def place_folder(draft: Path, target: Path) -> None:
    """Rename a folder to its final name once all of it is on the disk; `target` must not exist."""
    for path in sorted(draft.rglob("*")):
        if path.is_dir():
            _sync_folder(path)
            continue
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    _sync_folder(draft)
    draft.rename(target)
    _sync_folder(target.parent)


def free_disk(folder: Path) -> int:
    """Free bytes on the disk of `folder`, which exists."""
    return shutil.disk_usage(folder).free


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync_folder(folder: Path) -> None:
    """Force a folder's entries to the disk where the system offers that."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
