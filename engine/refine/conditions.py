"""What every condition is given: one frozen case, one writer, one decoding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.answer.citations import annotate
from engine.answer.prompt import MARKERS, build_prompt
from engine.errors import InputError
from engine.models.protocols import Writer
from engine.progress import Watch
from engine.refine.values import Purpose, Turn
from engine.settings import Decoding, Prompting
from engine.types import Answer, Passage, Prompt, Segment


@dataclass(frozen=True)
class Conditions:
    """The case and its writer. `draft` is A's answer and `prompt` the prompt it answers, once there is one.

    `flagged` are the passages that the attribution trigger points at. `on_turn` gets each call as it ends, `on_text`
    the text so far.
    """

    question: str
    passages: tuple[Passage, ...]
    writer: Writer
    prompting: Prompting
    decoding: Decoding
    other_seed: int
    demonstrations: tuple[Segment, ...] = ()
    prompt: Prompt | None = None
    draft: Answer | None = None
    flagged: tuple[int, ...] = ()
    on_turn: Callable[[Turn], None] | None = None
    on_text: Callable[[str], None] | None = None
    watch: Watch | None = None

    @property
    def marker(self) -> str:
        """What a citation of passage 1 looks like."""
        return self.marker_of(1)

    def marker_of(self, number: int) -> str:
        """What a citation of that passage looks like."""
        return MARKERS[self.prompting.citations].format(number)

    def ask(self, purpose: Purpose, prompt: Prompt, decoding: Decoding | None = None) -> Turn:
        """One call of the writer, its answer with sentences and citations."""
        reply = self.writer.generate(prompt, decoding or self.decoding, self.on_text, self.watch)
        annotated = annotate(reply, len(prompt.numbers), self.prompting.citations)
        turn = Turn(purpose=purpose, prompt=prompt, reply=annotated)
        if self.on_turn is not None:
            self.on_turn(turn)
        return turn

    def baseline_prompt(self) -> Prompt:
        """A's prompt: instruction, demonstrations, passages, question."""
        return self.prompt or build_prompt(self.question, self.passages, self.prompting, self.demonstrations)

    def drafted(self) -> str:
        """The text of A's answer; `InputError` without one."""
        if self.draft is None or not self.draft.text.strip():
            raise InputError("There is no baseline answer to revise. Write A first, or give an answer.")
        return self.draft.text
