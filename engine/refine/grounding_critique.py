"""v2c: rewrite triggered by attribution with D's critique and no passage names (grounded refinement, 4.3.3 and 4.3.4).

The paper's "binary trigger": what the attribution is good for is when to refine, not what to say. v2c differs from D
in its trigger alone.
"""

from __future__ import annotations

from engine.refine.conditions import Conditions
from engine.refine.overlap_heuristic import grounding_critique as critique_text
from engine.refine.revision import revise
from engine.refine.values import Turn


def grounding_critique(conditions: Conditions) -> tuple[Turn, ...]:
    """One revision after D's critique."""
    return (revise(conditions, critique_text()),)
