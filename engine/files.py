"""A file put in place whole or not at all."""

from __future__ import annotations

import os
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


def _sync_folder(folder: Path) -> None:
    """Force a folder's entries to the disk where the system offers that."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
