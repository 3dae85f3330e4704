"""Documents from rows: JSONL, JSON, CSV and TSV, and passages in wiki_dpr's layout.

JSONL has one document per line, {"_id", "title", "text"} or other names by a field mapping.
"""

from __future__ import annotations

import csv
import io
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec

from engine.core.errors import FileError, raised_as
from engine.core.progress import Watch
from engine.core.text import BETWEEN_CELLS, well_formed
from engine.core.values import Document, Json, Value as Frozen, json_or_none


class Fields(Frozen, frozen=True):
    """Which fields of a record hold id, title and text; an empty id field numbers the records by line."""

    id: str = "_id"
    title: str = "title"
    text: str = "text"


Bad = Callable[[FileError], None]
"""Is told of a record that does not fit; the others are read unless it raises."""


def refuse(error: FileError) -> None:
    """Raise the error: a file is taken whole or not at all."""
    raise error


def readable(name: str) -> AbstractContextManager[None]:
    """Around what reads a file from the disk: `FileError` where that fails."""
    return raised_as(FileError, f"{name} cannot be read", "Check that it exists and that you may read it.", OSError)


def jsonl_documents(text: str, name: str, fields: Fields | None = None, bad: Bad = refuse) -> list[Document]:
    """The documents of JSONL `text`; `bad` is told of each line that does not fit; raise `FileError` without any."""
    names = fields or Fields()
    id_fields = ("_id", "id") if names.id == "_id" else (names.id,)
    found: dict[str, Document] = {}
    for line, record in records(text.split("\n"), name, bad):
        place, own = f"{name}, line {line},", record.get(names.text)
        key = str(next((record[field] for field in id_fields if record.get(field) is not None), f"{name}#{line}"))
        if not isinstance(own, str) or not own.strip():
            bad(FileError(f"{place} has no text in the field {names.text!r}. Choose the field that has it."))
        elif key in found:
            bad(FileError(f"{place} has the id {key!r} of an earlier line. Give every record a unique id."))
        else:
            title, whole = well_formed(str(record.get(names.title) or "")), well_formed(own)
            found[key] = Document(id=key, title=title, text=whole, source=name, media_type="application/jsonl")
    if not found:
        raise FileError(f"{name} has no records. Write one JSON object per line.")
    return list(found.values())


def records(lines: Iterable[str | bytes], name: str, bad: Bad = refuse) -> Iterator[tuple[int, Json]]:
    """(line number from 1, record) of every line that is not blank; `bad` is told of each that is not an object."""
    for line, content in enumerate(lines, start=1):
        if not content.strip():
            continue
        place = f"{name}, line {line},"
        try:
            record = msgspec.json.decode(content)
        except UnicodeError:
            bad(FileError(f"{place} is not UTF-8 text. Save the file as UTF-8."))
        except (msgspec.DecodeError, RecursionError) as error:
            bad(FileError(f"{place} is not JSON ({error}). Write one JSON object per line."))
        else:
            if isinstance(record, dict):
                yield line, record
            else:
                bad(FileError(f"{place} is not a JSON object. Write one object with id, title and text per line."))


def without_repeats(found: Iterable[Document], name: str, bad: Bad = refuse) -> Iterator[Document]:
    """The documents of one file; `bad` is told of each whose id an earlier one has."""
    seen: set[str] = set()
    for document in found:
        if document.id in seen:
            bad(FileError(f"{name} has the id {document.id!r} twice. Give every record a unique id."))
            continue
        seen.add(document.id)
        yield document


# CSV and TSV: one document per row; its text is the text column, else every filled cell as "column: value" in one line.

LONGEST_CELL = 10_000_000  # characters of a cell, or of a line in wiki_dpr's layout
_SAMPLE = 20_000
_LONGEST_TITLE = 60  # characters of a cell that names its row


