"""Step-Back prompting in a decomposed run: the principle behind a sub-question, asked for first (RAISE, B.2, figure 9).

Step-Back gives the principle to the model that answers the sub-question; Step-Back+RAG searches with it instead.
"""

from __future__ import annotations

from engine.prompts import ask, fill
from engine.reason.values import SubQuestion
from engine.types import Prompt, Segment


def principle_prompt(sub: SubQuestion) -> Prompt:
    """Ask for the principles of the sub-question alone."""
    return ask("principle", question=sub.question)


def principle_segment(principle: str) -> Segment:
    """The principle as part of the prompt that answers the sub-question."""
    return Segment(kind="instruction", text=fill("principles", principles=principle.strip()))
