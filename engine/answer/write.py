"""Who answers: the quoting reader or a model, behind one signature.

`Write` is what every later method calls for an answer from a question and some passages: ask, occlusion by
regeneration, Attr-RAG, refinement. A model's answer comes with its prompt and its citations; whether the passages
answer the question at all is asked apart (`answerable`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as changed

from engine.answer.citations import annotate
from engine.answer.in_documents import answered_probability, together
from engine.answer.prompt import REFUSAL, build_prompt, passage_segments, stamp_of
from engine.answer.quoting_reader import Reading, read
from engine.core.files import package_versions
from engine.core.progress import Watch
from engine.core.settings import Decoding, Prompting, Reader
from engine.core.values import Answer, Passage, Prompt, Segment, Stamp
from engine.models.choices import READER
from engine.models.closed import Choice, choose
from engine.models.protocols import Embedder, LanguageModel, Writer, require
from engine.prompts import system

# Do the passages answer the question? Asked inside the answering prompt, small writers refuse what they could answer;
# asked apart, their doubt is a probability and the answer stays.

OPTIONS = ("yes", "no")


def answerable_prompt(question: str, passages: Sequence[Passage]) -> Prompt:
    """The question without its two options."""
    asked = Segment(kind="question", text=f"\n\nQuestion: {question}")
    return Prompt(segments=(system("answerable"), *passage_segments(passages), asked))


def answerable(writer: Writer, question: str, passages: Sequence[Passage], watch: Watch = Watch()) -> Choice:
    """Whether this writer finds the answer in the passages.

    `probabilities["yes"]` is its probability where the writer scores; else the reply is read, None where it cannot be.
    """
    return choose(writer, answerable_prompt(question, passages), OPTIONS, watch=watch)


@dataclass(frozen=True)
class Written:
    """An answer with what made it: the exact prompt of a model, or the reading of the quoting reader."""

    answer: Answer
    stamp: Stamp
    prompt: Prompt | None = None
    reading: Reading | None = None


Write = Callable[[str, Sequence[Passage], Watch], Written]
"""(question, passages, watch) to the answer and what made it; the watch hears the text so far."""


def quoting(embedder: Embedder, settings: Reader) -> Write:
    """The quoting reader as a `Write`."""
    used = {"reader": settings.to_dict()}
    stamp = Stamp(model=READER, revision=embedder.name, settings=used, versions=package_versions())

    def write(question: str, passages: Sequence[Passage], watch: Watch = Watch()) -> Written:
        reading = read(question, passages, embedder, settings)
        if watch.text is not None:
            for _, end in reading.answer.sentences:
                watch.text(reading.answer.text[:end])
        return Written(answer=reading.answer, stamp=stamp, reading=reading)

    return write


def answered(
    model: LanguageModel, embedder: Embedder, question: str, passages: Sequence[Passage], watch: Watch = Watch()
) -> float:
    """The probability that the passages answer, by the writer and by the closest sentence (`in_documents`)."""
    by_writer = answerable(model, question, passages, watch).probabilities["yes"]
    return together(by_writer, answered_probability(question, passages, embedder))


def refusing(write: Write, model: LanguageModel, embedder: Embedder, how: Prompting, threshold: float) -> Write:
    """`write`, but only where the probability that the passages answer reaches `threshold`; else a refusal.

    The probability goes into the stamp's settings as `answerable`.
    """

    def written(question: str, passages: Sequence[Passage], watch: Watch = Watch()) -> Written:
        likely = answered(model, embedder, question, passages, watch)
        if likely >= threshold:
            done = write(question, passages, watch)
        else:
            prompt = build_prompt(question, passages, how)
            answer = annotate(model.encode_answer(REFUSAL), len(passages), how.citations)
            done = Written(answer=answer, stamp=stamp_of(model, how, Decoding()), prompt=prompt)
        return replace(done, stamp=changed(done.stamp, settings={**done.stamp.settings, "answerable": likely}))

    return written


def prompting(model: Writer, how: Prompting, decoding: Decoding, numbered: Sequence[Passage] = ()) -> Write:
    """A language model or server as a `Write`.

    With `numbered` it writes answers to compare: each of these passages keeps its number when another is left out, one
    that is not among them (a placebo) gets the next free number, and decoding is greedy, so that a difference does not
    come from sampling. Without it passages are numbered as they are given. Writing raises `PromptTooLong` with the
    count and the passages that would have to go, `CannotDo`, `Cancelled`, and whatever the model raises.
    """
    known = {passage.id: number for number, passage in enumerate(numbered, start=1)}
    decoding = changed(decoding, temperature=0.0) if known else decoding

    def write(question: str, passages: Sequence[Passage], watch: Watch = Watch()) -> Written:
        require(model, "generate")
        numbers = [known.get(passage.id, len(known) + 1) for passage in passages] if known else ()
        prompt = build_prompt(question, passages, how, numbers=numbers)
        answer = model.generate(prompt, decoding, watch.text, watch)
        answer = annotate(answer, max(prompt.numbers, default=0), how.citations)
        return Written(answer=answer, stamp=stamp_of(model, how, decoding), prompt=prompt)

    return write
