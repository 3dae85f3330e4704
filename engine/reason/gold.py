"""What a run found of the gold: before T (every hit) and after it (what the model was given), over all its steps."""

from __future__ import annotations

from collections.abc import Collection as Ids
from collections.abc import Sequence
from functools import cache

from engine.reason.values import Solution
from engine.types import Passage
from engine.world_labels import WorldQuestion
from engine.worlds import World, load_world

PRIMER = "science-primer"


def retrieved(solution: Solution) -> frozenset[str]:
    """Ids of all passages that the searches brought."""
    return frozenset(hit.passage.id for step in solution.steps if step.search for hit in step.search.hits)


def read(solution: Solution) -> frozenset[str]:
    """Ids of the passages that reached a prompt."""
    return frozenset(hit.passage.id for step in solution.steps for hit in step.kept)


def recall(found: Ids[str], gold: Ids[str]) -> float:
    """Share of the gold passages that were found, 0 to 1; 1 without any gold.

    >>> recall({"a", "b"}, {"b", "c"})
    0.5
    """
    return len(set(found) & set(gold)) / len(set(gold)) if gold else 1.0


@cache
def primer() -> World:
    """The sample world whose questions need several steps."""
    return load_world(PRIMER)


def primer_question(text: str) -> WorldQuestion | None:
    """The sample question with that wording."""
    return next((question for question in primer().questions if question.question == text), None)


def primer_gold(text: str, passages: Sequence[Passage]) -> frozenset[str]:
    """Ids of those of `passages` that hold the gold of a sample question; empty for any other question."""
    question = primer_question(text)
    return frozenset(p.id for p in primer().gold_passages(question, passages)) if question else frozenset()
