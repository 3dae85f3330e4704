"""Records of the command line's JSONL files, checked on reading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from engine.errors import RecordError
from engine.types import Passage, Value, sha256

LINE_LIMIT = 16 * 2**20  # characters of one record; a longer line is refused, not parsed


class GivenPassage(Value, frozen=True):
    """A passage as people write it: plain text, or text with title and relevance."""

    text: str
    title: str = ""
    relevant: bool | None = None


class AuditRecord(Value, frozen=True, forbid_unknown_fields=False):
    """A question, the passages that were given, and the answer that some system wrote."""

    question: str
    passages: tuple[str | GivenPassage, ...]
    answer: str = ""
    id: str = ""
    model: str = ""
    spans: tuple[tuple[int, int], ...] = ()

    def as_passages(self) -> tuple[Passage, ...]:
        """The passages as frozen spans of themselves; raise `RecordError` where one is empty."""
        return tuple(_passage(ordinal, given) for ordinal, given in enumerate(self.passages))


def _passage(ordinal: int, given: str | GivenPassage) -> Passage:
    value = GivenPassage(text=given) if isinstance(given, str) else given
    if not value.text.strip():
        raise RecordError(f"Passage {ordinal + 1} is empty. Leave it out or give its text.")
    document = f"passage {ordinal + 1}"
    return Passage(
        id=f"{document}@{sha256(value.text)[:10]}:0-{len(value.text)}",
        document=document,
        title=value.title,
        ordinal=0,
        start=0,
        end=len(value.text),
        text=value.text,
        relevant=value.relevant,
    )


def read_jsonl(lines: Iterable[str]) -> Iterator[dict[str, Any] | RecordError]:
    """The objects of a JSONL text, in order; a bad line comes out as the error that it is.

    `_id` is read as `id`; a record without either gets its line number.
    """
    for number, data in numbered_jsonl(lines):
        if isinstance(data, RecordError):
            yield data
            continue
        yield {**{name: value for name, value in data.items() if name != "_id"}, "id": identity(data, number)}


def identity(record: Mapping[str, Any], number: int) -> str:
    """A record's `id`, else its `_id`, else the number of its place; null is none.

    >>> identity({"id": None, "_id": 7}, 1), identity({"id": None}, 1)
    ('7', '1')
    """
    return str(next((record[name] for name in ("id", "_id") if record.get(name) is not None), number))


def numbered_jsonl(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any] | RecordError]]:
    """(line number from 1, object as it stands, or what is wrong with the line) of every line that is not blank."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, _object(number, line)


def _object(number: int, line: str) -> dict[str, Any] | RecordError:
    if len(line) > LINE_LIMIT:
        return RecordError(
            f"Line {number} has {len(line):,} characters, over the limit of {LINE_LIMIT:,}. Give shorter passages."
        )
    try:
        data = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return RecordError(f"Line {number} is no JSON ({error}). Write one object a line.")
    if not isinstance(data, dict):
        return RecordError(f"Line {number} is no JSON object. Write one object a line.")
    return data
