"""Worked examples for ARE's decomposer, verifier and editor and for the questions of RARR and CCVER, three each.

The text is ours, not the papers'.

They come after the system message as turns of user and assistant. The verdicts are one of each kind.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from engine.core.values import Prompt, Segment, Value, decoded
from engine.prompts import ask

FILE = Path(__file__).with_name("examples.json")


class WorkedExample(Value, frozen=True):
    """The values for a template's holes, and the expected reply."""

    given: dict[str, str]
    reply: str


@cache
def examples() -> dict[str, tuple[WorkedExample, ...]]:
    """The shipped ones by template, in file order."""
    return decoded(FILE.read_bytes(), dict[str, tuple[WorkedExample, ...]])


def with_examples(name: str, prompt: Prompt, count: int, tail: str = "", *, reasoned: bool = True) -> Prompt:
    """The prompt of template `name` with the first `count` examples after its system message.

    `tail` ends what each example asks; not `reasoned`: only the last line of each reply, the answer, is shown.
    """
    first, *rest = prompt.segments
    turns: list[Segment] = []
    for example in examples()[name][:count]:
        reply = example.reply if reasoned else example.reply.rpartition("\n")[2]
        asked = "".join(segment.text for segment in ask(name, **example.given).segments[1:]) + tail
        turns.append(Segment(kind="demonstration", text=asked))
        turns.append(Segment(kind="demonstration", role="assistant", text=reply))
    return Prompt(segments=(first, *turns, *rest))
