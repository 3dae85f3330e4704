"""Documents as plain text with sections: text in any common encoding, Markdown, HTML, e-mail, subtitles, DOCX, PDF.

Nothing is executed or fetched: no macro, script, link, linked picture or external template. A packed file that unpacks
to too much is refused unread.
"""

from __future__ import annotations

import codecs
import io
import logging
import lzma
import re
import struct
import tarfile
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, count, groupby, pairwise, repeat, takewhile
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from engine.core.errors import FileError, raised_as
from engine.core.text import BETWEEN_CELLS, unligated, well_formed
from engine.core.values import DocumentSection
from engine.models.tables import tables

if TYPE_CHECKING:
    from docx.text.paragraph import Paragraph
    from pypdf import PdfReader

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LATIN = ("cp1250", "cp1257", "iso8859_2", "iso8859_10", "iso8859_15", "mac_latin2", "latin_1")
_SAMPLE = 65_536
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")


@dataclass
class Page:
    """Text and sections of a document so far; `number` is that of the list item that a DOCX ends with (0: none)."""

    text: io.StringIO = field(default_factory=io.StringIO)
    sections: list[DocumentSection] = field(default_factory=list)
    number: int = 0


def decode(data: bytes, name: str) -> str:
    """Text of `data`: by its byte-order mark, as UTF-8, else by charset-normalizer's best guess.

    Raises `FileError` for bytes that are no text. Line breaks become \\n, so that offsets are the same for
    a file saved on any system.
    """
    marked = next((encoding for mark, encoding in _BOMS if data.startswith(mark)), "")
    try:
        text: str | None = data.decode(marked, errors="replace") if marked else data.decode("utf-8")
    except UnicodeDecodeError:
        text = _guessed(data)
    if text is None or len(_CONTROL.findall(text[:_SAMPLE])) > 0.02 * len(text[:_SAMPLE]):
        raise FileError(f"{name} is not text, or its encoding is unknown. Save it as UTF-8 text and try again.")
    return well_formed(text.replace("\r\n", "\n").replace("\r", "\n"))


def require_text(text: str, name: str) -> str:
    """`text` unchanged; raise `FileError` if there is nothing in it but white space."""
    if not text.strip():
        raise FileError(f"{name} has no text. Leave it out, or check that it was saved completely.")
    return text


def _guessed(data: bytes) -> str | None:
    """Text by the statistics of the first 64 KiB; None where they are not text.

    Between the Latin code pages, which differ in a few letters, the commonest one that fits wins.
    """
    from charset_normalizer import from_bytes

    guesses = [] if b"\0" in data[:_SAMPLE] else list(from_bytes(data[:_SAMPLE]))
    if not guesses:
        return None
    fitting = {g.encoding for g in guesses} | set(guesses[0].could_be_from_charset)
    latin = guesses[0].encoding in _LATIN and "cp1252" in fitting
    return data.decode("cp1252" if latin else guesses[0].encoding, errors="replace")


# Markdown by markdown-it-py: headings become sections, numbered steps keep their numbers, HTML inside is left out.

_LONG_TABLE = 60  # words of a table that one passage mostly has as a whole
_HEADING_ALONE = re.compile(r"(?:\A|\n[ \t]*\n)(#{1,6}) \S.*(?=\n[ \t]*\n)")


def is_markdown(text: str) -> bool:
    """Whether plain text is Markdown, as converters of papers save it: headings of two levels between blank lines.

    Comments of a script are of one level.
    """
    return len(set(_HEADING_ALONE.findall(text.lstrip()))) > 1


