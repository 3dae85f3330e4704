"""The nine conditions by name, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from engine.errors import InputError
from engine.refine.baseline import baseline
from engine.refine.conditions import Conditions
from engine.refine.flagged_omit import flagged_omit
from engine.refine.flagged_passages import flagged_passages
from engine.refine.generic_revision import generic_revision
from engine.refine.grounding_critique import grounding_critique
from engine.refine.overlap_heuristic import overlap_heuristic
from engine.refine.reseeded import reseeded
from engine.refine.self_refine import self_refine
from engine.refine.values import Turn
from engine.refine.without_passages import without_passages


@dataclass(frozen=True)
class Method:
    """One condition. `rule`: what starts it: nothing (a control), its own S3 or flags, or every time."""

    name: str
    title: str
    write: Callable[[Conditions], tuple[Turn, ...]]
    rule: Literal["control", "S3", "flags", "every time"]
    about: str


_METHODS = (
    Method("A", "Baseline", baseline, "control", "The answer from the passages; no second pass."),
    Method("B", "Without passages", without_passages, "control", "The same question from memory."),
    Method("C1", "Another seed", reseeded, "control", "A's prompt drawn again: what sampling alone changes."),
    Method("C2", "Generic revision", generic_revision, "every time", "Look again and revise, said of any answer."),
    Method("D", "Passage-overlap heuristic", overlap_heuristic, "S3", "Ground and cite, where S3 is low."),
    Method("E", "Self-Refine", self_refine, "every time", "The model criticises its draft and revises after that."),
    Method("v2a", "Names flagged passages", flagged_passages, "flags", "The critique names the flagged passages."),
    Method("v2b", "Names, and omit", flagged_omit, "flags", "v2a, and leave out what cannot be grounded."),
    Method("v2c", "Attribution-triggered rewrite", grounding_critique, "flags", "D's critique on the flags' trigger."),
)
VARIANTS: Mapping[str, Method] = {method.name: method for method in _METHODS}


def chosen(names: str) -> tuple[str, ...]:
    """The conditions of a comma-separated list, in running order; `InputError` names what is not one.

    >>> chosen("E, a,v2C")
    ('A', 'E', 'v2c')
    """
    known = {name.casefold(): name for name in VARIANTS}
    asked = [name.strip().casefold() for name in names.split(",") if name.strip()]
    strange = [name for name in asked if name not in known]
    if strange or not asked:
        raise InputError(f"{', '.join(strange) or 'An empty list'} is no variant. Choose of: {', '.join(VARIANTS)}.")
    return tuple(name for name in VARIANTS if name.casefold() in asked)