def table_documents(text: str, name: str, fields: Fields | None = None, bad: Bad = refuse) -> list[Document]:
    """The rows of a table with a header line; `bad` is told of an id twice; raise `FileError` without header or row."""
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.DictReader(io.StringIO(text, newline=""), dialect=_dialect(text, name))
    found: list[Document] = []
    way_out = "Save it as CSV with a header line."
    with raised_as(FileError, f"{name} cannot be read as a table", way_out, csv.Error):
        columns = [c.strip() or f"column {place}" for place, c in enumerate(reader.fieldnames or (), start=1)]
        reader.fieldnames = columns
        if again := next((c for c, count in Counter(columns).items() if count > 1), ""):
            raise FileError(f"{name} has the column {again!r} twice. Give every column its own name.")
        if fields is not None and fields.text not in columns:
            raise FileError(f"{name} has no column {fields.text!r}. Its columns are: {', '.join(columns)}.")
        rows = {
            line: {column: str(row.get(column) or "").strip() for column in columns}
            for line, row in _fitting(reader, name, bad)
        }
    names, of = (fields, "") if fields else _usual(rows.values(), name)
    for line, cells in rows.items():
        found += _row(cells, names, of, name, line, "text/csv")
    if not found:
        raise FileError(f"{name} has no rows with text below its header line. {way_out}")
    if names.title not in columns:
        found = _titled_apart(found, name)
    return list(without_repeats(found, name, bad))


def _usual(rows: Iterable[dict[str, str]], name: str) -> tuple[Fields, str]:
    """The usual names, and what an id begins with: another table may number its rows as this one does.

    `id` is in place of `_id` where it tells all rows apart, as a category or a year would not.
    """
    filled = [row for row in rows if any(row.values())]
    ids = {row.get("id") for row in filled}
    alone = len(ids) == len(filled) and ids.isdisjoint({"", None}) and not any("_id" in row for row in filled)
    return (Fields(id="id"), f"{name}#id=") if alone else (Fields(), "")


def _row(cells: dict[str, str], names: Fields, of: str, name: str, line: int, media_type: str) -> list[Document]:
    """The document of one row; none without a filled cell."""
    filled = (f"{column}: {value}" for column, value in cells.items() if value)
    content, place = cells.get(names.text) or BETWEEN_CELLS.join(filled), f"{name}#{line}"
    own, title = cells.get(names.id), cells.get(names.title) or _row_title(cells, name, line)
    key = f"{of}{own}" if own else place
    return [Document(id=key, title=title, text=content, source=place, media_type=media_type)] if content else []


def json_documents(text: str, name: str, fields: Fields | None = None, bad: Bad = refuse) -> list[Document]:
    """The objects of the lists in a JSON file, a row each; then all else that it says as one row.

    What is nested in a field is its values, apart by semicolons.
    """
    try:
        whole = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise FileError(f"{name} is not JSON ({error}). Correct it, or save it as text.") from error
    parts = whole if isinstance(whole, dict) else {"values": whole}
    rows = [_cells(row) for value in parts.values() if _is_rows(value) for row in value]
    others = _cells({key: value for key, value in parts.items() if not _is_rows(value)})
    names, of = (fields, "") if fields else _usual(rows or [others], name)
    found = []
    for line, cells in enumerate([*rows, others], start=1):
        found += _row(cells, names, of, name, line, "application/json")
    if not found:
        raise FileError(f"{name} has no values. Leave it out, or check that it was saved completely.")
    return list(without_repeats(_titled_apart(found, name), name, bad))


def _cells(row: Json) -> dict[str, str]:
    return {well_formed(key).strip(): well_formed("; ".join(_leaves(value))) for key, value in row.items()}


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _leaves(value: Any) -> Iterator[str]:
    """The values in a JSON value, as text, less those without one."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    elif value not in (None, ""):
        yield " ".join((value if isinstance(value, str) else msgspec.json.encode(value).decode()).split())


def _fitting(rows: Iterable[Json], name: str, bad: Bad) -> Iterator[tuple[int, Json]]:
    """(number from 1, row) of a table; `bad` is told of each row with filled cells beyond the header line's."""
    for number, row in enumerate(rows, start=1):
        if any(row.pop(None, ())):  # type: ignore[call-overload]  # where DictReader puts them
            place = f"{name}, row {number},"
            bad(FileError(f"{place} has more cells than the header line. Put a cell with a delimiter in quotes."))
        else:
            yield number, row


