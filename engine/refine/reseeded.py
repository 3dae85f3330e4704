"""C1: A's prompt, token for token, with another decoding seed (grounded refinement, section 3.4).

What C1 gains over A is sampling noise; greedy decoding draws nothing, so there C1 repeats A.
"""

from __future__ import annotations

from msgspec.structs import replace

from engine.refine.conditions import Conditions
from engine.refine.values import Turn


def reseeded(conditions: Conditions) -> tuple[Turn, ...]:
    """One answer, drawn with the other seed."""
    decoding = replace(conditions.decoding, seed=conditions.other_seed)
    return (conditions.ask("answer", conditions.baseline_prompt(), decoding),)
