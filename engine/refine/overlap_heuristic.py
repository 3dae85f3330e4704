"""D: the passage-overlap heuristic (grounded refinement, sections 3.2 and 3.4).

Fires where S3 of A is under the threshold (gates.py); the critique is fixed: the answer seems to come from memory,
read again, ground every statement and cite. One revision, no further round.
"""

from __future__ import annotations

from engine.prompts import fill
from engine.refine.conditions import Conditions
from engine.refine.revision import revise
from engine.refine.values import Turn


def grounding_critique() -> str:
    """D's critique."""
    return fill("critique_grounding")


def overlap_heuristic(conditions: Conditions) -> tuple[Turn, ...]:
    """One revision after the grounding critique."""
    return (revise(conditions, grounding_critique()),)
