"""The nine conditions of a second pass, in running order (grounded refinement, sections 3.4 and 4.3.3).

A, B, C1, C2 are controls; D is the passage-overlap heuristic, E Self-Refine (Madaan et al., 2023), v2a to v2c rewrites
triggered by attribution. Each is a function of one frozen case, one writer and one decoding; `VARIANTS` at the end is
the table, gates.py says what starts each. A revision is given A's whole prompt, then A as its own turn, then the
critique, so instruction, demonstrations and passages are the same in every condition. Left out: further rounds of E,
and stopping where it finds no fault (the paper always revises).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from engine.answer.citations import annotate
from engine.answer.prompt import MARKERS, build_prompt
from engine.core.errors import InputError
from engine.core.progress import Watch
from engine.core.settings import Decoding, Settings
from engine.core.values import Answer, Case, Passage, Prompt, Segment
from engine.methods.refinement.values import Gate, Purpose, Turn
from engine.models.protocols import LanguageModel, Writer
from engine.prompts import fill, system


@dataclass(frozen=True)
class Request:
    """One case and what is asked of it. Labels are the passages' own `relevant`.

    `use_answer`: A is the case's answer, and where its prompt is known every condition reads that prompt; else the
    writer writes A. `scorer` computes S2 and the gradient rows, by default the writer where it can. `history` is S3
    over the loaded question set or the library's cases by this writer. `read` is what the writer is given of the
    passages, each under its number (`read_by`); empty: all of them, whole. `server_stops`: a server that fails ends the
    run; else its condition has failed.
    """

    case: Case
    writer: Writer
    settings: Settings = Settings()
    variants: tuple[str, ...] = field(default_factory=lambda: tuple(VARIANTS))
    gate: Gate = "own"
    use_answer: bool = False
    scorer: LanguageModel | None = None
    history: tuple[float, ...] = ()
    read: tuple[tuple[int, Passage], ...] = ()
    server_stops: bool = False

    @property
    def given(self) -> Answer | None:
        """A where it comes from elsewhere."""
        own = self.case.answer
        return Answer(text=own.text, tokens=own.tokens) if self.use_answer else None

    @property
    def given_prompt(self) -> Prompt | None:
        """The prompt that the given A answers, if known."""
        return self.case.prompt if self.use_answer else None

    @property
    def scores_with(self) -> LanguageModel:
        """The model that S2 and the gradient rows are asked of; `require` says whether it can."""
        return self.scorer or self.writer  # type: ignore[return-value]


@dataclass(frozen=True)
class Conditions:
    """The inputs that all conditions share. `draft` is A's answer, `prompt` the prompt it answers, once known.

    `flagged` are the passages that the attribution trigger points at. The watch gets the text so far.
    """

    request: Request
    decoding: Decoding
    demonstrations: tuple[Segment, ...] = ()
    prompt: Prompt | None = None
    draft: Answer | None = None
    flagged: tuple[int, ...] = ()
    watch: Watch = Watch()

    def marker_of(self, number: int) -> str:
        """The citation of that passage."""
        return MARKERS[self.request.settings.prompting.citations].format(number)

    def ask(self, purpose: Purpose, prompt: Prompt) -> Turn:
        """One call of the writer, its answer with sentences and citations."""
        reply = self.request.writer.generate(prompt, self.decoding, self.watch.text, self.watch)
        # As for a given A, whatever part of the passages a small writer reads; from memory nothing can be cited.
        limit = len(self.request.case.passages) if prompt.numbers else 0
        annotated = annotate(reply, limit, self.request.settings.prompting.citations)
        return Turn(purpose=purpose, prompt=prompt, reply=annotated)

    def baseline_prompt(self) -> Prompt:
        """A's prompt: instruction, demonstrations, passages, question."""
        if self.prompt is not None:
            return self.prompt
        case, read = self.request.case, self.request.read
        numbers, given = zip(*read, strict=True) if read else ((), case.passages)
        return build_prompt(case.question, given, self.request.settings.prompting, self.demonstrations, numbers)

    def drafted(self) -> str:
        """The text of A's answer; `InputError` without one."""
        if self.draft is None or not self.draft.text.strip():
            raise InputError("There is no baseline answer to revise. Write A first, or provide an answer.")
        return self.draft.text


def baseline(conditions: Conditions) -> tuple[Turn, ...]:
    """A: one answer to instruction, demonstrations (the paper: 2), passages and question; no second pass.

    C1 is the same in a random stream of its own (`request.stream`). Greedy decoding draws nothing: there C1 repeats A.
    """
    return (conditions.ask("answer", conditions.baseline_prompt()),)


def without_passages(conditions: Conditions) -> tuple[Turn, ...]:
    """B: one answer to A's prompt with the passage segments dropped: memory under the same instruction."""
    return (conditions.ask("answer", conditions.baseline_prompt().keep(set())),)


def revise(conditions: Conditions, critique: str) -> Turn:
    """Have the draft written again after the critique."""
    return conditions.ask("revision", revision_prompt(conditions, critique))


