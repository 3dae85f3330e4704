"""Who answers: the quoting reader or a model, behind one signature.

`Write` is what every later method calls when it wants an answer from a question and some passages: ask,
occlusion by regeneration, Attr-RAG, refinement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from msgspec.structs import replace as changed

from engine.answer.answerable import answerable
from engine.answer.citations import annotate
from engine.answer.generate import answer_with, stamp_of
from engine.answer.prompt import REFUSAL, build_prompt
from engine.answer.quoting_reader import QuotingReader, Reading
from engine.models.protocols import Embedder, LanguageModel, Writer
from engine.progress import Watch
from engine.settings import Decoding, Prompting, Reader
from engine.types import Answer, Passage, Prompt, Stamp
from engine.versions import package_versions

OnText = Callable[[str], None]


@dataclass(frozen=True)
class Written:
    """An answer with what made it: the exact prompt of a model, or the reading of the quoting reader."""

    answer: Answer
    stamp: Stamp
    prompt: Prompt | None = None
    reading: Reading | None = None


class Write(Protocol):
    """Write an answer to a question from passages; `on_text` gets the text so far."""

    def __call__(
        self,
        question: str,
        passages: Sequence[Passage],
        on_text: OnText | None = None,
        watch: Watch | None = None,
    ) -> Written:
        """Return the answer and what made it."""
        ...


def quoting(embedder: Embedder, settings: Reader) -> Write:
    """The quoting reader as a `Write`."""
    reader = QuotingReader(embedder, settings)
    stamp = Stamp(
        model=reader.name, revision=embedder.name, settings={"reader": settings.to_dict()}, versions=package_versions()
    )

    def write(
        question: str, passages: Sequence[Passage], on_text: OnText | None = None, watch: Watch | None = None
    ) -> Written:
        reading = reader.reading(question, passages)
        if on_text is not None:
            for _, end in reading.answer.sentences:
                on_text(reading.answer.text[:end])
        return Written(answer=reading.answer, stamp=stamp, reading=reading)

    return write


def refusing(write: Write, model: LanguageModel, how: Prompting, threshold: float) -> Write:
    """`write`, but only where the model's probability that the passages answer reaches `threshold`; else a refusal.

    The probability goes into the stamp's settings as `answerable`.
    """

    def written(
        question: str, passages: Sequence[Passage], on_text: OnText | None = None, watch: Watch | None = None
    ) -> Written:
        likely = answerable(model, question, passages, watch).probabilities["yes"]
        if likely >= threshold:
            done = write(question, passages, on_text, watch)
        else:
            prompt = build_prompt(question, passages, how)
            answer = annotate(model.encode_answer(REFUSAL), len(passages), how.citations)
            done = Written(answer=answer, stamp=stamp_of(model, how, Decoding()), prompt=prompt)
        return replace(done, stamp=changed(done.stamp, settings={**done.stamp.settings, "answerable": likely}))

    return written


def prompting(model: Writer, how: Prompting, decoding: Decoding, numbered: Sequence[Passage] = ()) -> Write:
    """A language model or server as a `Write`.

    Each of `numbered` keeps its number there when another is left out (METHODS section 0); a passage that is not among
    them (a placebo) gets the next free one. Without `numbered` passages are numbered as they are given.
    """
    known = {passage.id: number for number, passage in enumerate(numbered, start=1)}

    def write(
        question: str, passages: Sequence[Passage], on_text: OnText | None = None, watch: Watch | None = None
    ) -> Written:
        numbers = [known.get(passage.id, len(known) + 1) for passage in passages] if known else ()
        prompt, answer = answer_with(model, question, passages, how, decoding, on_text, watch, numbers=numbers)
        return Written(answer=answer, stamp=stamp_of(model, how, decoding), prompt=prompt)

    return write
