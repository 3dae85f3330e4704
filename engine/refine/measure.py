"""S1 to S3 of A on a case, with their cost, or why there is none."""

from __future__ import annotations

from engine.answer.prompt import build_prompt
from engine.attribute.scorer import answer_for, banner
from engine.errors import Cancelled, GroundworkError
from engine.models.protocols import require
from engine.progress import Watch
from engine.refine import signals
from engine.refine.costs import metered
from engine.refine.request import Request
from engine.refine.values import Cost, Refinement, Signals
from engine.types import Answer, Prompt


def own_tokens(request: Request, answer: Answer) -> Answer:
    """A with the scorer's token ids: as generated where it wrote A, else its text tokenised once."""
    writer = (request.given_by if request.given is not None else request.writer.name) or "elsewhere"
    return answer_for(request.scores_with, answer, writer, len(request.passages), request.settings.prompting.citations)


def sent_for_a(value: Refinement) -> Prompt | None:
    """A's prompt where A was written in this run."""
    turns = value.variants["A"].turns if "A" in value.variants else ()
    return turns[0].prompt if turns else None


def scored_prompt(request: Request, value: Refinement) -> Prompt:
    """The prompt that A answers, as the scorer sees it."""
    sent = sent_for_a(value) or request.given_prompt
    return sent or build_prompt(request.question, request.passages, request.settings.prompting)


def signals_of(request: Request, value: Refinement, prompt: Prompt, watch: Watch) -> tuple[Signals, dict[str, Cost]]:
    """S1 to S3 of A as far as they can be had; what is already known of `value` is not scored again."""
    answer, memory = value.baseline, value.variants["B"].answer if "B" in value.variants else None
    if answer is None:
        return Signals(missing=dict.fromkeys(("S1", "S2", "S3"), "There is no baseline answer.")), {}
    missing: dict[str, str] = {}
    if memory is None:
        missing["S1"] = "There is no answer without passages (condition B)."
    words = signals.overlap_words(answer.text, request.passages)
    if not words:
        missing["S3"] = "The answer has no content words."
    old = value.signals
    cost: dict[str, Cost] = {}
    found, content, said = old.s2, old.s2_content, old.banner
    if found is None:
        found, content, cost, why = _second_signal(request, answer, prompt, watch)
        said = _banner(request)
        missing |= {"S2": why} if why else {}
    return (
        Signals(
            s1=signals.s1(answer.text, memory.text) if memory else None,
            s2=found,
            s2_content=content,
            s3=signals.s3(words),
            words=words,
            missing=missing,
            banner=said,
        ),
        cost,
    )


def _second_signal(
    request: Request, answer: Answer, prompt: Prompt, watch: Watch
) -> tuple[float | None, float | None, dict[str, Cost], str]:
    """S2 over all tokens and over content tokens, its cost, or why there is none."""
    model = request.scores_with
    try:
        require(model, "score")
        own = own_tokens(request, answer)
        if not own.tokens:
            return None, None, {}, "The answer has no tokens."
        with metered(model) as meter:
            whole, content = signals.s2(model, prompt, own, watch)
    except Cancelled:
        raise
    except GroundworkError as error:
        return None, None, {}, str(error)
    return whole, content, {"S2": meter.cost}, ""


def _banner(request: Request) -> str:
    writer = request.given_by or "another system" if request.given is not None else request.writer.name
    return banner(writer, request.scores_with.name)
