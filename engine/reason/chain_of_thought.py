"""CoT, and CoT+RAG with passages: one call that works the problem out step by step (Wei et al. 2022; RAISE, figure 8).

Both share one wording, so that they differ in the passages alone. RAISE-Direct answers with it too.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.answer.prompt import passage_segments
from engine.prompts import fill, system
from engine.reason.options import Problem
from engine.types import Passage, Prompt, Segment


def chain_of_thought_prompt(problem: Problem, passages: Sequence[Passage] = ()) -> Prompt:
    """Instruction, passages if any, and the problem with its options."""
    ask = Segment(kind="question", text=fill("think_problem", problem=problem.text))
    return Prompt(segments=(system("think"), *passage_segments(passages), ask))
