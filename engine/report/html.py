"""The report as one HTML file: no script, no network, every text escaped.

The policy in its head allows one style sheet, by its hash, and nothing else. Colours are steps of a scale written as
classes, because the policy allows no style attribute either.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from engine.cases import blocks as b
from engine.cases.markup import escape, tag
from engine.core.files import ASSETS

STEPS = 5  # steps of colour on either side of zero
LONG = 44  # characters of a value that still fits a column


def to_html(document: b.Document) -> str:
    """The whole file."""
    style = stylesheet()
    policy = f"default-src 'none'; style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'"
    head = (
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        '<meta name="referrer" content="no-referrer">'
        + tag("title", escape(_line(f"{document.title} - {document.lead}")))
        + f"<style>{style}</style>"
    )
    header = tag("header", tag("p", escape(document.lead), class_="lead") + tag("h1", escape(document.title)))
    contents = tag("nav", tag("h2", "Contents") + _contents(document.blocks), aria_label="Contents")
    main = tag("main", fragment(document.blocks))
    foot = tag("footer", tag("p", escape(document.foot)))
    body = tag("body", f"{header}\n{contents}\n{main}\n{foot}")
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n{body}\n</html>\n'


@cache
def stylesheet() -> str:
    """The report's style sheet."""
    return (ASSETS / "report" / "report.css").read_text(encoding="utf-8")


def _hash(style: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


def _line(text: str) -> str:
    return " ".join(text.split())


def _contents(blocks: tuple[b.Block, ...]) -> str:
    sections = [block for block in blocks if isinstance(block, b.Section) and block.id]
    links = (tag("li", tag("a", escape(section.title), href=f"#{section.id}")) for section in sections)
    return tag("ol", "".join(links))


def fragment(blocks: Iterable[b.Block]) -> str:
    """Blocks as HTML, every text escaped, to be put into a page."""
    return "\n".join(map(_draw, blocks))


def _draw(block: b.Block) -> str:
    draw: Callable[[Any], str] = _DRAW[type(block)]
    return draw(block)


def _text(block: b.Text) -> str:
    classes = {"plain": "", "note": "note", "answer": "answer", "passage": "passage"}
    return tag("p", "".join(map(_run, block.runs)), class_=classes[block.kind])


def _run(run: b.Run) -> str:
    text = escape(run.text)
    if run.kind == "cite":
        return tag("a", text, class_="cite", href=f"#{run.link}", title=run.note)
    if run.kind == "invalid":
        return tag("span", text, class_="cite invalid", title=run.note)
    if run.kind == "label":
        return tag("span", text + tag("small", f" {escape(run.note)} ", class_="says"), class_="label")
    names = {"text": "", "strong": "strong", "mark": "mark", "old": "del", "new": "ins"}
    name = names[run.kind]
    if run.link:
        text = tag("a", text, href=f"#{run.link}")
    return tag(name, text) if name else text


def _table(block: b.Table) -> str:
    head = "".join(
        tag("th", escape(name), scope="col", class_="number" if i in block.numeric else "")
        for i, name in enumerate(block.columns)
    )
    body = "".join(tag("tr", "".join(_cell(block, i, cell) for i, cell in enumerate(row))) for row in block.rows)
    table = tag("caption", escape(block.caption)) + tag("thead", tag("tr", head)) + tag("tbody", body)
    # A wide table scrolls in its own box, which must be reachable by keyboard.
    return tag("div", tag("table", table), class_="wide", role="group", tabindex="0", aria_label=_line(block.caption))


def _cell(table: b.Table, column: int, cell: b.Cell) -> str:
    text = escape(cell.text)
    if cell.link:
        text = tag("a", text, href=f"#{cell.link}")
    if cell.note:
        text += tag("small", escape(cell.note))
    classes = " ".join(name for name, holds in (("number", column in table.numeric), ("faint", cell.faint)) if holds)
    return tag("td", text, class_=classes) if column else tag("th", text, scope="row", class_=classes)


def _facts(block: b.Facts) -> str:
    return tag("dl", "".join(_fact(name, value) for name, value in block.pairs))


def _fact(name: str, value: str) -> str:
    # A long value gets the whole width, so that the short ones stand in columns.
    kind = "long" if len(value) > LONG else ""
    return tag("div", tag("dt", escape(name)) + tag("dd", escape(value)), class_=kind)


def _heat(block: b.Heat) -> str:
    pieces = "".join(_piece(text, value, block) for text, value in block.pieces)
    caption = tag("figcaption", escape(block.caption))
    return tag("figure", caption + tag("p", pieces, class_="heat"))


def _piece(text: str, value: float, block: b.Heat) -> str:
    step = round(STEPS * min(1.0, abs(value) / block.largest)) if block.largest > 0 else 0
    if not step:
        return escape(text)
    side = "p" if value > 0 else "n"
    return tag("span", escape(text), class_=f"{side}{step}", title=f"{value:+z.3f} {block.unit}")


def _code(block: b.Code) -> str:
    return tag("pre", escape(block.text), tabindex="0", role="group", aria_label=block.label)


def _notice(block: b.Notice) -> str:
    return tag("p", tag("strong", "Note. ") + escape(block.text), class_="notice")


def _fold(block: b.Fold) -> str:
    return tag("details", tag("summary", escape(block.title)) + "".join(map(_draw, block.blocks)))


def _section(block: b.Section) -> str:
    heading = tag(f"h{block.level}", escape(block.title))
    return tag("section", heading + "\n".join(map(_draw, block.blocks)), id=block.id)


_DRAW: dict[type, Callable[[Any], str]] = {
    b.Text: _text,
    b.Table: _table,
    b.Facts: _facts,
    b.Heat: _heat,
    b.Code: _code,
    b.Notice: _notice,
    b.Fold: _fold,
    b.Section: _section,
}
