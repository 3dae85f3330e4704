"""Prompt templates: one text file per step, `{name}` for a hole; a missing or an extra value raises.

What stands above a line `---` is the system message, what follows is the user's.
"""

from __future__ import annotations

import string
from functools import cache
from pathlib import Path

from engine.core.values import Prompt, Segment, sha256

FOLDER = Path(__file__).parent
_SPLIT = "\n---\n"


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


def system(name: str, **values: str | int) -> Segment:
    """A template that is a system message and nothing else, filled."""
    return Segment(kind="system", role="system", text=fill(name, **values))


def ask(name: str, **values: str | int) -> Prompt:
    """A template of a system message and a user message, filled.

    >>> [segment.role for segment in ask("expand", fact="Ice melts.").segments]
    ['system', 'user']
    """
    if holes(name) != values.keys():
        raise KeyError(f"template {name} has the holes {sorted(holes(name))}, given {sorted(values)}")
    above, _, below = template(name).partition(_SPLIT)
    user = Segment(kind="instruction", text=below.format(**values))
    return Prompt(segments=(Segment(kind="system", role="system", text=above.format(**values)), user))


def templates_hash(*names: str) -> str:
    """Hash of the named templates, for stamps."""
    return sha256("\0".join(template(name) for name in names))[:16]
