"""The case library: one SQLite file, schema-versioned, safe for several writers, threads and processes.

A case is one row of JSON beside the columns that the library is searched by; what several people add at once
(analyses, marks) is added inside one transaction, so nobody's work is lost. A signed-off case is frozen here, whoever
writes.
"""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from engine.cases import rows
from engine.cases.database import Database
from engine.cases.query import CaseRow, Query, select, where
from engine.cases.review import Draft, Mark, append, review_of
from engine.cases.signing import signing_key
from engine.errors import CaseError
from engine.types import Analysis, Case


def now() -> str:
    """The time in UTC, ISO 8601, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def new_case_id() -> str:
    """A fresh id: twelve hex digits, unguessable enough for a link on one machine."""
    return secrets.token_hex(6)


class CaseStore:
    """The library of cases at `path`; `patience`: seconds to wait for another writer."""

    def __init__(self, path: Path, patience: float = 30.0) -> None:
        self.path = path
        self._file = Database(path, patience)

    # Cases

    def save(self, case: Case) -> None:
        """Write the case, replacing an earlier state of it; raise `CaseFrozen` for a signed-off one."""
        with self._file.writing() as connection:
            rows.write(connection, case, now())

    def load(self, case_id: str) -> Case:
        """Read a case; raise `CaseNotFound`."""
        with self._file.reading() as connection:
            return rows.read(connection, case_id)

    def load_whole(self, case_id: str) -> tuple[Case, tuple[Mark, ...]]:
        """A case and its history as they stood at one moment."""
        with self._file.writing() as connection:
            return rows.read(connection, case_id), rows.marks(connection, case_id)

    def has(self, case_id: str) -> bool:
        """Whether there is a case of that id."""
        with self._file.reading() as connection:
            return connection.execute("SELECT 1 FROM cases WHERE id = ?", (case_id,)).fetchone() is not None

    def update(self, case_id: str, change: Callable[[Case], Case]) -> Case:
        """Read, change and write a case in one transaction; return the new state."""
        with self._file.writing() as connection:
            case = change(rows.read(connection, case_id))
            rows.write(connection, case, now())
        return case

    def add_analysis(self, case_id: str, analysis: Analysis) -> Case:
        """Add an analysis, in place of an earlier one of the same id."""

        def change(case: Case) -> Case:
            others = tuple(a for a in case.analyses if a.id != analysis.id)
            return msgspec.structs.replace(case, analyses=(*others, analysis))

        return self.update(case_id, change)

    def set_tags(self, case_id: str, tags: Sequence[str]) -> Case:
        """Replace the tags of a case, each once."""
        clean = tuple(dict.fromkeys(tag.strip() for tag in tags if tag.strip()))
        return self.update(case_id, lambda case: msgspec.structs.replace(case, tags=clean))

    def put(self, case: Case, history: Sequence[Mark], *, replace: bool = False) -> None:
        """Write a case with its whole history, as an import does; raise `CaseError` where another one has its id."""
        with self._file.writing() as connection:
            known = connection.execute("SELECT 1 FROM cases WHERE id = ? AND deleted IS NULL", (case.id,)).fetchone()
            if known and (rows.read(connection, case.id), rows.marks(connection, case.id)) == (case, tuple(history)):
                return
            if known and not replace:
                raise CaseError(
                    f"The library has another case {case.id!r}. Import it as a copy, or replace the one that is there."
                )
            rows.forget(connection, case.id)
            rows.write(connection, case, now())
            for mark in history:
                rows.add_mark(connection, mark)
            rows.note_status(connection, case.id, history, now())

    # The library

    def rows(self, search: str | Query = "", limit: int = 200) -> list[CaseRow]:
        """The library, last changed first, or as a `Query` says."""
        query = search if isinstance(search, Query) else Query(text=search, limit=limit)
        with self._file.reading() as connection:
            found = connection.execute(*select(query)).fetchall()
        return [_line(dict(row)) for row in found]

    def count(self, query: Query) -> int:
        """How many cases a query finds, whatever its limit."""
        condition, values = where(query)
        with self._file.reading() as connection:
            (number,) = connection.execute(f"SELECT count(*) FROM cases WHERE {condition}", values).fetchone()
        return int(number)

    def facets(self) -> dict[str, list[str]]:
        """What there is to choose from: models, corpora and tags in use."""
        with self._file.reading() as connection:
            found = connection.execute(
                "SELECT DISTINCT model, corpus, tags FROM cases WHERE deleted IS NULL"
            ).fetchall()
        tags = {tag for row in found for tag in row["tags"].split("\n") if tag}
        return {
            "model": sorted({row["model"] for row in found}),
            "corpus": sorted({row["corpus"] for row in found if row["corpus"] is not None}),
            "tag": sorted(tags),
        }

    def delete(self, case_id: str) -> Case:
        """Take a case out of the library and return it; `restore` brings it back with its history."""
        with self._file.writing() as connection:
            case = rows.read(connection, case_id)
            connection.execute("UPDATE cases SET deleted = ? WHERE id = ?", (now(), case_id))
        return case

    def restore(self, case_id: str) -> Case:
        """Undo `delete`; raise `CaseNotFound` where it was emptied away."""
        with self._file.writing() as connection:
            connection.execute("UPDATE cases SET deleted = NULL WHERE id = ?", (case_id,))
            return rows.read(connection, case_id)

    def empty_bin(self) -> int:
        """Remove the deleted cases for good, with their histories; return how many."""
        with self._file.writing() as connection:
            gone = [row["id"] for row in connection.execute("SELECT id FROM cases WHERE deleted IS NOT NULL")]
            for case_id in gone:
                rows.forget(connection, case_id)
        return len(gone)

    # Review

    def history(self, case_id: str) -> tuple[Mark, ...]:
        """The review history of a case, oldest first."""
        return self.load_whole(case_id)[1]

    def add_mark(self, case_id: str, draft: Draft, seen: str | None = None) -> Mark:
        """Append to the history; signed where `GROUNDWORK_SIGNING_KEY` names a key.

        `seen` is the head hash that the reviewer looked at: where another entry came since, `CaseError` says so and
        nothing is written. Raises `CaseFrozen` for a signed-off case.
        """
        key = signing_key()
        with self._file.writing() as connection:
            case = rows.read(connection, case_id)
            rows.check_open(connection, case_id)
            history = rows.marks(connection, case_id)
            if seen is not None and history and history[-1].hash != seen:
                raise CaseError(
                    f"{history[-1].author} has added to this case since you looked. Read entry {history[-1].number},"
                    " then try again."
                )
            mark = append(case, history, draft, now(), key)
            rows.add_mark(connection, mark)
            rows.note_status(connection, case_id, (*history, mark), now())
        return mark

    def new_version(self, case_id: str, author: str) -> Case:
        """A copy of a case under a new id, open again, that names the case it came from; standing marks come along."""
        key = signing_key()
        with self._file.writing() as connection:
            old, marks = rows.read(connection, case_id), rows.marks(connection, case_id)
            case = msgspec.structs.replace(old, id=new_case_id(), parent=old.id, created=now())
            rows.write(connection, case, now())
            review = review_of(marks)
            history: list[Mark] = []
            origin = Draft(kind="version", author=author, target=f"case:{old.id}", value=review.head)
            standing = (*review.notes, *review.labels.values(), *review.overrides.values())
            for draft in (origin, *(_copied(mark) for mark in sorted(standing, key=lambda mark: mark.number))):
                history.append(append(case, history, draft, now(), key))
                rows.add_mark(connection, history[-1])
        return case


def _line(row: dict[str, Any]) -> CaseRow:
    row["tags"] = tuple(row["tags"].split("\n")[1:-1])
    return CaseRow(**row)


def _copied(mark: Mark) -> Draft:
    return Draft(
        kind=mark.kind,
        author=mark.author,
        value=mark.value,
        target=mark.target,
        reason=mark.reason,
        machine=mark.machine,
        source=mark.hash,
    )
