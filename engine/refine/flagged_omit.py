"""v2b: v2a, and omit what cannot be grounded (grounded refinement, section 4.3.3)."""

from __future__ import annotations

from engine.prompts import fill
from engine.refine.conditions import Conditions
from engine.refine.flagged_passages import passages_critique
from engine.refine.revision import revise
from engine.refine.values import Turn


def omit_critique(conditions: Conditions) -> str:
    """v2a's critique and the sentence that asks to leave out."""
    return f"{passages_critique(conditions)} {fill('critique_omit')}"


def flagged_omit(conditions: Conditions) -> tuple[Turn, ...]:
    """One revision after v2a's critique with the sentence that asks to leave out."""
    return (revise(conditions, omit_critique(conditions)),)
