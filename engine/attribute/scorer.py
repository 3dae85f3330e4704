"""The model that scores an answer need not be the one that wrote it (METHODS section 0, "Stamps")."""

from __future__ import annotations

from typing import Literal

from engine.answer.citations import annotate
from engine.home import EMBEDDED
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


SAMPLE_CORPORA = ("bench-chemistry", "bank-investigation", "science-primer")  # the worlds that the embedded model knows


def out_of_domain(scorer: str, corpus: str | None) -> str:
    """What to add where the embedded model scores text outside its sample worlds; empty elsewhere."""
    if scorer != EMBEDDED or corpus in SAMPLE_CORPORA:
        return ""
    return "The embedded model was trained on its sample worlds: this text is out of its domain."


def answer_for(
    model: LanguageModel, answer: Answer, writer: str, passages: int, style: Literal["garage", "alce"] = "garage"
) -> Answer:
    """The answer with token ids of `model`: as generated if `model` wrote it, else its text tokenised once."""
    if answer.tokens and writer == model.name:
        return answer
    return annotate(model.encode_answer(answer.text), passages, style)
