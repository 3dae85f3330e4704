"""The second pass: the same case again with A's answer as a draft and a critique of it.

The writer is given the input of A, then its draft as its own turn, then the critique (grounded refinement, 3.4), so
that instruction, demonstrations and passages are the same in every condition.
"""

from __future__ import annotations

from engine.answer.prompt import passage_segments
from engine.prompts import fill, system
from engine.refine.conditions import Conditions
from engine.refine.values import Turn
from engine.types import Prompt, Segment


def revise(conditions: Conditions, critique: str) -> Turn:
    """Have the draft written again after the critique."""
    return conditions.ask("revision", revision_prompt(conditions, critique))


def revision_prompt(conditions: Conditions, critique: str) -> Prompt:
    """The prompt of the second pass; its passages carry the numbers that they have in A's."""
    draft, marker = conditions.drafted(), conditions.marker
    turns = (
        Segment(kind="draft", role="assistant", text=draft),
        Segment(kind="critique", text=fill("revise_turn", critique=critique, marker=marker)),
    )
    return Prompt(segments=(*conditions.baseline_prompt().segments, *turns))


def critique_prompt(conditions: Conditions) -> Prompt:
    """What asks for a critique: passages, question, draft; no demonstrations, as in the paper."""
    tail = fill("critique_draft", question=conditions.question, draft=conditions.drafted())
    shown = passage_segments(conditions.passages)
    return Prompt(segments=(system("critique"), *shown, Segment(kind="draft", text=tail)))
