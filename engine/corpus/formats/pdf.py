"""PDF by pypdf: text page by page with the offset at which each page starts. Scripts and links are never followed."""

from __future__ import annotations

import io
import logging
from typing import TYPE_CHECKING

from engine.errors import FileError

if TYPE_CHECKING:
    from pypdf import PdfReader

_BREAK = "\n\n"


def extract(data: bytes, name: str) -> tuple[str, tuple[int, ...], str]:
    """(text, page offsets, title) of a PDF; raise `FileError` for an encrypted, damaged or scanned one."""
    reader = _open(data, name)
    pages = _page_texts(reader, name)
    if not any(page.strip() for page in pages):
        raise FileError(
            f"{name} has pages but no text: it is probably a scan. Run a text recognition (OCR) program over it first."
        )
    starts, position = [], 0
    for page in pages:
        starts.append(position)
        position += len(page) + len(_BREAK)
    return _BREAK.join(pages), tuple(starts), _title(reader)


def _open(data: bytes, name: str) -> PdfReader:
    """A reader that may read, or a `FileError`."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.ERROR)
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise FileError(f"{name} is protected by a password. Save a copy without one and try again.")
        len(reader.pages)
    except FileError:
        raise
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError, ImportError, OSError) as error:
        raise FileError(f"{name} is damaged or cut short and cannot be read as PDF. Get it again.") from error
    return reader


def _page_texts(reader: PdfReader, name: str) -> list[str]:
    """The text of every page with line breaks as \\n."""
    from pypdf.errors import PyPdfError

    texts: list[str] = []
    for number, page in enumerate(reader.pages, start=1):
        try:
            texts.append(page.extract_text().replace("\r\n", "\n").replace("\r", "\n").replace("\x00", ""))
        except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
            raise FileError(f"{name}, page {number}, is damaged and cannot be read. Get the file again.") from error
    return texts


def _title(reader: PdfReader) -> str:
    """The title in the file's own information, or an empty string."""
    try:
        return str((reader.metadata and reader.metadata.title) or "").strip()
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
