"""Prompt templates: one text file per step, `{name}` for a hole; a missing or an extra value raises.

The text above a line `---` is the system message, the text below it the user's. `examples.json` has worked examples:
for ARE's answer from memory, decomposer, verifier and editor and for the questions of RARR and CCVER three each, the
verdicts one of each kind; for Least-to-Most's decomposition and Step-Back's principle, whose papers show some, two
each. The text is ours.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from engine.core.values import Prompt, Segment, Value, decoded, sha256

FOLDER = Path(__file__).parent
_SPLIT = "\n---\n"


@cache
def template(name: str) -> str:
    """The text of template `name`, e.g. `template("answer")`."""
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n")


def fill(name: str, **values: str | int) -> str:
    """Fill every hole of a template.

    >>> fill("question", question="Why?")
    '\\n\\nQuestion: Why?\\nAnswer:'
    """
    return _checked(name, values).format(**values)


def _checked(name: str, values: Mapping[str, str | int]) -> str:
    """The text of a template that has just these holes."""
    holes = {field for _, field, _, _ in string.Formatter().parse(template(name)) if field}
    if holes != values.keys():
        raise KeyError(f"template {name} has the holes {sorted(holes)}, given {sorted(values)}")
    return template(name)


def system(name: str, **values: str | int) -> Segment:
    """A template that is a system message and nothing else, filled."""
    return Segment(kind="system", role="system", text=fill(name, **values))


def ask(name: str, shots: int = 0, /, **values: str | int) -> Prompt:
    """A template of a system message and a user message, filled, after the first `shots` of its worked examples.

    >>> [segment.role for segment in ask("expand", fact="Ice melts.").segments]
    ['system', 'user']
    """
    above, _, below = _checked(name, values).partition(_SPLIT)
    user = Segment(kind="instruction", text=below.format(**values))
    prompt = Prompt(segments=(Segment(kind="system", role="system", text=above.format(**values)), user))
    return with_examples(name, prompt, shots) if shots else prompt


class WorkedExample(Value, frozen=True):
    """The values for a template's holes, and the expected reply."""

    given: dict[str, str]
    reply: str


@cache
def examples() -> dict[str, tuple[WorkedExample, ...]]:
    """The shipped ones by template, in file order."""
    return decoded((FOLDER / "examples.json").read_bytes(), dict[str, tuple[WorkedExample, ...]])


def with_examples(name: str, prompt: Prompt, count: int, tail: str = "", *, reasoned: bool = True) -> Prompt:
    """The prompt of template `name` with the first `count` examples after its system message, as turns.

    `tail` ends what each example asks; not `reasoned`: only the last line of each reply, the answer, is shown.
    """
    first, *rest = prompt.segments
    turns: list[Segment] = []
    for example in examples()[name][:count]:
        reply = example.reply if reasoned else example.reply.rpartition("\n")[2]
        asked = "".join(segment.text for segment in ask(name, **example.given).segments[1:]) + tail
        turns += as_turns(asked, reply)
    return Prompt(segments=(first, *turns, *rest))


def as_turns(asked: str, reply: str) -> tuple[Segment, Segment]:
    """A worked example: what is asked, and the reply as the model's turn."""
    return Segment(kind="demonstration", text=asked), Segment(kind="demonstration", role="assistant", text=reply)


def templates_hash(*names: str) -> str:
    """Hash of the named templates, for stamps."""
    return sha256("\0".join(template(name) for name in names))[:16]
