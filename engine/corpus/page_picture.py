"""A page of a PDF as a picture, with the place of some words on it: drawn by PDFium in a process of its own.

The file is untrusted. The process that reads it gets `SECONDS` of time, `MEMORY` bytes and a picture of at most
`PIXELS`; where it fails, hangs or crashes, nothing else does. PDFium runs no script of the file and fetches nothing.
Words are found by their letters and digits alone, so that line breaks, hyphens and ligatures do not matter.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 15  # of wall time; a page takes well under one
MEMORY = 2 * 2**30  # bytes of address space
PIXELS = 4_000_000
WIDTH = 1_100  # pixels of the picture, fewer where it would have more than `PIXELS`
LETTERS = 50_000  # characters of a page within which words are looked for
SHORTEST = 20  # letters and digits that a cut part of the words must have to be marked


@dataclass(frozen=True)
class PagePicture:
    """A page as PNG. `marks` are (left, top, right, bottom) in shares of the picture, one per line of the words."""

    png: bytes
    marks: tuple[tuple[float, float, float, float], ...] = ()


def draw_page(path: Path, page: int, words: str = "") -> PagePicture:
    """Draw page `page` (from 1) and mark `words`, or as much of their beginning as is on it; raise `FileError`."""
    from engine.core.errors import FileError

    given = json.dumps({"path": str(path), "page": page, "words": words[:LETTERS]})
    command = [sys.executable, "-I", __file__]
    try:
        done = subprocess.run(command, input=given.encode(), capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise FileError(f"Page {page} takes over {SECONDS} seconds to draw. Open the file in a PDF viewer.") from error
    if done.returncode:
        raise FileError(f"Page {page} cannot be drawn. Open the file in a PDF viewer.")
    marks, _, png = done.stdout.partition(b"\n")
    return PagePicture(png, tuple(tuple(mark) for mark in json.loads(marks)))


def squeezed(text: str) -> tuple[str, list[int]]:
    """The letters and digits of a text in lower case, and the place in `text` that each is from.

    >>> squeezed("A ﬁne-\\nline")
    ('afineline', [0, 2, 2, 3, 4, 7, 8, 9, 10])
    """
    kept = [
        (letter, place)
        for place, character in enumerate(text)
        for letter in unicodedata.normalize("NFKC", character).casefold()
        if letter.isalnum()
    ]
    return "".join(letter for letter, _ in kept), [place for _, place in kept]


def place_of(words: str, text: str) -> tuple[int, int] | None:
    """Characters [start, end) of `text` that are `words`, or a beginning of them that is long enough to be sure.

    >>> place_of("two three", "One, two-\\nthree."), place_of("four", "One.")
    ((5, 15), None)
    """
    wanted, _ = squeezed(words)
    there, places = squeezed(text)
    length = len(wanted)
    while length and (length == len(wanted) or length >= SHORTEST):
        start = there.find(wanted[:length])
        if start >= 0:
            return places[start], places[start + length - 1] + 1
        length = length * 3 // 4
    return None


def _limit() -> None:
    """Bound this process where the system can."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def _draw(path: str, page: int, words: str) -> None:
    """Write the marks and the picture to standard output."""
    import pypdfium2

    if page < 1:
        sys.exit("pages count from 1")
    drawn = pypdfium2.PdfDocument(path)[page - 1]
    width, height = drawn.get_size()
    scale = min(WIDTH / width, (PIXELS / (width * height)) ** 0.5)
    bitmap = drawn.render(scale=scale)
    marks = _marks(drawn, bitmap, words) if words else []
    sys.stdout.buffer.write(json.dumps(marks).encode() + b"\n")
    bitmap.to_pil().convert("RGB").save(sys.stdout.buffer, "PNG")


def _marks(page: Any, bitmap: Any, words: str) -> list[list[float]]:
    """The lines of the words, in shares of the picture from its top left corner; the page may be turned or cropped."""
    from pypdfium2 import raw

    text = page.get_textpage()
    count = min(text.count_chars(), LETTERS)
    # One by one: the text as a whole leaves out characters that have an index.
    found = place_of(words, "".join(chr(raw.FPDFText_GetUnicode(text, i) or 32) for i in range(count)))
    if found is None:
        return []
    on_picture = bitmap.get_posconv(page).to_bitmap
    marks: list[list[float]] = []
    for place in range(text.count_rects(found[0], found[1] - found[0])):
        left, bottom, right, top = text.get_rect(place)
        (a, b), (c, d) = on_picture(left, top), on_picture(right, bottom)
        across, down = sorted((a / bitmap.width, c / bitmap.width)), sorted((b / bitmap.height, d / bitmap.height))
        last = marks[-1] if marks else [0.0, 0.0, 0.0, 0.0]
        if min(last[3], down[1]) - max(last[1], down[0]) > (down[1] - down[0]) / 2:  # words of one line
            across, down = sorted((last[0], last[2], *across)), sorted((last[1], last[3], *down))
            marks.pop()
        marks.append([across[0], down[0], across[-1], down[-1]])
    return marks


if __name__ == "__main__":
    _limit()
    _draw(**json.load(sys.stdin))
