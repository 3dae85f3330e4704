"""Searching the library: what is asked, as a value, and the SQL that it becomes.

Measured on 10,000 cases of 100 KB each: all of them listed in 0.09 s of processor time, 200 in 0.004 s, a search over
all in 0.03 s.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, get_args

from engine.cases.review import STATUSES
from engine.core.errors import InputError
from engine.core.values import Value

Sort = Literal["updated", "created", "question", "model", "corpus", "status"]
SORTS: tuple[Sort, ...] = get_args(Sort)
MOST_WORDS = 50  # of a search; more would be too large a statement
SHOWN = 400  # characters of an answer that a line of the library holds


class CaseRow(Value, frozen=True):
    """A line of the library. `answer` is its first `SHOWN` characters, `reviewer` who set the status last."""

    id: str
    question: str
    answer: str
    corpus: str | None
    model: str
    created: str
    updated: str
    tags: tuple[str, ...]
    title: str = ""
    origin: str = "generated"
    parent: str | None = None
    status: str = "open"
    reviewer: str = ""


COLUMNS = ", ".join(CaseRow.__struct_fields__).replace("answer", f"substr(answer, 1, {SHOWN}) AS answer")


class Query(Value, frozen=True):
    """A search: every word of `text` occurs somewhere in question, answer, corpus, model, tags, title or id.

    `since` and `until` are days or times (ISO 8601, in UTC without an offset) of the last change; a day in `until`
    counts whole.
    """

    text: str = ""
    tag: str | None = None
    status: str | None = None
    model: str | None = None
    corpus: str | None = None
    since: str | None = None
    until: str | None = None
    sort: Sort = "updated"
    ascending: bool = False
    limit: int = 200
    deleted: bool = False


FILTERS = {
    "status": "status = :status",
    "model": "model = :model",
    "corpus": "corpus = :corpus",
    "tag": "instr(tags, char(10) || :tag || char(10)) > 0",
    "since": "updated >= :since",
    # The character after every digit and sign of a time: a whole day, hour or second is included.
    "until": "updated < :until || '~'",
}


def _is_time(text: str) -> bool:
    """Whether a text is a day or a time as the library writes it: they are compared as text.

    >>> [_is_time(text) for text in ("2026-11-20", "2026-11-20T08:00", "2026-11-20 08:00", "2026-13-45")]
    [True, True, False, False]
    >>> _is_time("2026-11-20T08:00+02:00")
    False
    """
    try:
        time = datetime.fromisoformat(text)
        return time.tzinfo is None and time.isoformat().startswith(text[:11])
    except ValueError:
        return False


def where(query: Query) -> tuple[str, dict[str, str]]:
    """The condition of a query and its parameters; raise `InputError` for a day that is none."""
    for day in (query.since, query.until):
        if day is not None and not _is_time(day):
            raise InputError(f"{day!r} is not a day. Write YYYY-MM-DD, or YYYY-MM-DDTHH:MM in UTC without an offset.")
    words = {f"word{n}": word.casefold() for n, word in enumerate(query.text.split()[:MOST_WORDS])}
    values = {name: value for name in FILTERS if (value := getattr(query, name)) is not None}
    terms = [f"deleted IS {'NOT ' if query.deleted else ''}NULL", *(f"instr(haystack, :{name}) > 0" for name in words)]
    # Half of a surrogate pair, which a command line can hold, is in no case.
    given = {name: value.encode("utf-8", "replace").decode() for name, value in (words | values).items()}
    return " AND ".join((*terms, *(FILTERS[name] for name in values))), given


def select(query: Query) -> tuple[str, dict[str, str | int]]:
    """The statement of a query and its parameters."""
    condition, values = where(query)
    column = query.sort
    if column == "status":
        ranked = " ".join(f"WHEN '{status}' THEN {rank}" for rank, status in enumerate(STATUSES))
        ordered = f"CASE status {ranked} END"
    elif column in ("question", "model", "corpus"):
        ordered = f"coalesce({column}, '') COLLATE NOCASE"
    else:
        ordered = column
    direction = "ASC" if query.ascending else "DESC"
    last = "rowid DESC" if column == "updated" else "updated DESC, rowid DESC"
    order = f"ORDER BY {ordered} {direction}, {last} LIMIT :limit"
    statement = f"SELECT {COLUMNS} FROM cases WHERE {condition} {order}"
    return statement, {**values, "limit": query.limit}
