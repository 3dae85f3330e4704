"""B: the same question without passages (grounded refinement, section 3.4): what the model says from memory.

The demonstrations go with the passages: they show how to cite what is not there, and METHODS asks for an answer from
memory. B is a control and half of S1, not a refinement.
"""

from __future__ import annotations

from engine.answer.prompt import build_prompt
from engine.refine.conditions import Conditions
from engine.refine.values import Turn


def without_passages(conditions: Conditions) -> tuple[Turn, ...]:
    """One answer from memory."""
    return (conditions.ask("answer", build_prompt(conditions.question, (), conditions.prompting)),)