def render(source: str) -> tuple[str, tuple[DocumentSection, ...]]:
    """Plain text of Markdown `source` and its sections, offsets into that text."""
    page = Page()
    markers: list[Iterator[str]] = []
    rows: list[list[str]] = []
    lead = ""
    parser = MarkdownIt("commonmark").enable("table")
    if "]" not in source:  # no link, of which the library would seek the end behind each "["
        parser.disable(["link", "image"])
    tokens = parser.parse(source)
    for index, token in enumerate(tokens):
        match token.type:
            case "ordered_list_open":
                mark = f"{{}}{token.markup or '.'} "
                markers.append(map(mark.format, count(int(token.attrs.get("start", 1)))))
            case "bullet_list_open":
                markers.append(repeat("- "))
            case "ordered_list_close" | "bullet_list_close":
                markers.pop()
                page.text.write("\n" if not markers else "")
            case "list_item_open":
                lead = "  " * (len(markers) - 1) + next(markers[-1])
            case "inline" if tokens[index - 1].type in ("td_open", "th_open"):
                rows[-1].append(_words(token).replace("\n", " "))
            case "inline":
                _line(page, tokens[index - 1], lead + _words(token), bool(markers))
                lead = ""
            case "fence" | "code_block":
                page.text.write(lead + token.content.rstrip("\n") + "\n\n")
                lead = ""
            case "tr_open":
                rows.append([])
            case "table_close":
                page.text.write(_table(rows))
                rows = []
    return page.text.getvalue().rstrip("\n") + "\n", tuple(page.sections)


def _line(page: Page, opening: Token, text: str, in_list: bool) -> None:
    """Add one inline's text with the break that its block asks for, and its section if it is a heading."""
    if opening.type == "heading_open" and text.strip():
        page.sections.append(DocumentSection(start=page.text.tell(), level=int(opening.tag[1:]), title=text.strip()))
    if text:
        page.text.write(text + ("\n" if in_list else "\n\n"))


def _table(rows: Sequence[Sequence[str]]) -> str:
    """The rows of a table, a line each; in a long one each cell has the name of its column.

    A long one is cut into several passages, and only the first of them would have the line of names. A bar within a
    cell loses its blanks, so that it parts no cells.
    """
    rows = [[cell.replace(BETWEEN_CELLS, BETWEEN_CELLS.strip()) for cell in row] for row in rows]
    lines = [BETWEEN_CELLS.join(row) for row in rows]
    text = "".join(f"{line}\n" for line in lines)
    headed = len(set(map(len, rows))) == 1 and [table.head for table in tables(text)] == lines[:1]
    if headed and len(text.split()) > _LONG_TABLE:
        told = (zip(rows[0], row, strict=True) for row in rows[1:])
        cells = ([f"{name}: {cell}" if name else cell for name, cell in row if cell] for row in told)
        text = "".join(f"{BETWEEN_CELLS.join(row)}\n" for row in cells)
    return f"{text}\n"


def _words(token: Token) -> str:
    """The text of an inline token: code and links keep their words, images their alternative text, powers a ^."""
    pieces: list[str] = []
    children = token.children or []
    for place, child in enumerate(children, start=1):
        if child.type in ("text", "code_inline"):
            pieces.append(child.content)
        elif child.type == "html_inline" and re.match("<br[ />]", child.content, re.I):
            pieces.append("\n")
        elif child.type == "html_inline" and re.match("<sup[ >]", child.content, re.I):
            pieces.append("^" if _POWER.fullmatch(children[place].content) else "")
        elif child.type == "softbreak":
            pieces.append(" ")
        elif child.type == "hardbreak":
            pieces.append("\n")
        elif child.type == "image":
            pieces.append(_words(child) or child.content)
    return "".join(pieces)


# HTML: the main content by trafilatura, else the visible text of the body.

_HEADS = ("h1", "h2", "h3", "h4", "h5", "h6")
_INLINE = {"a", "abbr", "b", "code", "em", "i", "kbd", "small", "span", "strong", "sub", "sup", "tt", "u", "var"}
_BOX = 3  # elements at most in the box of a heading
_POWER = re.compile(r"[-\u2212+]?\d+")
_LETTERS = 26
_REPEATED, _SHORT_CELL = 20_000, 200  # cells of a page that are repeated; characters of one


