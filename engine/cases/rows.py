"""Cases and marks as rows: what is written beside a JSON body, and what is refused; inside a transaction each."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from engine.cases.review import Mark, review_of
from engine.errors import CaseFrozen, CaseNotFound
from engine.types import Case


def read(connection: sqlite3.Connection, case_id: str) -> Case:
    """A case that was not deleted; raise `CaseNotFound`."""
    row = connection.execute(
        "SELECT body FROM bodies JOIN cases USING (id) WHERE id = ? AND deleted IS NULL", (case_id,)
    ).fetchone()
    if row is None:
        raise _not_found(case_id)
    return Case.from_dict(msgspec.json.decode(row["body"]))


def write(connection: sqlite3.Connection, case: Case, time: str) -> None:
    """Write a case, replacing an earlier state of it; raise `CaseFrozen` for a signed-off one."""
    check_open(connection, case.id)
    tags = "\n".join(("", *case.tags, ""))
    searched = (case.id, case.title, case.question, case.answer.text, case.corpus or "", case.stamp.model, *case.tags)
    row = {
        "id": case.id,
        "title": case.title,
        "question": case.question,
        "answer": case.answer.text,
        "corpus": case.corpus,
        "model": case.stamp.model,
        "origin": case.origin,
        "parent": case.parent,
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


def check_known(connection: sqlite3.Connection, case_id: str) -> None:
    """Raise `CaseNotFound` where there is no such case, or where it was deleted."""
    known = connection.execute("SELECT 1 FROM cases WHERE id = ? AND deleted IS NULL", (case_id,)).fetchone()
    if known is None:
        raise _not_found(case_id)


def _not_found(case_id: str) -> CaseNotFound:
    return CaseNotFound(f"There is no case {case_id!r} in the library. Open the Cases page to see what is there.")


def check_open(connection: sqlite3.Connection, case_id: str) -> None:
    """Raise `CaseFrozen` for a case that was signed off."""
    row = connection.execute("SELECT status, reviewer, deleted FROM cases WHERE id = ?", (case_id,)).fetchone()
    if row is not None and row["status"] == "signed off" and row["deleted"] is None:
        raise CaseFrozen(
            f"The case {case_id!r} was signed off by {row['reviewer']} and is frozen. Make a new version of it to"
            " change or to add something."
        )


def forget(connection: sqlite3.Connection, case_id: str) -> None:
    """Remove a case for good, with its history."""
    for table, column in (("cases", "id"), ("bodies", "id"), ("marks", "case_id")):
        connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (case_id,))


def marks(connection: sqlite3.Connection, case_id: str) -> tuple[Mark, ...]:
    """The history of a case, oldest first."""
    found = connection.execute("SELECT body FROM marks WHERE case_id = ? ORDER BY number", (case_id,)).fetchall()
    return tuple(Mark.from_dict(msgspec.json.decode(row["body"])) for row in found)


def add_mark(connection: sqlite3.Connection, mark: Mark) -> None:
    """Append one entry to its case's history."""
    connection.execute(
        "INSERT INTO marks (case_id, number, body) VALUES (?, ?, ?)",
        (mark.case, mark.number, msgspec.json.encode(mark)),
    )


def note_status(connection: sqlite3.Connection, case_id: str, history: Sequence[Mark], time: str) -> None:
    """Keep the status that a history comes to beside its case, where the library is searched by it."""
    review = review_of(history)
    connection.execute(
        "UPDATE cases SET status = ?, reviewer = ?, updated = ? WHERE id = ?",
        (review.status, review.reviewer, time, case_id),
    )
