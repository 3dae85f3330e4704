"""The case library: one SQLite file, schema-versioned, safe for several writers, threads and processes.

A case is one row of JSON beside the columns that the library is searched by; what several people add at once
(analyses, marks) is added inside one transaction, so nobody's work is lost. A signed-off case is frozen here, whoever
writes.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from engine.cases.query import CaseRow, Query, select, where
from engine.cases.review import CONCLUSIONS, Mark, MarkDraft, Review, append, review_of, signing_key
from engine.core.errors import CaseError, CaseFrozen, CaseNotFound, RecordError, StorageError, raised_as
from engine.core.files import now
from engine.core.values import Analysis, Case

# Migration i brings the library's file from schema version i to i + 1; one of any age is brought up on opening.
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
    # What a line of the library says of its case, and of which state of the case.
    """
    CREATE TABLE summaries (id TEXT PRIMARY KEY, of TEXT NOT NULL, body BLOB NOT NULL) WITHOUT ROWID;
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
        with transaction(connection):
            # Two first starts at once: the second finds the version raised inside its own transaction.
            (current,) = connection.execute("PRAGMA user_version").fetchone()
            if current < number:
                for statement in filter(str.strip, script.split(";")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is written, or after an error nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # a full disk has ended it already
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


# Cases and marks as rows: what is written beside a JSON body, and what is refused; inside a transaction each.


def read(connection: sqlite3.Connection, case_id: str) -> Case:
    """A case that was not deleted; raise `CaseNotFound`, and `CaseError` for a damaged one."""
    row = connection.execute(
        "SELECT body FROM bodies JOIN cases USING (id) WHERE id = ? AND deleted IS NULL", (case_id,)
    ).fetchone()
    if row is None:
        raise _not_found(case_id)
    with _as_written(case_id):
        return Case.from_dict(msgspec.json.decode(row["body"]))


def _as_written(case_id: str) -> contextlib.AbstractContextManager[None]:
    """Around what decodes a case or its history: `CaseError` where it is damaged."""
    failures = (msgspec.DecodeError, UnicodeError, RecursionError, RecordError)
    damaged = f"The stored case {case_id!r} is damaged"
    return raised_as(CaseError, damaged, "Delete it, or import its export with --replace.", *failures)


def write(connection: sqlite3.Connection, case: Case, time: str) -> None:
    """Write a case, replacing an earlier state of it; raise `CaseFrozen` for a signed-off one."""
    check_open(connection, case.id)
    tags = "\n".join(("", *case.tags, ""))
    searched = (case.id, case.title, case.question, case.answer.text, case.corpus or "", case.stamp.model, *case.tags)
    row = {
        **{name: getattr(case, name) for name in ("id", "title", "question", "corpus", "origin", "parent")},
        "answer": case.answer.text,
        "model": case.stamp.model,
        "created": case.created or time,
        "updated": time,
        "tags": tags,
        "haystack": "\n".join(searched).casefold(),
        "deleted": None,
    }
    replaced = ", ".join(f"{name} = excluded.{name}" for name in row if name not in ("id", "created"))
    connection.execute(
        f"INSERT INTO cases ({', '.join(row)}) VALUES ({', '.join(':' + name for name in row)})"
        f" ON CONFLICT (id) DO UPDATE SET {replaced}",
        row,
    )
    connection.execute("INSERT OR REPLACE INTO bodies (id, body) VALUES (?, ?)", (case.id, msgspec.json.encode(case)))
    connection.execute("DELETE FROM summaries WHERE id = ?", (case.id,))


def _not_found(case_id: str) -> CaseNotFound:
    return CaseNotFound(f"The library has no case {case_id!r}. The command `cases` lists all.")


def check_seen(history: Sequence[Mark], seen: str | None) -> None:
    """Raise `CaseError` where the history's head is not the hash that the reviewer looked at (None: any may be)."""
    if seen is None or seen == (history[-1].hash if history else ""):
        return
    if not history:
        raise CaseError("The history that you looked at was taken from this case. Open the case again.")
    raise CaseError(
        f"{history[-1].author} changed this case after you opened it. Read entry {history[-1].number}, then try again."
    )


def check_open(connection: sqlite3.Connection, case_id: str, instead: str = "Make a new version to change it.") -> None:
    """Raise `CaseFrozen` for a case that was signed off; `instead` says what to do."""
    row = connection.execute("SELECT status, reviewer, deleted FROM cases WHERE id = ?", (case_id,)).fetchone()
    if row is not None and row["status"] == "signed off" and row["deleted"] is None:
        raise CaseFrozen(f"The case {case_id!r} was signed off by {row['reviewer']} and is frozen. {instead}")


def forget(connection: sqlite3.Connection, case_id: str) -> None:
    """Remove a case for good, with its history."""
    for table, column in (("cases", "id"), ("bodies", "id"), ("marks", "case_id"), ("summaries", "id")):
        connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (case_id,))


