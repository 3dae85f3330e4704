"""The input and output of an analysis: prompt and answer in, an `Analysis` with its stamp out.

The prompt is the one that was sent where the scorer wrote the answer, else the engine's answering prompt over the
case's passages (docs/methods/common-ground.md); a banner in the notes says so.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec
from msgspec.structs import replace

from engine.answer.citations import annotate, style_of
from engine.answer.prompt import build_prompt, stamp_of
from engine.core.errors import AttributionError
from engine.core.settings import Occlusion, Settings
from engine.core.values import (
    IMPORTED,
    SPANS,
    Analysis,
    Answer,
    Case,
    Json,
    Prompt,
    Stamp,
    Value,
    converted,
    inputs_hash,
)
from engine.methods.spans import Span, answer_spans, content_mask, touched
from engine.models.protocols import LanguageModel


def banner(writer: str, scorer: str) -> str:
    """The banner above a score if scorer and writer differ; empty if they are the same."""
    if writer == scorer:
        return ""
    by = "a system that the record does not name" if writer == IMPORTED else writer
    return (
        f"Written by {by}. Scored by {scorer}. "
        f"This shows what makes the answer likely to the scorer, not what the writer used."
    )


def answer_for(model: LanguageModel, answer: Answer, writer: str, passages: int) -> Answer:
    """The answer with token ids of `model`: as generated if `model` wrote it, else its text tokenised once.

    Its citations are those of the style that it is written in, whatever the settings ask of a writer.
    """
    if answer.tokens and writer == model.name:
        return answer
    return annotate(model.encode_answer(answer.text), passages, style_of(answer.text))


def subject(case: Case, model: LanguageModel, settings: Settings) -> tuple[Prompt, Answer, tuple[str, ...]]:
    """(prompt, answer with the model's token ids, notes) for scoring a case; `AttributionError` without passages."""
    if not case.passages:
        raise AttributionError("This case has no passages to attribute the answer to.")
    sent = case.prompt if case.stamp.model == model.name else None
    prompt = sent or build_prompt(case.question, case.passages, settings.prompting)
    answer = answer_for(model, case.answer, case.stamp.model, len(case.passages))
    said = banner(case.stamp.model, model.name)
    return prompt, answer, (said,) if said else ()


def default_spans(case: Case, answer: Answer, settings: Settings) -> tuple[Span, ...]:
    """The spans that a run explains by default: the answer, its sentences, and those that its record names.

    The last are widened to whole tokens of `answer`; one without words is left out.
    """
    given: tuple[Span, ...] = ()
    with suppress(msgspec.ValidationError):  # a case file may hold anything
        given = converted(case.stamp.settings.get(SPANS, ()), tuple[Span, ...])
    if not given:
        return answer_spans(answer)
    content = content_mask(answer, count_citation_markers=settings.occlusion.count_citation_markers)
    wide = (touched(answer, span, content) for span in given)
    return tuple(dict.fromkeys((*answer_spans(answer), *filter(None, wide))))


def occlusion_stamped(settings: Settings) -> Json:
    """The stamp's entry for what scores depend on of the occlusion: none for the defaults, as in older stamps."""
    usual = Occlusion().to_dict()
    given = {name: value for name, value in settings.occlusion.to_dict().items() if value != usual[name]}
    given.pop("placebos", None)  # of the floors, whose passages a stamp lists
    return {"occlusion": given} if given else {}


def analysis_of(
    case: Case, model: LanguageModel, settings: Settings, kind: str, result: Value, extra: Json
) -> Analysis:
    """The result under a stamp; an analysis of the same kind by the same model takes its place in the case."""
    return Analysis(id=f"{kind}:{model.name}", kind=kind, stamp=stamp_for(case, model, settings, extra), result=result)


def stamp_for(case: Case, model: LanguageModel, settings: Settings, extra: Json) -> Stamp:
    """The stamp of an analysis of the case's answer; `extra` are the settings of its own."""
    inputs = inputs_hash(case.question, case.passages, case.answer.text)
    written = stamp_of(model, settings.prompting, settings.decoding, inputs)
    return replace(written, settings={**written.settings, **occlusion_stamped(settings), **extra})
