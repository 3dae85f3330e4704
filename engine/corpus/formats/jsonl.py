"""JSONL: one document a line, {"_id", "title", "text"} or other names by a field mapping."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from engine.errors import FileError
from engine.types import Document
from engine.types import Value as Frozen


class Fields(Frozen, frozen=True):
    """Which fields of a record hold id, title and text; an empty id field numbers the records by line."""

    id: str = "_id"
    title: str = "title"
    text: str = "text"


def documents(text: str, name: str, fields: Fields | None = None) -> list[Document]:
    """The documents of JSONL `text`; raise `FileError` naming the first line that does not fit."""
    names = fields or Fields()
    found = [_document(record, line, name, names) for line, record in records(text.split("\n"), name)]
    if not found:
        raise FileError(f"{name} holds no record. Give one JSON object a line.")
    refuse_repeats(found, name)
    return found


def records(lines: Iterable[str | bytes], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number from 1, record) of every line that is not blank; raise `FileError` naming the first that is none."""
    for line, content in enumerate(lines, start=1):
        if not content.strip():
            continue
        try:
            record = msgspec.json.decode(content)
        except (msgspec.DecodeError, RecursionError) as error:
            raise FileError(f"{name}, line {line}, is not JSON ({error}). Give one JSON object a line.") from error
        if not isinstance(record, dict):
            raise FileError(f"{name}, line {line}, is not a JSON object. Give one with id, title and text a line.")
        yield line, record


def _document(record: dict[str, Any], line: int, name: str, fields: Fields) -> Document:
    """One record as a document."""
    text = record.get(fields.text)
    if not isinstance(text, str) or not text.strip():
        raise FileError(f"{name}, line {line}, has no text in the field {fields.text!r}. Name the field that holds it.")
    named = ("_id", "id") if fields.id == "_id" else (fields.id,)
    key = next((record[field] for field in named if record.get(field) is not None), f"{name}#{line}")
    title = record.get(fields.title) or ""
    return Document(id=str(key), title=str(title), text=text, source=name, media_type="application/jsonl")


def refuse_repeats(found: list[Document], name: str) -> None:
    """Raise `FileError` if two records of one file carry the same id."""
    seen: set[str] = set()
    for document in found:
        if document.id in seen:
            raise FileError(f"{name} has the id {document.id!r} twice. Give every record an id of its own.")
        seen.add(document.id)
