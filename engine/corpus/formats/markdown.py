"""Markdown to plain text with its headings as sections; rendered by markdown-it-py, nothing executed.

Numbered steps keep their numbers, bullets become "- ", links and images keep their words, tables become lines of
cells. HTML inside is left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

from engine.corpus.formats.plain import Page
from engine.types import Section


def render(source: str) -> tuple[str, tuple[Section, ...]]:
    """Plain text of Markdown `source` and its sections, offsets into that text."""
    page = Page()
    markers: list[Iterator[str]] = []
    lead = ""
    tokens = MarkdownIt("commonmark").enable("table").parse(source)
    for index, token in enumerate(tokens):
        match token.type:
            case "ordered_list_open":
                markers.append(_numbers(token))
            case "bullet_list_open":
                markers.append(_bullets())
            case "ordered_list_close" | "bullet_list_close":
                markers.pop()
                page.add("\n" if not markers else "")
            case "list_item_open":
                lead = "  " * (len(markers) - 1) + next(markers[-1])
            case "inline":
                _line(page, tokens[index - 1], lead + _words(token), bool(markers))
                lead = ""
            case "fence" | "code_block":
                page.add(lead + token.content.rstrip("\n") + "\n\n")
                lead = ""
            case "tr_close":
                page.add("\n")
            case "table_close":
                page.add("\n")
    return "".join(page.parts).rstrip("\n") + "\n", tuple(page.sections)


def _numbers(token: Token) -> Iterator[str]:
    """ "1. ", "2. ", ... from the list's own first number and with its own mark."""
    number = int(token.attrs.get("start", 1))
    while True:
        yield f"{number}{token.markup or '.'} "
        number += 1


def _bullets() -> Iterator[str]:
    """ "- " for ever."""
    while True:
        yield "- "


def _line(page: Page, opening: Token, text: str, in_list: bool) -> None:
    """Add one inline's text with the break that its block asks for, and its section if it is a heading."""
    if opening.type == "heading_open" and text.strip():
        page.sections.append(Section(start=page.length, level=int(opening.tag[1:]), title=text.strip()))
    if opening.type in ("td_open", "th_open"):
        page.add(f" | {text}" if page.parts and not page.parts[-1].endswith("\n") else text)
    elif text:
        page.add(text + ("\n" if in_list else "\n\n"))


def _words(token: Token) -> str:
    """The text of an inline token: code and links keep their words, images their alternative text."""
    pieces: list[str] = []
    for child in token.children or []:
        if child.type in ("text", "code_inline"):
            pieces.append(child.content)
        elif child.type == "softbreak":
            pieces.append(" ")
        elif child.type == "hardbreak":
            pieces.append("\n")
        elif child.type == "image":
            pieces.append(_words(child) or child.content)
    return "".join(pieces)
