"""The only way into HTML for pages: markup is built by the engine's escaping functions and drawn here."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Literal

import streamlit as st

from engine.answer.citations import without_markers
from engine.cases.markup import escape, markdown_parts, quoted, tag, visible
from engine.core.text import BETWEEN_CELLS, LIST_ITEM, blocks

_MARKS = re.compile(r"[\\`*_{}\[\]|~$<&]|:(?=[A-Za-z/])|^[#>+=-]|(?<=^\d)[.)]|(?<=^\d\d)[.)]")
_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-*:?[ \t]*)+")  # "|---|---:|"
# Between these two signs stands what makes an icon, a web address or a mail address.
_JOINT = re.compile(r"(?<=:)(?=[\w/\\+-]+:|//)|(?<=www)(?=\.)|(?=@)", re.IGNORECASE)


def plain(text: str) -> str:
    """Text for a Streamlit element that reads Markdown (messages, captions, labels): every mark is taken as a sign.

    Icons and links of bare addresses are made after the marks are read, so that no backslash stops them: a word joiner
    does, which takes no room. An address reads as it was written and leads nowhere.
    """
    return _JOINT.sub("\u2060", _MARKS.sub(r"\\\g<0>", " ".join(visible(text).split())))


def cell(text: str) -> str:
    """Text for a cell of a table, which can be downloaded as CSV."""
    return visible(quoted(text))


def chart_text(text: str) -> str:
    """Text for a title, name or tick of a chart: Plotly reads tags there, a link among them, and these entities.

    >>> chart_text('<a href="http://a.b">1 & 2</a>')
    '&lt;a href="http://a.b"&gt;1 &amp; 2&lt;/a&gt;'
    """
    return html.escape(visible(text), quote=False)


def rows_apart(text: str) -> str:
    """Line breaks as blanks where a wrapped sentence continues, else as they are; as many characters as before.

    >>> rows_apart("# Fees\\nThese are\\ndue.\\nWho | Fee\\nAdults | 90").split("\\n")
    ['# Fees', 'These are due.', 'Who | Fee', 'Adults | 90']
    >>> rows_apart("RK: And was it looked into?\\nJ: Not that I know of.").split("\\n")
    ['RK: And was it looked into?', 'J: Not that I know of.']
    """
    ends = {end for _, end in blocks(text)}
    return "".join(" " if sign == "\n" and end not in ends else sign for end, sign in enumerate(text, start=1))


def markdown_runs(text: str) -> list[dict[str, str]]:
    """A text cut at its Markdown, with the style of each part, for a component to draw: nothing is left out."""
    return [{"text": visible(words), "style": style} for words, style in markdown_parts(text)]


def table_classes(sentences: Sequence[str]) -> list[str]:
    """The look of each sentence of an answer as a part of a table: its head, another row, the rule below the head.

    >>> table_classes(["Fees:", "| Who | Fee |", "|---|---|", "| Adults | 90 |"])
    ['', 'row strong', 'between', 'row']
    """
    looks = ["between" if _RULE.fullmatch(text) else "row" if _is_row(text) else "" for text in sentences]
    below = zip_longest(looks, looks[1:], fillvalue="")
    return ["row strong" if pair == ("row", "between") else pair[0] for pair in below]


def _is_row(text: str) -> bool:
    """Is it a line with bars around its cells, or between them and no end mark?"""
    line = without_markers(text)
    between = BETWEEN_CELLS in line and line[-1] not in ".!?:" and not LIST_ITEM.match(line)
    return "\n" not in line and (between or re.fullmatch(r"\|.+\|", line) is not None)


def gap_runs(gap: str, before: str, after: str) -> list[dict[str, str]]:
    """The text between two sentences of these `table_classes`; the line breaks of a table's rows are not drawn."""
    if before and after and not gap.strip():
        return [{"text": gap, "style": "between"}]
    ended = gap[: before != "" and gap.startswith("\n")]
    return [*([{"text": ended, "style": "between"}] if ended else []), *markdown_runs(gap[len(ended) :])]


def text_before(text: str, most: int) -> str:
    """The end of a text, at most `most` characters from the beginning of a word on; "…" says that it was cut.

    >>> text_before("one two three", 8), text_before("one", 8)
    ('… three', 'one')
    """
    return text if len(text) <= most else "… " + text[-most:].partition(" ")[2]


def text_after(text: str, most: int) -> str:
    """The beginning of a text, at most `most` characters to the end of a word; "…" says that it was cut.

    >>> text_after("one two three", 9), text_after("one", 9), text_after("onetwothree", 9)
    ('one two …', 'one', 'onetwothr …')
    """
    return text if len(text) <= most else f"{text[:most].rpartition(' ')[0] or text[:most]} …"


def chips(values: Sequence[tuple[str, str]]) -> str:
    """Small labelled values in a row: (label, value) pairs."""
    cells = (
        tag("span", tag("span", escape(label), class_="gw-label") + " " + escape(value), class_="gw-chip")
        for label, value in values
    )
    return tag("div", "".join(cells), class_="gw-chips")


def table(heads: Iterable[str], rows: Iterable[str], caption: str) -> str:
    """A table of markup: a `th` per column, a `tr` per row; a wide one scrolls. Plain ones are drawn as blocks."""
    head = tag("thead", tag("tr", "".join(heads)))
    drawn = tag("table", tag("caption", escape(caption)) + head + tag("tbody", "".join(rows)), class_="gw-table")
    return tag("div", drawn, class_="gw-scroll", tabindex="0")


def show(markup: str, *, width: Literal["stretch", "content"] = "stretch") -> None:
    """Draw markup built by the functions above."""
    st.html(markup, width=width)


def note(text: str) -> None:
    """Draw a quiet line of plain text."""
    show(tag("p", escape(text), class_="gw-note"))


def banner(text: str) -> None:
    """Draw a line of plain text to read before the content below it."""
    show(tag("p", escape(text), class_="gw-banner"))
