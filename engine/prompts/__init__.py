"""Prompt templates: one text file a step, `{name}` for a hole; a missing hole raises, an extra one too."""

from __future__ import annotations

import string
from functools import cache
from pathlib import Path

from engine.types import sha256

FOLDER = Path(__file__).parent


@cache
def template(name: str) -> str:
    """The text of template `name`, e.g. `template("answer")`."""
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n")


def holes(name: str) -> frozenset[str]:
    """The names of a template's holes."""
    return frozenset(field for _, field, _, _ in string.Formatter().parse(template(name)) if field)


def fill(name: str, **values: str | int) -> str:
    """Fill every hole of a template.

    >>> fill("question", question="Why?")
    '\\n\\nQuestion: Why?\\nAnswer:'
    """
    if holes(name) != values.keys():
        raise KeyError(f"template {name} has the holes {sorted(holes(name))}, given {sorted(values)}")
    return template(name).format(**values)


def templates_hash(*names: str) -> str:
    """Hash of the named templates, for stamps."""
    return sha256("\0".join(template(name) for name in names))[:16]
