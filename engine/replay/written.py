"""An answer that a language model wrote: its text is an input, the probabilities of its tokens are computed again."""

from __future__ import annotations

from typing import Any

from engine.analyses.attribution import differs
from engine.analyses.floors import token_floor
from engine.analyses.kind import Loaders, Outcome, plain
from engine.core.values import Case
from engine.models.protocols import LanguageModel
from engine.models.registry import SERVED

INPUT = "the answer of {} is an input of the replay, not written again"


def stored_text(case: Case) -> Any:
    """The text, and the log-probability (nats) of each token that has one."""
    return plain({"text": case.answer.text, "logprobs": _logprobs(case)})


def scored_again(case: Case, tools: Loaders) -> Outcome:
    """The tokens' log-probabilities after the prompt that was sent; the text is not compared."""
    why, tokens = INPUT.format(case.stamp.model), case.answer.tokens
    if case.origin == "imported":
        return Outcome(why="the answer was imported; nothing here writes it")
    if case.prompt is None or not tokens or case.stamp.model.startswith(SERVED):
        return Outcome(why=why)
    model: LanguageModel = tools.writer(case.stamp.model)  # type: ignore[assignment]
    changed = differs(case.stamp, model)
    if changed or not model.can.score:
        return Outcome(why=changed or model.can.why_not or why)
    coded, ids = model.encode(case.prompt), [token.id for token in tokens]
    values = {"logprobs": model.score([coded], ids)[0].tolist()}
    return Outcome(values=values, floor=token_floor(model, [(coded, ids)]), why=why)


def _logprobs(case: Case) -> list[float | None]:
    found = [token.logprob for token in case.answer.tokens]
    return found if any(value is not None for value in found) else []
