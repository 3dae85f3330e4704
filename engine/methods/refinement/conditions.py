"""The nine conditions by name, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from engine.answer.citations import annotate
from engine.answer.prompt import MARKERS, build_prompt
from engine.core.errors import InputError
from engine.core.progress import Watch
from engine.core.settings import Decoding, Prompting
from engine.core.values import (
    Answer,
    Passage,
    Prompt,
    Segment,
)
from engine.methods.refinement.values import Purpose, Turn
from engine.models.protocols import Writer
from engine.prompts import fill, system

# What every condition is given: one frozen case, one writer, one decoding.


@dataclass(frozen=True)
class Conditions:
    """The case and its writer. `draft` is A's answer and `prompt` the prompt it answers, once there is one.

    `read` is what the writer is given of the passages, each under its number; empty: all of them, whole. `flagged` are
    the passages that the attribution trigger points at. `on_turn` gets each call as it ends, `on_text` the text so far.
    """

    question: str
    passages: tuple[Passage, ...]
    writer: Writer
    prompting: Prompting
    decoding: Decoding
    read: tuple[tuple[int, Passage], ...] = ()
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

    def ask(self, purpose: Purpose, prompt: Prompt) -> Turn:
        """One call of the writer, its answer with sentences and citations."""
        reply = self.writer.generate(prompt, self.decoding, self.on_text, self.watch)
        annotated = annotate(reply, max(prompt.numbers, default=0), self.prompting.citations)
        turn = Turn(purpose=purpose, prompt=prompt, reply=annotated)
        if self.on_turn is not None:
            self.on_turn(turn)
        return turn

    def baseline_prompt(self) -> Prompt:
        """A's prompt: instruction, demonstrations, passages, question."""
        if self.prompt is not None:
            return self.prompt
        numbers, given = zip(*self.read, strict=True) if self.read else ((), self.passages)
        return build_prompt(self.question, given, self.prompting, self.demonstrations, numbers)

    def drafted(self) -> str:
        """The text of A's answer; `InputError` without one."""
        if self.draft is None or not self.draft.text.strip():
            raise InputError("There is no baseline answer to revise. Write A first, or give an answer.")
        return self.draft.text


# A: the answer from the passages, 2-shot, no second pass (grounded refinement, section 3.4).


def baseline(conditions: Conditions) -> tuple[Turn, ...]:
    """One answer: instruction, demonstrations, passages, question."""
    return (conditions.ask("answer", conditions.baseline_prompt()),)


# C1: A's prompt, token for token, drawn again (grounded refinement, section 3.4).
#
# Every condition has a random stream of its own (`request.stream`), so that C1 is `baseline` in another stream. What it
# gains over A is sampling noise; greedy decoding draws nothing, so there C1 repeats A.


# B: A's prompt without the passages, instruction and demonstrations as they are (grounded refinement, section 3.4).
#
# What the model says from memory under the same instruction: a control and half of S1, not a refinement.


def without_passages(conditions: Conditions) -> tuple[Turn, ...]:
    """One answer to A's prompt with the passage segments dropped."""
    return (conditions.ask("answer", conditions.baseline_prompt().keep(set())),)


# The second pass: the same case again with A's answer as a draft and a critique of it.
#
# The writer is given the input of A, then its draft as its own turn, then the critique (grounded refinement, 3.4), so
# that instruction, demonstrations and passages are the same in every condition.


def revise(conditions: Conditions, critique: str) -> Turn:
    """Have the draft written again after the critique."""
    return conditions.ask("revision", revision_prompt(conditions, critique))


def revision_prompt(conditions: Conditions, critique: str) -> Prompt:
    """The prompt of the second pass; its passages carry the numbers that they have in A's."""
    draft, marker = conditions.drafted(), conditions.marker
    turns = (
        Segment(kind="draft", role="assistant", text=draft),
        Segment(kind="critique", text=fill("revise_turn", critique=critique, marker=marker)),
    )
    return Prompt(segments=(*conditions.baseline_prompt().segments, *turns))


def critique_prompt(conditions: Conditions) -> Prompt:
    """What asks for a critique: passages, question, draft; no demonstrations, as in the paper."""
    tail = fill("critique_draft", question=conditions.question, draft=conditions.drafted())
    shown = (segment for segment in conditions.baseline_prompt().segments if segment.kind == "passage")
    return Prompt(segments=(system("critique"), *shown, Segment(kind="draft", text=tail)))


# E: Self-Refine (Madaan et al., 2023), one round as in grounded refinement, section 3.4.
#
# The writer is asked for the faults of its own draft, with no way out that says there are none, then revises after its
# own words, whatever they are. Left out: further rounds.


