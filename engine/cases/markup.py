"""The only way from text to markup: what is shown of passages, models and people is escaped here.

Text is untrusted. Characters that would not be seen, or that would reorder what is seen, are drawn as their names.
"""

from __future__ import annotations

import html
import unicodedata

# Bidirectional controls can reorder the text around them.
_CONTROLS = {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)}
_NONCHARACTERS = {0xFFFE, 0xFFFF}


def visible(text: str) -> str:
    """Text with invisible controls made visible: bidirectional overrides, ANSI escapes, other control characters.

    >>> visible("a\\x1b[31mb")
    'a␛[31mb'
    """
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    code = ord(character)
    if character in _CONTROLS:
        return f"[{unicodedata.name(character, 'CONTROL').title()}]"
    if code < 32 and character not in "\n\t":
        return chr(0x2400 + code)
    if 0x7F <= code < 0xA0:
        return "\u2421" if code == 0x7F else f"[U+{code:04X}]"
    return "\ufffd" if 0xD800 <= code <= 0xDFFF or code & 0xFFFF in _NONCHARACTERS else character


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
