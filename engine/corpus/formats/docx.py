"""DOCX by python-docx: paragraphs, lists and tables in the order of the page; headings become sections.

Nothing is run or fetched: macros, linked pictures, embedded objects and external templates are not looked at.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.corpus.formats.limits import DAMAGED, check_zip
from engine.corpus.formats.plain import Page
from engine.errors import FileError
from engine.types import Section

if TYPE_CHECKING:
    from docx.table import Table
    from docx.text.paragraph import Paragraph


@dataclass
class _Page(Page):
    """The text so far, and the number of the list item that it ends with; 0 for none."""

    number: int = 0


def extract(data: bytes, name: str) -> tuple[str, tuple[Section, ...], str]:
    """(text, sections, title) of a DOCX; raise `FileError` for a damaged, macro-bearing or exploding one."""
    from docx.opc.exceptions import OpcError
    from lxml.etree import LxmlError

    try:
        return _read(_open(data, name))
    except FileError:
        raise
    # A part or a target that is missing is None to the library, which trips over it.
    except (OpcError, LxmlError, TypeError, AttributeError, *DAMAGED) as error:
        raise FileError(
            f"{name} is damaged, protected or no DOCX file. Open it in an editor and save it anew."
        ) from error


def _open(data: bytes, name: str) -> Any:
    """The document; raise `FileError` for one that carries macros or explodes."""
    from docx import Document

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        check_zip(archive, name)
        if any(member.endswith("vbaProject.bin") for member in archive.namelist()):
            raise FileError(f"{name} carries macros and is not opened. Save it as a .docx without macros.")
    return Document(io.BytesIO(data))


def _read(document: Any) -> tuple[str, tuple[Section, ...], str]:
    from docx.table import Table

    page = _Page()
    for item in document.iter_inner_content():
        if isinstance(item, Table):
            _add_table(page, item)
        else:
            _add_paragraph(page, item)
    title = str(document.core_properties.title or "").strip()
    return "".join(page.parts), tuple(page.sections), title or (page.sections[0].title if page.sections else "")


def _add_paragraph(page: _Page, paragraph: Paragraph) -> None:
    """One paragraph with its list mark; a heading starts a section."""
    text = paragraph.text.strip()
    if not text:
        return
    style = str(paragraph.style.name if paragraph.style is not None else "")
    level = _heading_level(style)
    if level:
        page.sections.append(Section(start=page.length, level=level, title=text))
    numbered = style.startswith("List Number")
    page.number = page.number + 1 if numbered else 0
    mark = f"{page.number}. " if numbered else "- " if style.startswith("List Bullet") else ""
    page.add(mark + text + ("\n" if mark else "\n\n"))


def _add_table(page: _Page, table: Table) -> None:
    """A table as lines of cells."""
    for row in table.rows:
        page.add(" | ".join(cell.text.strip().replace("\n", " ") for cell in row.cells) + "\n")
    page.add("\n")


def _heading_level(style: str) -> int:
    """1 to 9 for a heading style, 1 for the title, else 0."""
    if style == "Title":
        return 1
    name, _, number = style.rpartition(" ")
    return int(number) if name == "Heading" and number.isdigit() else 0