def extract_html(source: str) -> tuple[str, tuple[DocumentSection, ...], str]:
    """(text, sections, title) of a page; the text is empty if the page has none."""
    from lxml import etree, html

    parser = html.HTMLParser(encoding="utf-8", remove_comments=True)
    try:
        tree = html.document_fromstring(source.encode("utf-8", "replace"), parser=parser)
    except (etree.LxmlError, ValueError):  # it holds no page
        return "", (), ""
    title = " ".join((tree.findtext(".//title") or "").split())
    _raise(tree)
    _fence(tree)
    _drop_permalinks(tree)
    _repeat_down(tree)
    _keep_numbers(tree)
    found = _main_content(tree)
    heads = sum(bool(head.text_content().strip()) for head in tree.iter(*_HEADS))
    if 2 * _headings(found) < heads:
        found = max(found, _main_content(_plainly_headed(tree)), key=_headings)
    rows = _ROWS.sub(_with_delimiter, _PICTURES.sub("", found))
    text, sections = render(rows) if found else (_visible(tree), ())
    return text, sections, title


def _repeat_down(tree: Any) -> None:
    """Write a cell over several rows into each of them: else the row's other cells move under its column.

    A long cell leaves an empty one, and no more than `_REPEATED` are written on a page that has them to do harm.
    """
    left = _REPEATED
    for table in tree.iter("table"):
        below: dict[int, tuple[Any, int, int]] = {}  # by column: a cell, the rows that it still covers, its columns
        for row in table.xpath("./tr | ./*/tr"):
            column, covering, below = 0, below, {}
            for cell in (*row.xpath("./td | ./th"), None):
                while column in covering and left:
                    above, rows, columns = covering.pop(column)
                    own = above.makeelement(above.tag)
                    own.text = above.text_content() if len(above.text_content()) <= _SHORT_CELL else ""
                    row.append(own) if cell is None else cell.addprevious(own)
                    if rows > 1:
                        below[column] = above, rows - 1, columns
                    column, left = column + columns, left - 1
                if cell is not None:
                    rows, columns = (max(1, _whole(cell, name)) for name in ("rowspan", "colspan"))
                    if rows > 1:
                        below[column] = cell, rows - 1, columns
                        del cell.attrib["rowspan"]
                    column += columns


def _keep_numbers(tree: Any) -> None:
    """Write the numbers of a list that does not count from 1, or counts in letters, into paragraphs in its place.

    trafilatura counts every list from 1, so that "point (c)" would lead to nothing. Only lists of plain lines that are
    in no other list: paragraphs within an item would run on in its line.
    """
    for listed in tree.xpath("//ol[not(ancestor::li)]"):
        items, lettered = listed.findall("li"), listed.get("type") in ("a", "A")
        own = lettered or listed.get("start") or any(item.get("value") for item in items)
        if not own or any(child.tag not in _INLINE for item in items for child in item):
            continue
        number = _whole(listed, "start")
        for item in items:
            number = _whole(item, "value", number)
            letter = chr(ord(listed.get("type")) + number - 1) if lettered and 0 < number <= _LETTERS else ""
            item.text, item.tag = f"{letter or number}. {(item.text or '').lstrip()}", "p"
            number += 1
        listed.tag = "div"


def _whole(element: Any, name: str, otherwise: int = 1) -> int:
    """The whole number in an attribute, of 5 digits at most."""
    said = element.get(name, "").strip()
    return int(said) if said.isascii() and said.isdigit() and len(said) < 6 else otherwise


def _headings(source: str) -> int:
    """How many headings Markdown `source` has."""
    return len(render(source)[1])


def _main_content(tree: Any) -> str:
    """The main content of a page as Markdown; empty where trafilatura finds none."""
    import trafilatura
    from lxml import etree

    source = etree.tostring(tree, encoding="unicode", method="html")
    found = trafilatura.extract(
        source, output_format="markdown", include_tables=True, include_comments=False, favor_recall=True
    )
    return found or ""


