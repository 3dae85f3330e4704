"""A: the answer from the passages, 2-shot, no second pass (grounded refinement, section 3.4)."""

from __future__ import annotations

from engine.refine.conditions import Conditions
from engine.refine.values import Turn


def baseline(conditions: Conditions) -> tuple[Turn, ...]:
    """One answer: instruction, demonstrations, passages, question."""
    return (conditions.ask("answer", conditions.baseline_prompt()),)
