"""The model that scores an answer need not be the one that wrote it (METHODS section 0, "Stamps")."""

from __future__ import annotations

from typing import Literal

from engine.answer.citations import annotate
from engine.models.protocols import LanguageModel
from engine.types import Answer


def banner(writer: str, scorer: str) -> str:
    """What has to stand above a score where scorer and writer differ; empty where they are one."""
    if writer == scorer:
        return ""
    return (
        f"Written by {writer}. Scored by {scorer}. "
        f"This shows what makes the answer likely to {scorer}, not what {writer} used."
    )


def answer_for(
    model: LanguageModel, answer: Answer, writer: str, passages: int, style: Literal["garage", "alce"] = "garage"
) -> Answer:
    """The answer with token ids of `model`: as generated if `model` wrote it, else its text tokenised once."""
    if answer.tokens and writer == model.name:
        return answer
    return annotate(model.encode_answer(answer.text), passages, style)
