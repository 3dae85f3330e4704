"""A question and its passages as a prompt of segments (docs/methods/common-ground.md)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from engine.core.files import now, package_versions
from engine.core.settings import Decoding, Prompting
from engine.core.text import content_words
from engine.core.values import Json, Passage, Prompt, Segment, Stamp, Value, decoded
from engine.prompts import as_turns, examples, fill, system, templates_hash

FILE = Path(__file__).with_name("demonstrations.json")
SHARED = 0.5  # share of a demonstration's question words in the question from which it counts as the same question


class Demonstration(Value, frozen=True):
    """A worked example: a question with two passages and a cited answer; `{n}` there is the citation of passage n."""

    set: str
    question: str
    passages: tuple[str, ...]
    answer: str

    def segments(self, marker: str) -> tuple[Segment, Segment]:
        """The question, and the answer as the model's turn; `marker` is a citation with {} for the number."""
        shown = "".join(fill("passage", number=n, text=text) for n, text in enumerate(self.passages, start=1))
        markers = (marker.format(number) for number in range(len(self.passages) + 1))
        return as_turns(shown + fill("question", question=self.question), self.answer.format(*markers))


@cache
def demonstrations() -> tuple[Demonstration, ...]:
    """The shipped ones, in file order."""
    return decoded(FILE.read_bytes(), tuple[Demonstration, ...])


def worked_examples(count: int, question: str, marker: str, own_set: str | None = None) -> tuple[Segment, ...]:
    """The turns of the first `count` shipped examples, where there are as many.

    Of another set (refinement, 3.3), and asking another question.
    """
    asked = set(content_words(question))
    words = {known: set(content_words(known.question)) for known in demonstrations() if known.set != own_set}
    others = [known for known, own in words.items() if len(own & asked) < SHARED * len(own)]
    return tuple(segment for shown in others[:count] for segment in shown.segments(marker))


def remembered_examples(count: int) -> tuple[Segment, ...]:
    """The turns of the first `count` examples of an answer without passages: facts first, then what follows (ARE, A.1).

    >>> [segment.role for segment in remembered_examples(1)]
    ['user', 'assistant']
    """
    shown = examples()["answer_from_memory"][:count]
    return tuple(segment for one in shown for segment in as_turns(fill("question", **one.given), one.reply))


MARKERS = {"garage": "[cite_{}]", "alce": "[{}]"}
REFUSAL = "The passages do not say."  # a model's
NOTHING_CLOSE = "Nothing in the passages is close enough to the question."  # the quoting reader's
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
    prompting: Prompting = Prompting(),
    demonstrations: Sequence[Segment] | None = None,
    numbers: Sequence[int] = (),
) -> Prompt:
    """The answering prompt: instruction, demonstrations, passages (1..n, or under `numbers`), question.

    `demonstrations` stand in for the number of shipped ones that `prompting` asks for. Without passages the instruction
    asks for an answer from memory, and the shipped ones show such answers. S2 and occlusion do not come here: they
    remove passage segments from the prompt that was used (`Prompt.keep`).
    """
    marker = MARKERS[prompting.citations]
    if demonstrations is None:
        count = prompting.demonstrations
        demonstrations = worked_examples(count, question, marker) if passages else remembered_examples(count)
    instruction = system("answer", marker=marker.format(1)) if passages else system("answer_from_memory")
    ask = Segment(kind="question", text=fill("question", question=question))
    return Prompt(segments=(instruction, *demonstrations, *passage_segments(passages, numbers), ask))


TEMPLATES = ("answer", "answer_from_memory", "passage", "question")


def stamp_of(
    model: Any, prompting: Prompting, decoding: Decoding, inputs: str = "", templates: Sequence[str] = TEMPLATES
) -> Stamp:
    """The origin of an answer: model, revision, dtype, template hashes, settings, seed, versions, time (UTC).

    `template` joins the hash of the engine's prompt `templates` with that of the model's chat template. The settings
    name the GGUF file where llama.cpp writes in place of a local model's own weights, and tell of a batch that was not
    to be exact: alone the model may choose other words.
    """
    own = templates_hash(*templates)
    chat, llama_cpp = getattr(model, "template", ""), getattr(model, "llama_cpp", None)
    writer: Json = {"llama_cpp": {"file": llama_cpp.file.name}} if llama_cpp is not None else {}
    if not getattr(model, "exact", True):
        writer["batch"] = {"exact": False}
    return Stamp(
        model=model.name,
        revision=getattr(model, "revision", ""),
        dtype=getattr(model, "dtype", ""),
        template=f"{own}+{chat}" if chat else own,
        settings={"prompting": prompting.to_dict(), "decoding": decoding.to_dict(), **writer},
        seed=decoding.seed if decoding.temperature > 0 else None,
        versions=package_versions(),
        inputs=inputs,
        created=now(),
    )
