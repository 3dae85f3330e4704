"""A question and its passages as a prompt of segments (METHODS section 0)."""

from __future__ import annotations

from collections.abc import Sequence

from engine.answer.demonstrations import worked_examples
from engine.prompts import fill, system
from engine.settings import Prompting
from engine.types import Passage, Prompt, Segment

MARKERS = {"garage": "[cite_{}]", "alce": "[{}]"}
REFUSAL = "The passages do not say."
_HERE = "\ue000"


def passage_segments(passages: Sequence[Passage], numbers: Sequence[int] = ()) -> tuple[Segment, ...]:
    """One segment a passage, in the order given, under `numbers` or numbered from 1."""
    return tuple(
        Segment(kind="passage", text=fill("passage", number=number, text=passage.text), number=number)
        for number, passage in zip(numbers or range(1, len(passages) + 1), passages, strict=True)
    )


def passage_body(segment: Segment) -> tuple[int, str]:
    """Where in a passage segment the passage's own text starts, and that text, without the template around it.

    >>> passage_body(Segment(kind="passage", text=fill("passage", number=2, text="a"), number=2))
    (13, 'a')
    """
    before, _, after = fill("passage", number=segment.number or 0, text=_HERE).partition(_HERE)
    start = len(before) if segment.text.startswith(before) else 0
    return start, segment.text[start:].removesuffix(after)


def build_prompt(
    question: str,
    passages: Sequence[Passage],
    prompting: Prompting | None = None,
    demonstrations: Sequence[Segment] | None = None,
    numbers: Sequence[int] = (),
) -> Prompt:
    """The answering prompt: instruction, demonstrations, passages (1..n, or under `numbers`), question.

    `demonstrations` stand in for the number of shipped ones that `prompting` asks for. Without passages the instruction
    asks for an answer from memory, and there are none. S2 and occlusion do not come here: they
    remove passage segments from the prompt that was used (`Prompt.keep`).
    """
    prompting = prompting or Prompting()
    marker = MARKERS[prompting.citations]
    if demonstrations is None:
        demonstrations = worked_examples(prompting.demonstrations, question, marker) if passages else ()
    instruction = system("answer", marker=marker.format(1)) if passages else system("answer_from_memory")
    ask = Segment(kind="question", text=fill("question", question=question))
    return Prompt(segments=(instruction, *demonstrations, *passage_segments(passages, numbers), ask))
