"""v2a: rewrite triggered by attribution, naming the flagged passages (grounded refinement, section 4.3.3).

The paper found that naming them hurts; it is here to be compared with v2c, which fires on the same trigger.
"""

from __future__ import annotations

from engine.errors import InputError
from engine.prompts import fill
from engine.refine.conditions import Conditions
from engine.refine.revision import revise
from engine.refine.values import Turn


def passages_critique(conditions: Conditions) -> str:
    """The critique that names the flagged passages; `InputError` where there are none to name."""
    if not conditions.flagged:
        raise InputError(
            "No passage is flagged, so v2a and v2b have nothing to name. Mark passages not relevant, or compare v2c."
        )
    names = ", ".join(conditions.marker_of(number) for number in conditions.flagged)
    return fill("critique_passages", passages=names)


def flagged_passages(conditions: Conditions) -> tuple[Turn, ...]:
    """One revision after the critique that names passages."""
    return (revise(conditions, passages_critique(conditions)),)
