"""Files to documents: the format is told by the name and checked against the bytes.

One file under `formats/` a format. A document's id is the name it was given by (a file's name, its path inside a
folder, a JSONL record's _id); its text never changes after this, and every offset points into it.
"""

from __future__ import annotations

from pathlib import Path

from engine.corpus.formats import docx, html, jsonl, markdown, pdf, plain, tables, wiki_dpr
from engine.corpus.formats.jsonl import Fields
from engine.errors import FileError
from engine.types import Document, Section

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
LARGEST = 500 * 1024 * 1024  # bytes of one file; above, the text would not fit beside its vectors
MEDIA_TYPES = {
    ".txt": "text/plain",
    ".text": "text/plain",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".jsonl": "application/jsonl",
    ".ndjson": "application/jsonl",
    ".pdf": "application/pdf",
    ".docx": DOCX,
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "text/html",
    ".csv": "text/csv",
    ".tsv": "text/csv",
}
_SIGNATURES = ((b"%PDF-", "application/pdf"), (b"PK\x03\x04", "application/zip"))
_PACKED = {DOCX: "application/zip"}  # formats whose bytes are a zip archive


def load(path: str | Path, *, name: str | None = None, fields: Fields | None = None) -> list[Document]:
    """The documents of one file; raise `FileError` with what to do.

    `name` stands for the file in ids and messages (default: its own name). A TSV in wiki_dpr's layout may be larger
    than `LARGEST`: it is read line by line.
    """
    shown = name or Path(path).name
    if fields is None and Path(path).suffix.lower() == ".tsv" and wiki_dpr.is_layout(Path(path)):
        return list(wiki_dpr.stream(Path(path)))
    return load_bytes(read_bytes(Path(path), shown), shown, fields=fields)


def read_bytes(path: Path, shown: str) -> bytes:
    """A file's bytes; raise `FileError` for one that cannot be read or is too large."""
    try:
        if not path.is_file():
            raise FileError(f"{shown} is not a file that can be read. Check the path.")
        if path.stat().st_size > LARGEST:
            raise FileError(f"{shown} is over {LARGEST // 2**20} MB. Split it into smaller files.")
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"{shown} cannot be read ({error.strerror}). Check that it exists and is yours.") from error


def load_bytes(data: bytes, name: str, *, fields: Fields | None = None) -> list[Document]:
    """The documents of a file's bytes, `name` telling format and id; raise `FileError` with what to do.

    `fields` names the fields of JSONL records and CSV columns.
    """
    if not data.strip():
        raise FileError(f"{name} is empty. Leave it out, or check that it was saved completely.")
    kind = media_type(name, data)
    if kind == "application/pdf":
        text, pages, title = pdf.extract(data, name)
        return [_document(name, title, text, kind, pages=pages)]
    if kind == DOCX:
        text, sections, title = docx.extract(data, name)
        return [_document(name, title, plain.require_text(text, name), kind, sections=sections)]
    return _from_text(plain.require_text(plain.decode(data, name), name), name, kind, fields)


def _from_text(text: str, name: str, kind: str, fields: Fields | None) -> list[Document]:
    """The documents of a format that is text."""
    match kind:
        case "application/jsonl":
            return jsonl.documents(text, name, fields)
        case "text/csv":
            return tables.documents(text, name, fields)
        case "text/markdown":
            rendered, sections = markdown.render(text)
            title = sections[0].title if sections else ""
            return [_document(name, title, plain.require_text(rendered, name), kind, sections=sections)]
        case "text/html":
            found, sections, title = html.extract(text, name)
            return [_document(name, title, found, kind, sections=sections)]
    return [_document(name, "", text, kind)]


def _document(
    name: str, title: str, text: str, kind: str, sections: tuple[Section, ...] = (), pages: tuple[int, ...] = ()
) -> Document:
    """One file as a document; without a title of its own it is titled by the file's name less the ending."""
    title = title or Path(name).stem.replace("_", " ")
    return Document(id=name, title=title, text=text, source=name, media_type=kind, sections=sections, pages=pages)


def media_type(name: str, data: bytes) -> str:
    """The format by suffix, refused where the bytes say otherwise."""
    expected = MEDIA_TYPES.get(Path(name).suffix.lower())
    actual = next((kind for signature, kind in _SIGNATURES if data.lstrip()[:8].startswith(signature)), None)
    if expected is None and actual != "application/pdf":
        raise FileError(f"{name} is of no known format. Give one of: {', '.join(sorted(MEDIA_TYPES))}.")
    if expected in ("application/pdf", DOCX) and actual != _PACKED.get(expected, expected):
        kind = Path(name).suffix[1:].upper()
        raise FileError(
            f"{name} does not begin as a {kind} file does: it is damaged or of another format. Get it again."
        )
    if actual and expected and actual != _PACKED.get(expected, expected):
        raise FileError(f"{name} is not what its name says: its bytes are {actual}. Give it the right ending.")
    return expected or actual or ""
