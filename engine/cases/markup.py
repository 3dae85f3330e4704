"""The only way from text to markup: what is shown of passages, models and people is escaped here.

Text is untrusted. Characters that would not be seen, or that would reorder what is seen, are drawn as their names.
"""

from __future__ import annotations

import html
import re
import unicodedata
from itertools import groupby
from operator import itemgetter

from engine.answer.citations import unmarked

# Bidirectional controls can reorder the text around them; the others take no room, or end a line where none ends.
_REORDER = (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)
_HIDDEN = (0xAD, 0x115F, 0x1160, 0x180E, 0x200B, 0x2028, 0x2029, *range(0x2060, 0x2066), 0x3164, 0xFEFF, 0xFFA0)
_TAGS = range(0xE0000, 0xE0080)
_DRAWN = {
    **{code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"},
    **{code: f"[U+{code:04X}]" for code in (*range(0x80, 0xA0), *_HIDDEN, *_TAGS)},
    **{code: f"[{unicodedata.name(chr(code)).title()}]" for code in _REORDER},
    **{plane | low: "\ufffd" for plane in range(0, 0x110000, 0x10000) for low in (0xFFFE, 0xFFFF)},
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
    0x7F: "\u2421",
}
_MARK = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
# No script stacks more than four marks on a letter; a tower of them covers the lines above it.
_TOWER = re.compile(f"({_MARK}{{4}})({_MARK}+)")


def visible(text: str) -> str:
    """Text with what would not be seen made visible: bidirectional overrides, ANSI escapes, characters without width.

    Joiners inside a word stay, since emoji and several scripts need them. Of a tower of combining marks the first
    four stay.

    >>> visible("a\\x1b[31mb")
    'a␛[31mb'
    """
    return _TOWER.sub(lambda found: f"{found[1]}[{len(found[2])} more marks]", text.translate(_DRAWN))


# A heading, the rule below a table's head, and bold.
_SET_OUT = re.compile(
    r"^[ \t]*(?P<hashes>#{1,6}[ \t]+)(?P<heading>[^\n]+)|^(?P<rule>[ \t]*\|?[ \t]*:?-{3}[-:| \t]*)$"
    r"|\*\*(?P<bold>[^*\n]+)\*\*",
    re.MULTILINE,
)


def markdown_parts(text: str) -> list[tuple[str, str]]:
    """A text cut at its Markdown, each part with its style: marks are hidden or faint, bold and headings strong.

    >>> markdown_parts("**Dose:** 5 mg")
    [('**', 'hidden'), ('Dose:', 'strong'), ('**', 'hidden'), (' 5 mg', '')]
    """
    styles = [
        "" if sign == kept else "hidden" if sign in "*_`" else "faint"
        for sign, kept in zip(text, unmarked(text), strict=True)
    ]
    for found in _SET_OUT.finditer(text):
        for group, style in (("hashes", "hidden"), ("rule", "faint"), ("heading", "strong"), ("bold", "strong")):
            start, end = found.span(group)
            styles[start:end] = [before or style for before in styles[start:end]]
    runs = groupby(zip(text, styles, strict=True), key=itemgetter(1))
    return [("".join(sign for sign, _ in run), style) for style, run in runs]


_NUMBER = re.compile(r"[+-][\d.,]+(e[+-]?\d+)?%?")


def quoted(text: str) -> str:
    """Text for a cell of a CSV file: what a spreadsheet would run as a formula is quoted.

    >>> quoted("=1+1"), quoted("-0.5")
    ("'=1+1", '-0.5')
    """
    runs = text.startswith(("=", "+", "-", "@", "\t", "\r")) and not _NUMBER.fullmatch(text)
    return f"'{text}" if runs else text


def escape(text: str) -> str:
    """Text as HTML text or attribute value."""
    return html.escape(visible(text), quote=True)


def tag(name: str, content: str = "", **attributes: str | bool) -> str:
    """An element; `content` is HTML already, attribute values are escaped here (`class_` writes class).

    An attribute that is True is written without a value; one that is False or empty is left out.
    """
    written = "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    return f"<{name}{written}>{content}</{name}>"


def _attribute(name: str, value: str | bool) -> str:
    if value is True:
        return f" {name}"
    return f' {name}="{escape(value)}"' if value else ""
