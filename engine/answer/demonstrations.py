"""Worked examples before the passages: two passages each, never of the question's own set (refinement, 3.3)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from engine.prompts import fill
from engine.text import content_words
from engine.types import Segment, Value
from engine.value import decoded

FILE = Path(__file__).with_name("demonstrations.json")
SHARED = 0.5  # share of a demonstration's question words in the question from which it counts as the same question


class Demonstration(Value, frozen=True):
    """A question with passages and a cited answer; `{n}` in the answer is the citation of passage n."""

    set: str
    question: str
    passages: tuple[str, ...]
    answer: str

    def segments(self, marker: str) -> tuple[Segment, Segment]:
        """What is asked, and the answer as the model's own turn; `marker` is a citation with {} for the number."""
        shown = "".join(fill("passage", number=n, text=text) for n, text in enumerate(self.passages, start=1))
        answer = self.answer
        for number in range(1, len(self.passages) + 1):
            answer = answer.replace(f"{{{number}}}", marker.format(number))
        return (
            Segment(kind="demonstration", text=shown + fill("question", question=self.question)),
            Segment(kind="demonstration", role="assistant", text=answer),
        )


@cache
def demonstrations() -> tuple[Demonstration, ...]:
    """The shipped ones, in file order."""
    return decoded(FILE.read_bytes(), tuple[Demonstration, ...])


def choose(
    count: int, question: str, own_set: str | None = None, pool: tuple[Demonstration, ...] | None = None
) -> tuple[Demonstration, ...]:
    """The first `count` that are of another set and ask another question; fewer where there are not as many."""
    asked = set(content_words(question))
    others = [d for d in pool or demonstrations() if d.set != own_set and not _same(d, asked)]
    return tuple(others[:count])


def worked_examples(count: int, question: str, marker: str, own_set: str | None = None) -> tuple[Segment, ...]:
    """The turns of the shipped examples that `choose` picks."""
    return tuple(segment for shown in choose(count, question, own_set) for segment in shown.segments(marker))


def _same(demonstration: Demonstration, asked: set[str]) -> bool:
    words = set(content_words(demonstration.question))
    return len(words & asked) >= SHARED * len(words)