def _raise(tree: Any) -> None:
    """Write what is raised above the line so that it stays apart: 2^31, and [3] for the number of a note."""
    for raised in tree.iter("sup"):
        said = raised.text_content().strip()
        if _POWER.fullmatch(said):
            note = raised.find(".//a") is not None or raised.getparent().tag == "a"
            for child in list(raised):
                child.drop_tag()
            raised.text = f" [{said}]" if note else f"^{said}"


def _fence(tree: Any) -> None:
    """Make preformatted text code, which keeps its lines: "# apt update" in it is a command, not a heading.

    Words that follow it without a paragraph of their own get one; trafilatura leaves them out after code.
    """
    from lxml import etree, html

    for block in list(tree.iter("pre")):
        after = html.Element("p")
        after.text, block.tail = block.tail, None
        after.extend(list(takewhile(lambda element: element.tag in _INLINE, block.itersiblings())))
        words = block.text_content()
        block.clear()
        etree.SubElement(block, "code").text = words
        if after.text_content().strip():
            block.addnext(after)


def _drop_permalinks(tree: Any) -> None:
    """Drop the links without a word that a documentation tool puts into each heading: "¶", "#"."""
    for link in [link for head in tree.iter(*_HEADS) for link in head.iter("a")]:
        if not any(sign.isalnum() for sign in link.text_content()):
            link.drop_tree()


def _plainly_headed(tree: Any) -> Any:
    """The page with its body as the main content, and each heading as bare text outside boxes of its own.

    Without a `main` element trafilatura leaves most headings out, and those in a box too.
    """
    from lxml import etree

    body = tree.find("body")
    if body is None:
        return tree
    for head in list(body.iter(*_HEADS)):
        words, parent = head.text_content(), head.getparent()
        while parent not in (None, body) and len(parent) <= _BOX and parent.text_content().split() == words.split():
            head.tail = parent.tail
            parent.getparent().replace(parent, head)
            parent = head.getparent()
        for child in list(head):
            head.remove(child)
        head.text = words
    main = etree.SubElement(body, "main")
    main.text, body.text = body.text, None
    main.extend(child for child in list(body) if child is not main)
    return tree


_PICTURES = re.compile(r"(?:\A|(?<=[^|]\n))\|[| \t]*\|[ \t]*(?=\n[^|]|\n*\Z)")  # a table of one row without a word
_ROWS = re.compile(r"(?:^\|.*\|[ \t]*(?:\n|\Z)){2,}", re.MULTILINE)
_DELIMITER = re.compile(r"[|:\- \t]+")
_BAR = re.compile(r"(?<!\\)\|")


def _with_delimiter(found: re.Match[str]) -> str:
    """The rows of a table; without header cells trafilatura leaves out the line that makes them one in Markdown."""
    first, second, *rest = found[0].splitlines()
    if "--" not in second or not _DELIMITER.fullmatch(second):
        second = f"|{'---|' * (len(_BAR.findall(first)) - 1)}\n{second}"
    return "\n".join([first, second, *rest, ""])


def _visible(tree: Any) -> str:
    """The text of the body of a page, less scripts and styles, one line a block; empty without a body."""
    body = tree.find("body")
    if body is None:
        return ""
    for element in list(body.iter("script", "style", "noscript", "template")):
        element.drop_tree()
    return "\n".join(line for line in (" ".join(t.split()) for t in body.itertext()) if line)


# E-mail by the standard library: the fields that a reader sees, then the plain body, else that of HTML.

_MAIL_FIELDS = ("From", "To", "Cc", "Date", "Subject")
_QUOTED = re.compile(r"^(?:>[ \t]?)+", re.MULTILINE)


