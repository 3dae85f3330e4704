"""Which layout a file has, and its cases one by one; a bad record comes out as the error that it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, get_args

import msgspec

from engine.cases.case_file import read_case_file
from engine.cases.importers.alce import alce_case
from engine.cases.importers.garage import garage_case
from engine.cases.importers.imported import imported_case
from engine.cases.importers.ragtruth import ragtruth_case
from engine.cases.review import Mark
from engine.errors import GroundworkError, RecordError
from engine.records import AuditRecord, read_jsonl
from engine.types import Case

Layout = Literal["case", "records", "alce", "garage", "ragtruth"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
Imported = tuple[Case, tuple[Mark, ...]]
Row = tuple[str, Imported | GroundworkError]


def detect(record: dict[str, Any]) -> Layout:
    """The layout of a record, by its field names; raise `RecordError` for one that has none of them."""
    names = record.keys()
    if "format" in names or {"question", "stamp", "answer"} <= names:
        return "case"
    if {"question", "docs"} <= names:
        return "alce"
    if {"question", "grounding"} <= names:
        return "garage"
    if {"response", "source_id"} <= names:
        return "ragtruth"
    if {"question", "passages"} <= names:
        return "records"
    raise RecordError(
        "This has the fields of no known layout. Write question, passages and answer, or name the layout:"
        f" {', '.join(LAYOUTS)}."
    )


def read_cases(data: bytes, layout: Layout | None = None, sources: bytes | None = None) -> Iterator[Row]:
    """(record's id, case with its history or error) of every record of a file.

    `sources` is RAGTruth's source_info.jsonl. Without `layout` each record is looked at.
    """
    model = ""
    whole = _whole(data)
    if isinstance(whole, dict) and isinstance(whole.get("data"), list):
        args = whole.get("args")
        model = str(args.get("model", "")) if isinstance(args, dict) else ""
    known = _sources(sources)
    for number, record in enumerate(_records(data, whole), start=1):
        try:
            if isinstance(record, GroundworkError):
                raise record
            identity = str(record.get("id", record.get("sample_id", number)))
            yield identity, _READ[layout or detect(record)](record, known, model)
        except GroundworkError as error:
            yield str(number), error


def _whole(data: bytes) -> Any:
    """The file as one JSON value; None for JSONL and for what is no JSON."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _records(data: bytes, whole: Any) -> Iterable[dict[str, Any] | GroundworkError]:
    if isinstance(whole, dict):
        listed = whole.get("data")
        items = listed if isinstance(listed, list) else [whole]
    elif isinstance(whole, list):
        items = whole
    else:
        return read_jsonl(_lines(data))
    wrong = RecordError("This is no JSON object. Write one object a record.")
    return [item if isinstance(item, dict) else wrong for item in items]


def _lines(data: bytes) -> list[str]:
    """Lines by line feed alone: JSON text may hold the other separators of Unicode."""
    return data.decode("utf-8", "replace").split("\n")


def _sources(data: bytes | None) -> dict[str, dict[str, Any]]:
    if data is None:
        return {}
    rows = read_jsonl(_lines(data))
    return {str(row["source_id"]): row for row in rows if isinstance(row, dict) and "source_id" in row}


Read = Callable[[dict[str, Any], dict[str, dict[str, Any]], str], Imported]


def _read_case(record: dict[str, Any], sources: dict[str, dict[str, Any]], model: str) -> Imported:
    # Reading lines gives every record an id; the envelope of a case file has none.
    envelope = {name: value for name, value in record.items() if name != "id"}
    file = read_case_file(msgspec.json.encode(envelope if "format" in record else record))
    return file.case, file.history


def _read_record(record: dict[str, Any], sources: dict[str, dict[str, Any]], model: str) -> Imported:
    return imported_case(AuditRecord.from_dict(record)), ()


_READ: dict[Layout, Read] = {
    "case": _read_case,
    "records": _read_record,
    "alce": lambda record, sources, model: (alce_case(record, model), ()),
    "garage": lambda record, sources, model: (garage_case(record), ()),
    "ragtruth": lambda record, sources, model: (ragtruth_case(record, sources), ()),
}
