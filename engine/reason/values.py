"""What a run of RAISE or a baseline is made of: every call with its prompt, every search with its hits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from engine.reason.options import Problem, parse_choice, stated_answer
from engine.settings import Decoding
from engine.types import Hit, Passage, Prompt, Value

Purpose = Literal[
    "sub-questions", "logical query", "principle", "hypothetical answer", "sub-answer", "answer", "option"
]
Searched = Literal["logical query", "sub-question", "principle", "hypothetical answer", "problem"]
State = Literal["running", "done", "unparsed", "stopped"]


class Asked(Value, frozen=True):
    """One call of the model. `read` and `written` are tokens, None where the model does not count them.

    `finished` is False where the reply was cut at the length limit. A closed question that likelihood decided has the
    option as its reply, nothing written, and the shares of all options as `probabilities`.
    """

    purpose: Purpose
    prompt: Prompt
    reply: str
    read: int | None
    written: int | None
    seconds: float
    finished: bool = True
    probabilities: dict[str, float] = {}


class SubQuestion(Value, frozen=True):
    """r_i with its search query q_i."""

    question: str
    query: str


class Decomposition(Value, frozen=True):
    """The sub-questions read from one reply; none of them: the reply could not be read, and stands in `asked`."""

    subquestions: tuple[SubQuestion, ...]
    asked: Asked
    notes: tuple[str, ...] = ()


class Search(Value, frozen=True):
    """What was searched, in which role, and the top k, best first. `asked` is the call that wrote the text, if any."""

    kind: Searched
    text: str
    hits: tuple[Hit, ...] = ()
    asked: Asked | None = None
    note: str = ""


def similarity(hit: Hit) -> float:
    """Cosine of the text searched and the passage, -1 to 1."""
    return hit.parts.get("dense", hit.score)


class ReasonStep(Value, frozen=True):
    """Step i. `threshold` is T, a cosine; None keeps everything. `principle` is Step-Back's, `asked` the sub-answer."""

    number: int
    question: str
    query: str
    search: Search | None = None
    threshold: float | None = None
    principle: Asked | None = None
    asked: Asked | None = None
    notes: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[Hit, ...]:
        """The hits whose similarity reaches T."""
        hits = self.search.hits if self.search else ()
        return tuple(h for h in hits if self.threshold is None or similarity(h) >= self.threshold)

    @property
    def dropped(self) -> tuple[Hit, ...]:
        """The hits under T."""
        kept = {hit.passage.id for hit in self.kept}
        return tuple(h for h in (self.search.hits if self.search else ()) if h.passage.id not in kept)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The passages kept, in the order of the prompt."""
        return tuple(hit.passage for hit in self.kept)

    @property
    def answer(self) -> str:
        """a_i; empty until it is written."""
        return self.asked.reply.strip() if self.asked else ""


class Cost(Value, frozen=True):
    """What a run took. Tokens are None where the model does not count them; seconds are of the model's calls."""

    calls: int
    read: int | None
    written: int | None
    searches: int
    seconds: float


class Solution(Value, frozen=True):
    """A run so far. `threshold` is T where the method has one. `final` holds the answer y.

    `option` is the closed question after an answer that names no option of a multiple-choice problem.

    A method without decomposition has no `decomposition`, and one step that is the problem itself where it searches.
    """

    method: str
    model: str
    problem: Problem
    decoding: Decoding
    corpus: str = ""
    embedder: str = ""
    threshold: float | None = None
    decomposition: Decomposition | None = None
    steps: tuple[ReasonStep, ...] = ()
    final: Asked | None = None
    option: Asked | None = None
    state: State = "running"
    notes: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """The final reply; for an open problem what it states as the answer."""
        reply = self.final.reply.strip() if self.final else ""
        return reply if self.problem.options else stated_answer(reply)

    @property
    def choice(self) -> int | None:
        """The option chosen, from 0; None where there are no options, or none was named and none could be asked for."""
        if not self.final or not self.problem.options:
            return None
        said = parse_choice(self.final.reply, self.problem.options)
        return self.problem.letters.index(self.option.reply) if said is None and self.option else said

    @property
    def calls(self) -> tuple[Asked, ...]:
        """Every call in the order in which it was made."""
        return tuple(asked for asked in _calls(self) if asked is not None)

    @property
    def cost(self) -> Cost:
        """The sums over the calls."""
        return Cost(
            calls=len(self.calls),
            read=_sum([asked.read for asked in self.calls]),
            written=_sum([asked.written for asked in self.calls]),
            searches=sum(step.search is not None for step in self.steps),
            seconds=sum(asked.seconds for asked in self.calls),
        )


def _sum(counts: Sequence[int | None]) -> int | None:
    """The sum, unless one of them is not known."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _calls(solution: Solution) -> Iterator[Asked | None]:
    yield solution.decomposition.asked if solution.decomposition else None
    for step in solution.steps:
        yield step.search.asked if step.search else None
        yield step.principle
        yield step.asked
    yield solution.final
    yield solution.option