def extract_mail(data: bytes, name: str) -> tuple[str, str]:
    """(text, subject) of a message without marks of quotation; attachments are named, not read."""
    from email import message_from_bytes
    from email.message import EmailMessage
    from email.policy import default

    way_out = "Export it again, or save it as text."
    failures = (ValueError, LookupError, TypeError, AttributeError)
    with raised_as(FileError, f"{name} is damaged or not an e-mail", way_out, *failures):
        message = message_from_bytes(data, EmailMessage, policy=default)
        fields = {field: " ".join(str(message[field] or "").split()) for field in _MAIL_FIELDS}
        fields["Attachments"] = ", ".join(filter(None, (part.get_filename() for part in message.iter_attachments())))
        part = message.get_body(("plain", "html"))
        body = "" if part is None else str(part.get_content())
    if part is not None and part.get_content_subtype() == "html":
        body = extract_html(body)[0]
    head = "".join(f"{field}: {value}\n" for field, value in fields.items() if value)
    if not head:
        raise FileError(f"{name} is not an e-mail: it has no sender, date or subject. Save it as text.")
    text = _QUOTED.sub("", body.replace("\r\n", "\n").replace("\r", "\n"))
    return well_formed(f"{head}\n{text}"), fields["Subject"]


# Subtitles and transcripts of calls (SRT, WebVTT): what is said, without numbers and times.

_CUE_TIME = re.compile(r".*\d\d:\d\d[.,]\d{3} +--> ")
_SPEAKER = re.compile(r"<v(?:\.[^ >]*)? ([^>]+)>")
_TAG = re.compile(r"</?[a-z][^>]*>|<\d[\d:.]*>|\{\\[^}]*\}", re.I)


def spoken(source: str) -> str:
    """The words of subtitles: a line for each speaker, or without speakers for each sentence."""
    lines: list[str] = []
    for block in re.split(r"\n[ \t]*\n", source):
        rows = block.strip("\n").split("\n")
        time = next((place for place, row in enumerate(rows) if _CUE_TIME.match(row)), None)
        if time is None:
            continue
        said = _TAG.sub("", _SPEAKER.sub(r"\1: ", " ".join(rows[time + 1 :])))
        words = " ".join(said.split())
        named = lines and re.match(r"[^:]{1,40}: ", words)
        if not lines or (named and not lines[-1].startswith(named[0])) or (not named and lines[-1][-1:] in ".!?"):
            lines.append(words)
        else:
            lines[-1] = f"{lines[-1]} {words[named.end() :] if named else words}".strip()
    return "\n".join(filter(None, lines))


# Packed files.

UNPACKED = 500 * 1024 * 1024  # bytes in all
MEMBERS = 20_000  # files in one archive
RATIO = 200  # unpacked over packed, for a member of more than `SMALL` bytes
SMALL = 1024 * 1024
DAMAGED = (  # raised for an archive that is damaged or of an unknown kind
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, OSError, ValueError, LookupError, OverflowError, RuntimeError),
)


def check_zip(archive: zipfile.ZipFile, name: str) -> None:
    """Raise `FileError` where the directory of a zip file announces too many, too large or too packed members."""
    members = archive.infolist()
    total = sum(member.file_size for member in members)
    packed = any(m.file_size > SMALL and m.file_size > RATIO * max(m.compress_size, 1) for m in members)
    if len(members) > MEMBERS or total > UNPACKED or packed:
        raise too_large(name)


def too_large(name: str) -> FileError:
    """The error for a file that unpacks to too much."""
    return FileError(
        f"{name} unpacks to more than a document should and was not opened. Add its files unpacked, at most "
        f"{UNPACKED // 2**20} MB at a time."
    )


# DOCX by python-docx: paragraphs, lists and tables in order; headings become sections. Insertions and content controls
# are read too, a merged cell once, and text boxes and notes after the paragraph or table that they belong to.