def _titled_apart(rows: Sequence[Document], name: str) -> list[Document]:
    """The rows; titles that several have, taken from their cells, say the place in the file too."""
    count = Counter(row.title for row in rows)
    return [
        row
        if count[row.title] == 1
        else msgspec.structs.replace(row, title=f"{row.title} ({name}, row {row.source.rpartition('#')[2]})")
        for row in rows
    ]


def _dialect(text: str, name: str) -> type[csv.Dialect]:
    """Excel's quoting, with the delimiter by the name and the first lines."""
    if name.lower().endswith(".tsv"):
        return csv.excel_tab
    sample = text[:_SAMPLE].rpartition("\n")[0] or text[:_SAMPLE]
    try:
        marks = "".join(set(",;\t|") & set(text.partition("\n")[0]))  # of the header line
        mark = csv.Sniffer().sniff(sample, marks).delimiter
    except csv.Error:
        return csv.excel
    return type("Sniffed", (csv.excel,), {"delimiter": mark, "skipinitialspace": True})


def _row_title(cells: dict[str, str], name: str, line: int) -> str:
    """A title for a row without a title column: its first short cell that has a letter, else its place in the file.

    >>> _row_title({"id": "7", "name": "Ada Quill", "text": "..."}, "people.csv", 1)
    'Ada Quill'
    """
    short = (c for c in cells.values() if len(c) <= _LONGEST_TITLE and any(map(str.isalpha, c)))
    return next(short, f"{name}, row {line}")


# wiki_dpr (Karpukhin et al. 2020; RAISE, appendix B.3): id, text of 100 words, title of the page, as TSV like
# psgs_w100.tsv or JSONL. Read line by line, so the size does not matter; a stopped ingest resumes (collection.py).

COLUMNS = ("id", "text", "title")
_EVERY = 10_000  # passages between two reports


def is_layout(path: Path) -> bool:
    """Whether the first line of a .tsv or .jsonl file is of this layout; False for a file that cannot be read."""
    try:
        if path.suffix.lower() not in (".tsv", ".jsonl", ".ndjson") or not path.is_file():  # a pipe waits for ever
            return False
        with path.open("rb") as file:
            first = file.readline(LONGEST_CELL).decode("utf-8-sig", "replace").strip()
    except OSError:
        return False
    if path.suffix.lower() == ".tsv":
        return tuple(first.split("\t")) == COLUMNS
    record = json_or_none(first)
    return isinstance(record, dict) and "_id" not in record and set(COLUMNS) <= record.keys()


def stream(path: Path, watch: Watch = Watch(), bad: Bad = refuse) -> Iterator[Document]:
    """The passages in order, `watch` told of bytes read and `bad` of each record that does not fit, with its place."""
    size = number = 0
    with readable(path.name):
        size = path.stat().st_size
        with path.open("rb") as file:
            if file.read(len(BOM_UTF8)) != BOM_UTF8:
                file.seek(0)
            listed = path.suffix.lower() != ".tsv"
            rows = records(file, path.name, bad) if listed else _fitting(_table(file, path.name), path.name, bad)
            for number, row in rows:
                if number % _EVERY == 1:
                    watch.step("read", file.tell(), size)
                text, key = row.get("text"), row.get("id")
                if not isinstance(text, str) or not text.strip() or key in (None, ""):
                    place = f"{path.name}, {'line' if listed else 'passage'} {number},"
                    bad(FileError(f"{place} has no id or no text. Each needs id, text and title."))
                    continue
                title, text = well_formed(str(row.get("title") or "")), well_formed(text)
                media_type = "text/tab-separated-values"
                yield Document(id=str(key), title=title, text=text, source=path.name, media_type=media_type)
    if not number:
        raise FileError(f"{path.name} has no passages below its header line.")
    watch.step("read", size, size)


def _table(file: Any, name: str) -> Iterator[Json]:
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.DictReader((line.decode() for line in file), dialect=csv.excel_tab)
    try:
        yield from reader
    except (csv.Error, UnicodeDecodeError) as error:
        raise FileError(f"{name} cannot be read as a table after row {reader.line_num} ({error}).") from error
