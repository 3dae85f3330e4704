"""Sub-answers a_i, and the final answer y composed of them (RAISE, Algorithm 1, figures 14 and 15; Least-to-Most).

a_i is written from x with its options, the earlier (r_j, a_j), D_i and what the model knows; y from x and every
(r, a), without documents.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.answer.prompt import passage_segments
from engine.prompts import ask, fill
from engine.reason.options import Problem
from engine.reason.step_back import principle_segment
from engine.reason.values import ReasonStep
from engine.types import Prompt, Segment


def told(steps: Sequence[ReasonStep]) -> str:
    """The (r_j, a_j) as prompts show them."""
    lines = (f"{step.number}. {step.question}\n{step.answer or '(no answer)'}" for step in steps)
    return "\n" + "\n".join(lines) if steps else "none"


def sub_answer_prompt(problem: Problem, earlier: Sequence[ReasonStep], step: ReasonStep) -> Prompt:
    """p_3: problem and earlier steps, the passages that the step kept, Step-Back's principle, the sub-question."""
    asked = ask("sub_answer", problem=problem.text, steps=told(earlier))
    principle = (principle_segment(step.principle.reply),) if step.principle else ()
    question = Segment(kind="question", text=fill("question", question=step.question))
    return Prompt(segments=(*asked.segments, *passage_segments(step.passages), *principle, question))


def final_answer_prompt(problem: Problem, steps: Sequence[ReasonStep]) -> Prompt:
    """p_4: the problem and all steps, no documents."""
    return ask("final_answer", problem=problem.text, steps=told(steps))
