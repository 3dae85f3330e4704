"""CSV and TSV: one document a row, its id the cell of the id column, else the file's name and the row's number.

With a column named as the text field (default "text") a row's text is that cell; else every filled cell as
"column: value", one line each.
"""

from __future__ import annotations

import csv
import io

from engine.corpus.formats.jsonl import Fields, refuse_repeats
from engine.errors import FileError
from engine.types import Document

_LONGEST_CELL = 10_000_000  # characters
_SAMPLE = 20_000


def documents(text: str, name: str, fields: Fields | None = None) -> list[Document]:
    """The rows of a table with a header line; raise `FileError` without header or row, or for an id twice."""
    names = fields or Fields()
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.DictReader(io.StringIO(text, newline=""), dialect=_dialect(text, name))
    try:
        columns = [c.strip() for c in reader.fieldnames or ()]
        reader.fieldnames = columns
        if fields is not None and names.text not in columns:
            raise FileError(f"{name} has no column {names.text!r}. It has: {', '.join(columns)}.")
        rows = [_document(row, line, name, names, columns) for line, row in enumerate(reader, start=1)]
    except csv.Error as error:
        raise FileError(f"{name} cannot be read as a table ({error}). Save it as CSV with a header line.") from error
    found = [row for row in rows if row is not None]
    if not found:
        raise FileError(f"{name} has no row with text under its header line. Save it as CSV with a header line.")
    refuse_repeats(found, name)
    return found


def _dialect(text: str, name: str) -> type[csv.Dialect]:
    """Delimiter and quoting by the name and the first lines."""
    if name.lower().endswith(".tsv"):
        return csv.excel_tab
    try:
        return csv.Sniffer().sniff(text[:_SAMPLE].rpartition("\n")[0] or text[:_SAMPLE], delimiters=",;\t|")
    except csv.Error:
        return csv.excel


def _document(
    row: dict[str | None, str | list[str] | None], line: int, name: str, fields: Fields, columns: list[str]
) -> Document | None:
    """One row; None if it holds no text."""
    cells = {column: str(row.get(column) or "").strip() for column in columns}
    text = cells.get(fields.text) or "\n".join(f"{column}: {value}" for column, value in cells.items() if value)
    if not text:
        return None
    key = cells.get(fields.id) or f"{name}#{line}"
    return Document(
        id=key, title=cells.get(fields.title, ""), text=text, source=f"{name}#{line}", media_type="text/csv"
    )
