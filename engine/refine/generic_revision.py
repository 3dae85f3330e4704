"""C2: a fixed, generic "look again and revise" (grounded refinement, section 3.4): the gain of any second pass."""

from __future__ import annotations

from engine.prompts import fill
from engine.refine.conditions import Conditions
from engine.refine.revision import revise
from engine.refine.values import Turn


def generic_revision(conditions: Conditions) -> tuple[Turn, ...]:
    """One revision after a critique that names nothing."""
    return (revise(conditions, fill("critique_generic")),)
