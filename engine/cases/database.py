"""The library's file: one SQLite database (WAL), opened anew by every call, so that threads and processes share it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from engine.cases.schema import migrate
from engine.errors import StorageError


class Database:
    """The file at `path`, brought up to this version's schema; `patience`: seconds to wait for another writer."""

    def __init__(self, path: Path, patience: float = 30.0) -> None:
        self.path, self.patience = path, patience
        with self.reading() as connection:
            migrate(connection)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection; raise `StorageError` where the file cannot be used."""
        try:
            connection = sqlite3.connect(self.path, timeout=self.patience, isolation_level=None)
            try:
                connection.row_factory = sqlite3.Row
                connection.execute("PRAGMA journal_mode=WAL")
                yield connection
            finally:
                connection.close()
        except sqlite3.OperationalError as error:
            raise StorageError(
                f"The case library {self.path.name} could not be read or written ({error}). Free some disk space or"
                " close the other program that holds it, then try again; nothing saved was lost."
            ) from error
        except sqlite3.DatabaseError as error:
            raise StorageError(
                f"The case library {self.path.name} is damaged ({error}). Move the file away and import your exports."
            ) from error

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection inside one transaction, which an error undoes as a whole."""
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                if connection.in_transaction:  # a full disk has ended it already
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
