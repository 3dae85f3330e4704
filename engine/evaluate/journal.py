"""units.jsonl: a row a unit, appended and synced when the unit has ended; a run can be killed at any byte of it.

A last line without its line break was cut off while it was written. It is dropped before anything is appended, and
its unit is run again; nothing else is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from engine.errors import InputError, StorageError
from engine.evaluate.values import Row
from engine.files import replace_file
from engine.value import decoded


class Journal:
    """The rows of a run on the disk. One process writes; anyone may read."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "units.jsonl"

    def rows(self) -> list[Row]:
        """The rows that were written whole, in the order of writing; raise `InputError` for a damaged line."""
        return list(self._rows()) if self.path.exists() else []

    def _rows(self) -> Iterator[Row]:
        whole, _, _ = self.path.read_bytes().rpartition(b"\n")
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                yield decoded(line, Row)
            except msgspec.MsgspecError as error:
                raise InputError(
                    f"Line {number} of {self.path} is no row of this version ({error}). Start again in a new folder."
                ) from error

    def mend(self) -> None:
        """Cut off a torn last line; before the first append."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
                os.fsync(file.fileno())

    def append(self, row: Row) -> None:
        """Write a row so that it is on the disk when this returns; raise `StorageError` where it cannot be."""
        try:
            with self.path.open("ab") as file:
                file.write(msgspec.json.encode(row) + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StorageError(f"{self.path} cannot be written ({error.strerror}). Make room and resume.") from error


def write_whole(path: Path, data: bytes) -> None:
    """Put a file of a run's folder in place whole (`replace_file`); raise `StorageError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data)
    except OSError as error:
        raise StorageError(f"{path} cannot be written ({error.strerror}). Make room and resume.") from error
