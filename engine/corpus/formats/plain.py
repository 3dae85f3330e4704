"""Plain text: bytes in any common encoding to text with line breaks as \\n, and text put together from its parts."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field

from engine.errors import FileError
from engine.types import Section

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
    """The text and the sections of a document so far; a builder local to one call."""

    parts: list[str] = field(default_factory=list)
    length: int = 0
    sections: list[Section] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Put text at the end."""
        self.parts.append(text)
        self.length += len(text)


def decode(data: bytes, name: str) -> str:
    """Text of `data`: by its byte-order mark, as UTF-8, else by charset-normalizer's best guess.

    Raises `FileError` for bytes that are no text. Line breaks become \\n, so that offsets are the same for
    a file saved on any system.
    """
    text = _by_mark(data)
    if text is None:
        text = _utf8(data)
    if text is None:
        text = _guessed(data, name)
    if _CONTROL.search(text[:_SAMPLE]) and _share_of_control(text[:_SAMPLE]) > 0.02:
        raise FileError(f"{name} is not text, or in no known encoding. Save it as UTF-8 text and try again.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def require_text(text: str, name: str) -> str:
    """`text` unchanged; raise `FileError` if there is nothing in it but white space."""
    if not text.strip():
        raise FileError(f"{name} holds no text. Leave it out, or check that it was saved completely.")
    return text


def _by_mark(data: bytes) -> str | None:
    """Text by byte-order mark; None without one or where it does not fit."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    return None


def _utf8(data: bytes) -> str | None:
    """Text as UTF-8, or None."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _guessed(data: bytes, name: str) -> str:
    """Text by the statistics of its bytes; the guess is made on the first 64 KiB.

    Between the Latin code pages, which differ in a few letters, the commonest one that fits wins.
    """
    from charset_normalizer import from_bytes

    guesses = [] if b"\0" in data[:_SAMPLE] else list(from_bytes(data[:_SAMPLE]))
    if not guesses:
        raise FileError(f"{name} is not text, or in no known encoding. Save it as UTF-8 text and try again.")
    fitting = {g.encoding for g in guesses} | set(guesses[0].could_be_from_charset)
    latin = guesses[0].encoding in _LATIN and "cp1252" in fitting
    return data.decode("cp1252" if latin else guesses[0].encoding, errors="replace")


def _share_of_control(text: str) -> float:
    """Share of control characters in [0, 1]."""
    return len(_CONTROL.findall(text)) / max(len(text), 1)
