"""HyDE in a decomposed run: the search text is a hypothetical answer to the sub-question (Gao et al. 2023; RAISE, B.2).

Left out: the mean over several hypothetical answers of the original; RAISE's figure 11 asks for one.
"""

from __future__ import annotations

from engine.prompts import ask
from engine.reason.values import SubQuestion
from engine.types import Prompt


def hypothetical_answer_prompt(sub: SubQuestion) -> Prompt:
    """Ask for a paragraph that answers the sub-question."""
    return ask("hypothetical_answer", question=sub.question)