_BLOCKS = ".//w:p[not(ancestor::w:tbl or ancestor::w:p)] | .//w:tbl[not(ancestor::w:tbl or ancestor::w:p)]"
_ROWS_OF = ".//w:tr[count(ancestor::w:tbl) = 1]"
_CELLS_OF = ".//w:tc[count(ancestor::w:tbl) = 1]"
_PARAGRAPHS_OF = ".//w:p[not(ancestor::w:p)]"
_THERE = "not(ancestor::w:del or ancestor::w:moveFrom)"
_RUNS_OF = f".//w:r[{_THERE} and count(ancestor::w:txbxContent) = {{boxes}}]"
_BOXES_OF = ".//w:txbxContent//w:p"
_NOTES_OF = f".//w:footnoteReference[{_THERE}] | .//w:endnoteReference[{_THERE}]"
_NOTES = ("footnote", "endnote")


def extract_docx(data: bytes, name: str) -> tuple[str, tuple[DocumentSection, ...], str]:
    """(text, sections, title) of a DOCX; raise `FileError` for a damaged, macro-bearing or exploding one."""
    from docx import Document
    from docx.opc.exceptions import OpcError
    from docx.text.paragraph import Paragraph
    from lxml.etree import LxmlError

    page = Page()
    # A part or a target that is missing is None to the library, which trips over it.
    damaged = (OpcError, LxmlError, TypeError, AttributeError, *DAMAGED)
    way_out = "Open it in an editor and save it again."
    with raised_as(FileError, f"{name} is damaged, protected or not a DOCX file", way_out, *damaged):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            check_zip(archive, name)
            if any(member.endswith("vbaProject.bin") for member in archive.namelist()):
                raise FileError(f"{name} contains macros and was not opened. Save it as a .docx without macros.")
        document = Document(io.BytesIO(data))
        notes = _notes(document)
        for block in _drawn_once(document.element.body).xpath(_BLOCKS):
            if block.tag.endswith("}tbl"):
                cells = ([cell.xpath(_PARAGRAPHS_OF) for cell in row.xpath(_CELLS_OF)] for row in block.xpath(_ROWS_OF))
                page.text.write(_table([list(map(_joined, row)) for row in cells]))
            else:
                _add_paragraph(page, Paragraph(block, document))
            for box in block.xpath(_BOXES_OF):
                _add_paragraph(page, Paragraph(box, document))
            for reference in block.xpath(_NOTES_OF):
                if note := notes.get((_tag(reference).removesuffix("Reference"), _id(reference))):
                    page.text.write(f"{note}\n\n")
        title = str(document.core_properties.title or "").strip()
    return page.text.getvalue(), tuple(page.sections), title


def _notes(document: Any) -> dict[tuple[str, str], str]:
    """The text of each footnote and endnote by kind and id."""
    from docx.oxml import parse_xml
    from docx.oxml.ns import qn

    links = [link for link in document.part.rels.values() if link.reltype.endswith(("/footnotes", "/endnotes"))]
    roots = (_drawn_once(parse_xml(link.target_part.blob)) for link in links)
    notes = (note for root in roots for note in root if _tag(note) in _NOTES)
    return {(_tag(note), _id(note)): _joined(note.iterdescendants(qn("w:p"))) for note in notes}


def _drawn_once(root: Any) -> Any:
    """The tree without the drawings for old readers, which say again what those for new ones say."""
    for fallback in list(root.iter("{*}Fallback")):
        fallback.getparent().remove(fallback)
    return root


