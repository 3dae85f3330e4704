"""Do these passages answer the question: a closed question of its own, apart from the answer.

An invitation to refuse inside the answering prompt makes small writers refuse what they could answer; asked apart, the
writer's doubt is a probability, and the answer stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.answer.prompt import passage_segments
from engine.models.closed import Choice, choose
from engine.models.protocols import Writer
from engine.progress import Watch
from engine.prompts import system
from engine.types import Passage, Prompt, Segment

OPTIONS = ("yes", "no")


def answerable_prompt(question: str, passages: Sequence[Passage], numbers: Sequence[int] = ()) -> Prompt:
    """The question without its two options; passages are 1..n or under `numbers`."""
    asked = Segment(kind="question", text=f"\n\nQuestion: {question}")
    return Prompt(segments=(system("answerable"), *passage_segments(passages, numbers), asked))


def answerable(
    writer: Writer, question: str, passages: Sequence[Passage], watch: Watch | None = None, *, reason: bool = False
) -> Choice:
    """Whether this writer finds the answer in the passages.

    `probabilities["yes"]` is its probability where the writer scores; else the reply is read, None where it cannot be.
    """
    return choose(writer, answerable_prompt(question, passages), OPTIONS, reason=reason, watch=watch)