def marks_of(connection: sqlite3.Connection, case_id: str) -> tuple[Mark, ...]:
    """The history of a case, oldest first."""
    found = connection.execute("SELECT body FROM marks WHERE case_id = ? ORDER BY number", (case_id,)).fetchall()
    with _as_written(case_id):
        return tuple(Mark.from_dict(msgspec.json.decode(row["body"])) for row in found)


def add_mark(connection: sqlite3.Connection, mark: Mark) -> None:
    """Append one entry to its case's history."""
    connection.execute(
        "INSERT INTO marks (case_id, number, body) VALUES (?, ?, ?)",
        (mark.case, mark.number, msgspec.json.encode(mark)),
    )


def note_status(connection: sqlite3.Connection, case_id: str, history: Sequence[Mark], time: str) -> None:
    """Store the status from the history with the case, for searches of the library."""
    review = review_of(history)
    connection.execute(
        "UPDATE cases SET status = ?, reviewer = ?, updated = ? WHERE id = ?",
        (review.status, review.reviewer, time, case_id),
    )
    connection.execute("DELETE FROM summaries WHERE id = ?", (case_id,))


def extend(
    connection: sqlite3.Connection, case: Case, history: tuple[Mark, ...], drafts: Iterable[MarkDraft]
) -> tuple[Mark, ...]:
    """Append drafts to a case's history, signed where there is a key; return it with them."""
    key = signing_key()
    for draft in drafts:
        history = (*history, append(case, history, draft, now(), key))
        add_mark(connection, history[-1])
    note_status(connection, case.id, history, now())
    return history


def new_case_id() -> str:
    """A fresh id: twelve hex digits, unguessable enough for a link on one machine."""
    return secrets.token_hex(6)


def added(case: Case, analysis: Analysis) -> Case:
    """The case with the analysis, in place of an earlier one of the same id."""
    others = tuple(known for known in case.analyses if known.id != analysis.id)
    return msgspec.structs.replace(case, analyses=(*others, analysis))