def self_refine(conditions: Conditions) -> tuple[Turn, ...]:
    """A critique and a revision; the critique alone where it came back empty, since nothing can follow from it."""
    critique = conditions.ask("critique", critique_prompt(conditions))
    said = critique.reply.text.strip()
    return (critique, revise(conditions, said)) if said else (critique,)


# C2: a fixed, generic "look again and revise" (grounded refinement, section 3.4): the gain of any second pass.


def generic_revision(conditions: Conditions) -> tuple[Turn, ...]:
    """One revision after a critique that names nothing."""
    return (revise(conditions, fill("critique_generic")),)


# D: the passage-overlap heuristic (grounded refinement, sections 3.2 and 3.4).
#
# Fires where S3 of A is under the threshold (gates.py); the critique is fixed: the answer seems to come from memory,
# read again, ground every statement and cite. One revision, no further round.


def grounding_revision(conditions: Conditions) -> tuple[Turn, ...]:
    """One revision after the grounding critique."""
    return (revise(conditions, fill("critique_grounding")),)


# v2c: rewrite triggered by attribution with D's critique and no passage names (grounded refinement, 4.3.3 and 4.3.4).
#
# The paper's "binary trigger": what the attribution is good for is when to refine, not what to say. v2c asks what D
# asks; it differs from D in its trigger, and it draws from a stream of its own.


# v2a: rewrite triggered by attribution, naming the flagged passages (grounded refinement, section 4.3.3).
#
# The paper found that naming them hurts; it is here to be compared with v2c, which fires on the same trigger.


def passages_critique(conditions: Conditions) -> str:
    """The critique that names the flagged passages; `InputError` where there are none to name."""
    if not conditions.flagged:
        raise InputError(
            "No passage is flagged, so v2a and v2b have nothing to name. Mark passages not relevant, or compare v2c."
        )
    names = ", ".join(conditions.marker_of(number) for number in conditions.flagged)
    return fill("critique_passages", passages=names)


def flagged_passages(conditions: Conditions) -> tuple[Turn, ...]:
    """One revision after the critique that names passages."""
    return (revise(conditions, passages_critique(conditions)),)


# v2b: v2a, and omit what cannot be grounded (grounded refinement, section 4.3.3).


def omit_critique(conditions: Conditions) -> str:
    """v2a's critique and the sentence that asks to leave out."""
    return f"{passages_critique(conditions)} {fill('critique_omit')}"


def flagged_omit(conditions: Conditions) -> tuple[Turn, ...]:
    """One revision after v2a's critique with the sentence that asks to leave out."""
    return (revise(conditions, omit_critique(conditions)),)


@dataclass(frozen=True)
class Method:
    """One condition. `rule`: what starts it: nothing (a control), its own S3 or flags, or every time."""

    name: str
    title: str
    write: Callable[[Conditions], tuple[Turn, ...]]
    rule: Literal["control", "S3", "flags", "every time"]
    about: str


_METHODS = (
    Method("A", "Baseline", baseline, "control", "The answer from the passages; no second pass."),
    Method("B", "Without passages", without_passages, "control", "A's prompt less its passages: from memory."),
    Method("C1", "Another seed", baseline, "control", "A's prompt drawn again: what sampling alone changes."),
    Method("C2", "Generic revision", generic_revision, "every time", "Look again and revise, said of any answer."),
    Method("D", "Passage-overlap heuristic", grounding_revision, "S3", "Ground and cite, where S3 is low."),
    Method("E", "Self-Refine", self_refine, "every time", "The model criticises its draft and revises after that."),
    Method("v2a", "Names flagged passages", flagged_passages, "flags", "The critique names the flagged passages."),
    Method("v2b", "Names, and omit", flagged_omit, "flags", "v2a, and leave out what cannot be grounded."),
    Method("v2c", "Attribution-triggered rewrite", grounding_revision, "flags", "D's critique on the flags' trigger."),
)
VARIANTS: Mapping[str, Method] = {method.name: method for method in _METHODS}


def chosen(names: str) -> tuple[str, ...]:
    """The conditions of a comma-separated list, in running order; `InputError` names what is not one.

    >>> chosen("E, a,v2C")
    ('A', 'E', 'v2c')
    """
    known = {name.casefold(): name for name in VARIANTS}
    asked = [name.strip().casefold() for name in names.split(",") if name.strip()]
    strange = [name for name in asked if name not in known]
    if strange or not asked:
        raise InputError(f"{', '.join(strange) or 'An empty list'} is no variant. Choose of: {', '.join(VARIANTS)}.")
    return tuple(name for name in VARIANTS if name.casefold() in asked)