def revision_prompt(conditions: Conditions, critique: str) -> Prompt:
    """The prompt of the second pass; its passages carry the numbers that they have in A's.

    The question follows the critique once more: without it small writers continue the critique.
    """
    question, marker = conditions.request.case.question, conditions.marker_of(1)
    draft = Segment(kind="draft", role="assistant", text=conditions.drafted())
    after = Segment(kind="critique", text=fill("revise_turn", critique=critique, question=question, marker=marker))
    return Prompt(segments=(*conditions.baseline_prompt().segments, draft, after))


def critique_prompt(conditions: Conditions) -> Prompt:
    """The request for a critique: passages, question, draft; no demonstrations, as in the paper."""
    tail = fill("critique_draft", question=conditions.request.case.question, draft=conditions.drafted())
    shown = (segment for segment in conditions.baseline_prompt().segments if segment.kind == "passage")
    return Prompt(segments=(system("critique"), *shown, Segment(kind="draft", text=tail)))


def self_refine(conditions: Conditions) -> Iterator[Turn]:
    """E: Self-Refine, one round: a critique, with no way out that says there are no faults, and a revision after it.

    The critique alone where it came back empty, since nothing can follow from it.
    """
    critique = conditions.ask("critique", critique_prompt(conditions))
    yield critique
    if said := critique.reply.text.strip():
        yield revise(conditions, said)


def revision_after(critique: Callable[[Conditions], str]) -> Callable[[Conditions], tuple[Turn, ...]]:
    """A condition of one revision after a fixed critique.

    C2's names nothing: the gain of any second pass. D's asks to read again, ground every statement and cite. v2a's
    names the flagged passages, which the paper found to hurt; v2b's asks to leave out what cannot be grounded as well.
    v2c has D's: the paper's "binary trigger" (section 4.3.4) says when to refine, not what to say.
    """
    return lambda conditions: (revise(conditions, critique(conditions)),)


def passages_critique(conditions: Conditions) -> str:
    """The critique that names the flagged passages; `InputError` where there are none to name."""
    if not conditions.flagged:
        raise InputError(
            "v2a and v2b name passages that may not bear on the question, and the prompt has none. Mark one of its "
            "passages as not relevant, or use v2c."
        )
    names = ", ".join(conditions.marker_of(number) for number in conditions.flagged)
    return fill("critique_passages", passages=names)


def omit_critique(conditions: Conditions) -> str:
    """v2a's critique and the sentence that asks to leave out."""
    return f"{passages_critique(conditions)} {fill('critique_omit')}"


generic_revision = revision_after(lambda _: fill("critique_generic"))
grounding_revision = revision_after(lambda _: fill("critique_grounding"))
naming_revision, omitting_revision = revision_after(passages_critique), revision_after(omit_critique)


@dataclass(frozen=True)
class Condition:
    """One condition. `rule`: what starts it: nothing (a control), its own S3 or flags, or every time.

    `write` gives each call as it ends.
    """

    name: str
    title: str
    write: Callable[[Conditions], Iterable[Turn]]
    rule: Literal["control", "S3", "flags", "every time"]
    about: str


_METHODS = (
    Condition("A", "Baseline", baseline, "control", "The answer from the passages; no second pass."),
    Condition("B", "Without passages", without_passages, "control", "A's prompt without its passages: from memory."),
    Condition(
        "C1", "Another seed", baseline, "control", "A's prompt sampled again: shows what sampling alone changes."
    ),
    Condition("C2", "Generic revision", generic_revision, "every time", "Look again and revise, for any answer."),
    Condition("D", "Passage-overlap heuristic", grounding_revision, "S3", "Ground and cite, where S3 is low."),
    Condition("E", "Self-Refine", self_refine, "every time", "The model criticizes its draft and revises after that."),
    Condition("v2a", "Names flagged passages", naming_revision, "flags", "The critique names the flagged passages."),
    Condition("v2b", "Names, and omit", omitting_revision, "flags", "v2a, and leaves out ungrounded parts."),
    Condition(
        "v2c", "Attribution-triggered rewrite", grounding_revision, "flags", "D's critique, triggered by the flags."
    ),
)
VARIANTS: Mapping[str, Condition] = {method.name: method for method in _METHODS}
NAMING = ("v2a", "v2b")  # their critiques name passages


def chosen(names: str) -> tuple[str, ...]:
    """The conditions of a comma-separated list, in running order; `InputError` names what is not one.

    >>> chosen("E, a,v2C")
    ('A', 'E', 'v2c')
    """
    known = {name.casefold(): name for name in VARIANTS}
    asked = [name.strip().casefold() for name in names.split(",") if name.strip()]
    strange = [name for name in asked if name not in known]
    if strange or not asked:
        raise InputError(
            f"{', '.join(strange) or 'An empty list'} is not a condition. Choose from: {', '.join(VARIANTS)}."
        )
    return tuple(name for name in VARIANTS if name.casefold() in asked)