class CaseStore:
    """The library of cases at `path`; `patience`: seconds to wait for another writer.

    One SQLite database (WAL), opened anew by every call, so that threads and processes share it.
    """

    def __init__(self, path: Path, patience: float = 30.0) -> None:
        self.path, self.patience = path, patience
        with self._reading() as connection:
            migrate(connection)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A connection; raise `StorageError` where the file cannot be used."""
        try:
            frozen = self._frozen()
            place = f"{self.path.absolute().as_uri()}?immutable=1" if frozen else self.path
            connection = sqlite3.connect(place, timeout=self.patience, isolation_level=None, uri=frozen)
            try:
                connection.row_factory = sqlite3.Row
                if not frozen:
                    connection.execute("PRAGMA journal_mode=WAL")
                yield connection
            finally:
                connection.close()
        except sqlite3.OperationalError as error:
            raise StorageError(
                f"The case library {self.path.name} could not be read or written ({error}). Free some disk space, make "
                f"the data folder writable or close the other program that uses the library, then try again. Saved "
                f"cases are intact."
            ) from error
        except sqlite3.ProgrammingError:  # a fault of the caller's, not of the file
            raise
        except sqlite3.DatabaseError as error:
            raise StorageError(
                f"The case library {self.path.name} is damaged ({error}). Move the file elsewhere and import your "
                f"exports."
            ) from error

    def _frozen(self) -> bool:
        """Whether the folder is read-only and the file whole: the log that WAL's readers share cannot be made there."""
        log = self.path.with_name(f"{self.path.name}-wal")
        return self.path.exists() and not log.exists() and not os.access(self.path.parent, os.W_OK)

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection inside one transaction, which an error undoes as a whole."""
        with self._reading() as connection, transaction(connection):
            yield connection

    # Cases

    def save(self, case: Case) -> None:
        """Write the case, replacing an earlier state of it; raise `CaseFrozen` for a signed-off one."""
        with self.writing() as connection:
            write(connection, case, now())

    def load(self, case_id: str) -> Case:
        """Read a case; raise `CaseNotFound`, and `CaseError` for a damaged one."""
        with self._reading() as connection:
            return read(connection, case_id)

    def load_whole(self, case_id: str) -> tuple[Case, tuple[Mark, ...]]:
        """A case and its history at one moment."""
        with self.writing() as connection:
            return read(connection, case_id), marks_of(connection, case_id)

    def has(self, case_id: str) -> bool:
        """Whether there is a case of that id."""
        with self._reading() as connection:
            return connection.execute("SELECT 1 FROM cases WHERE id = ?", (case_id,)).fetchone() is not None

    def update(self, case_id: str, change: Callable[[Case], Case]) -> Case:
        """Read, change and write a case in one transaction; return the new state."""
        with self.writing() as connection:
            case = change(read(connection, case_id))
            write(connection, case, now())
        return case

    def set_tags(self, case_id: str, tags: Sequence[str]) -> Case:
        """Replace the tags of a case, each once."""
        clean = tuple(dict.fromkeys(tag.strip() for tag in tags if tag.strip()))
        return self.update(case_id, lambda case: msgspec.structs.replace(case, tags=clean))

    def put(self, case: Case, history: Sequence[Mark], *, replace: bool = False) -> None:
        """Write a case with its whole history, as an import does; raise `CaseError` where another one has its id.

        `replace` puts it in place of the other, unless that was signed off: `CaseFrozen`.
        """
        with self.writing() as connection:
            known = connection.execute("SELECT 1 FROM cases WHERE id = ? AND deleted IS NULL", (case.id,)).fetchone()
            with contextlib.suppress(CaseError):  # a damaged one, or none, is another
                if (read(connection, case.id), marks_of(connection, case.id)) == (case, tuple(history)):
                    return
            if known and not replace:
                raise CaseError(
                    f"The library has a different case {case.id!r}. To import this one, run python -m engine import "
                    "FILE with --copy (a new case) or --replace."
                )
            check_open(connection, case.id, "Import this one as a copy: python -m engine import FILE --copy.")
            forget(connection, case.id)
            write(connection, case, now())
            for mark in history:
                add_mark(connection, mark)
            note_status(connection, case.id, history, now())

    # The library

    def rows(self, search: str | Query = "", limit: int = 200) -> list[CaseRow]:
        """The library, last changed first, or as a `Query` says."""
        query = search if isinstance(search, Query) else Query(text=search, limit=limit)
        with self._reading() as connection:
            found = connection.execute(*select(query)).fetchall()
        return [CaseRow(**{**row, "tags": tuple(row["tags"].split("\n")[1:-1])}) for row in found]

    def count(self, query: Query) -> int:
        """How many cases a query finds, whatever its limit."""
        condition, values = where(query)
        with self._reading() as connection:
            (number,) = connection.execute(f"SELECT count(*) FROM cases WHERE {condition}", values).fetchone()
        return int(number)

    def facets(self) -> dict[str, list[str]]:
        """The models, corpora and tags in use."""
        with self._reading() as connection:
            found = connection.execute(
                "SELECT DISTINCT model, corpus, tags FROM cases WHERE deleted IS NULL"
            ).fetchall()
        tags = {tag for row in found for tag in row["tags"].split("\n") if tag}
        return {
            "model": sorted({row["model"] for row in found}),
            "corpus": sorted({row["corpus"] for row in found if row["corpus"] is not None}),
            "tag": sorted(tags),
        }

    def summaries(self) -> dict[str, tuple[str, bytes]]:
        """Of each case what `keep_summaries` kept: the state that it is of, and its body."""
        with self._reading() as connection:
            found = connection.execute("SELECT id, of, body FROM summaries").fetchall()
        return {row["id"]: (row["of"], row["body"]) for row in found}

    def keep_summaries(self, found: Mapping[str, tuple[str, bytes]]) -> None:
        """Keep what the library says of cases, by their ids: the state that it is of, and its body."""
        with self.writing() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO summaries (id, of, body) VALUES (?, ?, ?)",
                [(case_id, of, body) for case_id, (of, body) in found.items()],
            )

    def delete(self, case_id: str) -> None:
        """Take a case out of the library, also a damaged one; `restore` brings it back with its history."""
        with self.writing() as connection:
            change = "UPDATE cases SET deleted = ? WHERE id = ? AND deleted IS NULL"
            if not connection.execute(change, (now(), case_id)).rowcount:
                raise _not_found(case_id)

    def restore(self, case_id: str) -> Case:
        """Undo `delete`; raise `CaseNotFound` where it was emptied away."""
        with self.writing() as connection:
            connection.execute("UPDATE cases SET deleted = NULL WHERE id = ?", (case_id,))
            return read(connection, case_id)

    def discard(self, case_id: str) -> None:
        """Remove a case for good, with its history, if there is one of that id: one that a failed run began."""
        with self.writing() as connection:
            forget(connection, case_id)

    def empty_bin(self) -> int:
        """Remove the deleted cases for good, with their histories; return how many."""
        with self.writing() as connection:
            gone = [row["id"] for row in connection.execute("SELECT id FROM cases WHERE deleted IS NOT NULL")]
            for case_id in gone:
                forget(connection, case_id)
        return len(gone)

    # Review

    def history(self, case_id: str) -> tuple[Mark, ...]:
        """The review history of a case, oldest first."""
        with self._reading() as connection:
            known = connection.execute("SELECT 1 FROM cases WHERE id = ? AND deleted IS NULL", (case_id,)).fetchone()
            if known is None:
                raise _not_found(case_id)
            return marks_of(connection, case_id)

    def review(self, case_id: str) -> Review:
        """The review of a case, from its history."""
        return review_of(self.history(case_id))

    def add_mark(self, case_id: str, draft: MarkDraft, seen: str | None = None) -> Mark:
        """Append one entry to the history; as `add_marks`."""
        return self.add_marks(case_id, (draft,), seen)[0]

    def add_marks(self, case_id: str, drafts: Sequence[MarkDraft], seen: str | None = None) -> tuple[Mark, ...]:
        """Append to the history, all or none; signed where `GROUNDWORK_SIGNING_KEY` names a key.

        `seen` is the head hash that the reviewer looked at: where another entry came since, `CaseError` says so and
        nothing is written. Raises `CaseFrozen` for a signed-off case.
        """
        with self.writing() as connection:
            case = read(connection, case_id)
            check_open(connection, case_id)
            history = marks_of(connection, case_id)
            check_seen(history, seen)
            return extend(connection, case, history, drafts)[len(history) :]

    def new_version(self, case_id: str, author: str) -> Case:
        """A copy of a case under a new id, open again, that names the case it came from; standing marks come along.

        The conclusion does not: whoever signs the new version off concludes anew.
        """
        with self.writing() as connection:
            old, marks = read(connection, case_id), marks_of(connection, case_id)
            case = msgspec.structs.replace(old, id=new_case_id(), parent=old.id, created=now())
            write(connection, case, now())
            review = review_of(marks)
            drafts = [MarkDraft(kind="version", author=author, target=f"case:{old.id}", value=review.head)]
            standing = (*review.notes, *review.labels.values(), *review.overrides.values())
            for mark in sorted(standing, key=lambda mark: mark.number):
                if mark.target != "answer" or mark.value not in CONCLUSIONS or mark.kind != "override":
                    kept = {name: getattr(mark, name) for name in MarkDraft.__struct_fields__}
                    drafts.append(MarkDraft(**{**kept, "source": mark.hash}))
            extend(connection, case, (), drafts)
        return case
