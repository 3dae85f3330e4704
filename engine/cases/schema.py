"""The library's SQLite schema and how a file of any age is brought up to it."""

from __future__ import annotations

import sqlite3

from engine.errors import StorageError

# Migration i brings a file from schema version i to i + 1; a file of any age is brought up on opening.
MIGRATIONS = (
    """
    CREATE TABLE cases (
        id TEXT PRIMARY KEY, question TEXT NOT NULL, answer TEXT NOT NULL, corpus TEXT, model TEXT NOT NULL,
        created TEXT NOT NULL, updated TEXT NOT NULL, tags TEXT NOT NULL, body BLOB NOT NULL
    );
    CREATE INDEX cases_by_time ON cases (updated DESC);
    """,
    # The bodies get a table of their own, so that listing and searching read short rows only. `haystack` is what is
    # searched, case folded; `tags` and `haystack` are framed by line breaks, so that a whole tag can be looked for.
    """
    CREATE TABLE bodies (id TEXT PRIMARY KEY, body BLOB NOT NULL);
    INSERT INTO bodies SELECT id, body FROM cases;
    ALTER TABLE cases RENAME TO cases_1;
    CREATE TABLE cases (
        id TEXT PRIMARY KEY, title TEXT NOT NULL, question TEXT NOT NULL, answer TEXT NOT NULL, corpus TEXT,
        model TEXT NOT NULL, origin TEXT NOT NULL, parent TEXT, created TEXT NOT NULL, updated TEXT NOT NULL,
        tags TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'open', reviewer TEXT NOT NULL DEFAULT '',
        haystack TEXT NOT NULL, deleted TEXT
    );
    INSERT INTO cases (id, title, question, answer, corpus, model, origin, created, updated, tags, haystack)
        SELECT id, '', question, answer, corpus, model, 'generated', created, updated, char(10) || tags || char(10),
        casefold(id || char(10) || question || char(10) || answer || char(10) || coalesce(corpus, '') || char(10)
        || model || char(10) || tags) FROM cases_1;
    DROP TABLE cases_1;
    CREATE INDEX cases_by_time ON cases (updated DESC);
    CREATE TABLE marks (
        case_id TEXT NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (case_id, number)
    ) WITHOUT ROWID;
    """,
)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file up to this version; raise `StorageError` for a newer one."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise StorageError(
            f"The case library has schema {version}, newer than this version of Groundwork reads"
            f" ({len(MIGRATIONS)}). Update Groundwork to open it."
        )
    connection.create_function("casefold", 1, str.casefold, deterministic=True)
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        # Two first starts at once: the second finds the version raised inside its own transaction.
        connection.execute("BEGIN IMMEDIATE")
        try:
            _apply(connection, number, script)
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def _apply(connection: sqlite3.Connection, number: int, script: str) -> None:
    (current,) = connection.execute("PRAGMA user_version").fetchone()
    if current >= number:
        return
    for statement in filter(str.strip, script.split(";")):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {number}")
