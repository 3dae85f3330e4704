"""E: Self-Refine (Madaan et al., 2023), one round as in grounded refinement, section 3.4.

The writer criticises its own draft, then revises after its own words, whatever they are. Left out: further rounds,
and stopping where it finds no fault (the paper always revises).
"""

from __future__ import annotations

from engine.refine.conditions import Conditions
from engine.refine.revision import critique_prompt, revise
from engine.refine.values import Turn


def self_refine(conditions: Conditions) -> tuple[Turn, ...]:
    """A critique and a revision; the critique alone where it came back empty, since nothing can follow from it."""
    critique = conditions.ask("critique", critique_prompt(conditions))
    said = critique.reply.text.strip()
    return (critique, revise(conditions, said)) if said else (critique,)