def _tag(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _id(element: Any) -> str:
    from docx.oxml.ns import qn

    return str(element.get(qn("w:id")))


def _joined(paragraphs: Iterable[Any]) -> str:
    """The text of a note or a table's cell in one line."""
    return " ".join(filter(None, map(_run_text, paragraphs))).replace("\n", " ")


def _run_text(paragraph: Any) -> str:
    """The words of a paragraph's element without deleted ones; a raised number is a power: 10^6."""
    pieces = []
    boxes = len(paragraph.xpath("ancestor::w:txbxContent"))
    runs = [run for run in paragraph.xpath(_RUNS_OF.format(boxes=boxes)) if run.text]
    for raised, group in groupby(runs, lambda run: bool(run.xpath("./w:rPr/w:vertAlign[@w:val='superscript']"))):
        text = "".join(run.text for run in group)
        pieces.append(f"^{text}" if raised and _POWER.fullmatch(text.strip()) else text)
    return well_formed("".join(pieces)).strip()


def _add_paragraph(page: Page, paragraph: Paragraph) -> None:
    """One paragraph with its list mark; a heading, or the title, starts a section."""
    text = _run_text(paragraph._p)
    if not text:
        return
    style = str(paragraph.style.name if paragraph.style is not None else "")
    heading = re.fullmatch(r"Heading ([1-9]\d*)", style)
    if heading or style == "Title":
        level = int(heading[1]) if heading else 1
        page.sections.append(DocumentSection(start=page.text.tell(), level=level, title=text))
    numbered = style.startswith("List Number")
    page.number = page.number + 1 if numbered else 0
    mark = f"{page.number}. " if numbered else "- " if style.startswith("List Bullet") else ""
    page.text.write(mark + text + ("\n" if mark else "\n\n"))


# PDF by pypdf: text page by page with the offset at which each page starts.

_BREAK = "\n\n"
_FILE_NAME = re.compile(
    r"^Microsoft \w+ - |^\w+:\S+$|\.(?:html?|docx?|odt|rtf|txt|tex|dvi|indd|pdf|pptx?|xlsx?)$", re.I
)


def extract_pdf(data: bytes, name: str) -> tuple[str, tuple[int, ...], str]:
    """(text, page offsets, title) of a PDF; raise `FileError` for an encrypted, damaged or scanned one."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.ERROR)
    damaged = (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, RuntimeError)
    incomplete = f"{name} is damaged or incomplete and cannot be read as PDF"
    with raised_as(FileError, incomplete, "Download it again.", *damaged, ImportError, OSError):
        reader = PdfReader(io.BytesIO(data))
        locked = reader.is_encrypted and not reader.decrypt("")
        if not locked:
            len(reader.pages)  # read now: the file may be cut off
    if locked:
        raise FileError(f"{name} is protected by a password. Save a copy without one and try again.")
    texts: list[str] = []
    for number, page in enumerate(reader.pages, start=1):
        broken = f"{name}, page {number}, is damaged and cannot be read"
        with raised_as(FileError, broken, "Download the file again.", *damaged):
            text = well_formed(unligated(page.extract_text().translate(_CORK)))
            texts.append(text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", ""))
    if not any(text.strip() for text in texts):
        raise FileError(f"{name} has pages but no text: it is probably a scan. Run text recognition (OCR) first.")
    texts = joined_words(without_running_lines(texts))
    breaks = ["\n" if _runs_on(*pages) else _BREAK for pages in pairwise(texts)]
    parts = [f"{text}{after}" for text, after in zip(texts, [*breaks, ""], strict=True)]
    starts = accumulate(map(len, parts[:-1]), initial=0)
    return "".join(parts), tuple(starts), _pdf_title(reader)


def _runs_on(page: str, following: str) -> bool:
    """Whether a sentence goes over to the next page."""
    end, start = page.rstrip()[-1:], following.lstrip()[:1]
    return end not in ".!?:;" and start.islower()


# Letters of TeX's T1 fonts (Cork encoding) in a PDF that does not say what its codes mean.
_CORK = str.maketrans(
    {"\x10": "“", "\x11": "”", "\x15": "–", "\x16": "—"}
    | {chr(0x1B + place): letters for place, letters in enumerate(("ff", "fi", "fl", "ffi", "ffl"))}
)
# A number that may be a page's: 3, or 3/12 at the end of the line. Not a part of an amount or a date.
_PAGE_NUMBER = re.compile(r"(?<![\d.,/$€£])(\d{1,4})(?:/\d{1,4}\s*$|(?![.,/]?\d))")
_NUMBERED_HEADING = re.compile(r"\s*(?:question|exercise|problem|task|step|section|part|article) \d+\W*", re.I)
_RUNNING = 2  # lines at the top or foot of a page that may be its head or foot
_CUT = re.compile(r"([^\W\d_]+)[-‐\u00ad]\n([^\W\d_]+)")
_WORD = re.compile(r"[^\W\d_]+")


def without_running_lines(pages: Sequence[str]) -> list[str]:
    """The pages without heads, feet and page numbers: first and last lines that a third of them share.

    Lines may differ in one number that grows with the page; on half of the pages it may also grow by 0 to 2 a page on
    average, as on slides and scanned spreads. At least three pages must share a line, and no page is left without text.
    "Question 3" is a heading.

    >>> without_running_lines(["Gears 1\\nOne.", "Gears 2\\nTwo.", "Gears 3\\nThree."])
    ['One.', 'Two.', 'Three.']
    """
    rest = [page.strip("\n").split("\n") for page in pages]
    for edge in (0, -1):
        for _ in range(_RUNNING):
            running = _running([lines[edge] for lines in rest])
            for runs, lines in zip(running, rest, strict=True):
                alone = not any(line.strip() for line in (lines[1:] if edge == 0 else lines[:-1]))
                if runs and not alone:
                    lines.pop(edge)
                    while not lines[edge].strip():
                        lines.pop(edge)
    return ["\n".join(lines) for lines in rest]


def _running(lines: Sequence[str]) -> list[bool]:
    """Whether enough pages share the form of each page's line, with a number that grows as it should."""
    forms = [_forms(line, page) for page, line in enumerate(lines)]
    numbers: dict[str, list[int]] = defaultdict(list)
    for form, number in chain.from_iterable(own.items() for own in forms):
        numbers[form].append(number)
    shared = Counter((form, number - page) for page, own in enumerate(forms) for form, number in own.items())
    third, half = max(3, len(lines) / 3), max(3, len(lines) / 2)
    slow = {
        form
        for form, found in numbers.items()
        if len(found) >= half and found == sorted(found) and found[-1] - found[0] <= 2 * len(lines)
    }
    return [
        any(form in slow or shared[form, number - page] >= third for form, number in own.items())
        for page, own in enumerate(forms)
    ]


def _forms(line: str, page: int) -> dict[str, int]:
    """The forms of a line that pages may share: as it is, and with a number left out, which is the value."""
    words = " ".join(line.split())
    if not words or _NUMBERED_HEADING.fullmatch(words):
        return {}
    return {
        words: page,
        **{f"{words[: n.start()]}#{words[n.end(1) :]}": int(n[1]) for n in _PAGE_NUMBER.finditer(words)},
    }


def joined_words(pages: Sequence[str]) -> list[str]:
    """The pages with words that a line break cuts in one piece again.

    The hyphen stays where both parts are words of the document and the whole is not: "well-known".

    >>> joined_words(["It is a well known inves-\\ntigation, a well-\\nknown one."])
    ['It is a well known investigation, a well-\\nknown one.']
    """
    words = {word.lower() for page in pages for word in _WORD.findall(_CUT.sub(" ", page))}

    def mended(cut: re.Match[str]) -> str:
        left, right = cut[1], cut[2]
        compound = {left.lower(), right.lower()} <= words and f"{left}{right}".lower() not in words
        return cut[0] if compound or not right[0].islower() else f"{left}{right}"

    return [_CUT.sub(mended, page) for page in pages]


def _pdf_title(reader: PdfReader) -> str:
    """The title in the file's own information; empty for a file's name or an address, as programs put there unasked."""
    try:
        title = str((reader.metadata and reader.metadata.title) or "").strip()
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
    return "" if _FILE_NAME.search(title) else title
