"""Passages in wiki_dpr's layout (Karpukhin et al. 2020; RAISE, appendix B.3): id, text of 100 words, title of the page.

TSV with that header line, quoted as in psgs_w100.tsv, or JSONL with those fields (others, as `embeddings`, are left
out). Read line by line, so that a file of any size needs no memory of its own; a passage is a document. Vectors that
an ingest has paid for are kept when it is stopped (corpus/pending.py), so that starting it again resumes.
"""

from __future__ import annotations

import csv
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from engine.corpus.formats.jsonl import records
from engine.errors import FileError
from engine.progress import Watch
from engine.types import Document

COLUMNS = ("id", "text", "title")
_EVERY = 10_000  # passages between two reports
_LONGEST = 10_000_000  # characters of a line


def is_layout(path: Path) -> bool:
    """Whether the first line of a .tsv or .jsonl file is of this layout; False for a file that cannot be read."""
    try:
        with path.open("rb") as file:
            first = file.readline(_LONGEST).decode("utf-8-sig", "replace").strip()
    except OSError:
        return False
    if path.suffix.lower() == ".tsv":
        return tuple(first.split("\t")) == COLUMNS
    if path.suffix.lower() not in (".jsonl", ".ndjson"):
        return False
    try:
        record = msgspec.json.decode(first)
    except (msgspec.DecodeError, RecursionError):
        return False
    return isinstance(record, dict) and "_id" not in record and set(COLUMNS) <= record.keys()


def stream(path: Path, watch: Watch | None = None) -> Iterator[Document]:
    """The passages in order; `watch` is told bytes read of bytes in all.

    Raises `FileError` naming file and line of the first that does not fit, and for a file that cannot be read.
    """
    watch, size, number = watch or Watch(), 0, 0
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            if file.read(len(BOM_UTF8)) != BOM_UTF8:
                file.seek(0)
            listed = path.suffix.lower() != ".tsv"
            rows = (row for _, row in records(file, path.name)) if listed else _table(file, path.name)
            for number, row in enumerate(rows, start=1):
                if number % _EVERY == 1:
                    watch.step("read", file.tell(), size)
                yield _document(row, number, path.name)
    except OSError as error:
        raise FileError(f"{path.name} cannot be read ({error.strerror}). Check that it exists and is yours.") from error
    if not number:
        raise FileError(f"{path.name} holds no passage under its header line.")
    watch.step("read", size, size)


def _table(file: Any, name: str) -> Iterator[dict[str, Any]]:
    """The rows of a TSV by column."""
    csv.field_size_limit(_LONGEST)
    reader = csv.DictReader((line.decode() for line in file), dialect=csv.excel_tab)
    try:
        yield from reader
    except (csv.Error, UnicodeDecodeError) as error:
        raise FileError(f"{name} cannot be read as a table after row {reader.line_num} ({error}).") from error


def _document(row: dict[str, Any], number: int, name: str) -> Document:
    """One row as a document."""
    text, key = row.get("text"), row.get("id")
    if not isinstance(text, str) or not text.strip() or key in (None, ""):
        raise FileError(f"{name}, passage {number}, has no id or no text. Each needs id, text and title.")
    return Document(
        id=str(key), title=str(row.get("title") or ""), text=text, source=name, media_type="text/tab-separated-values"
    )
