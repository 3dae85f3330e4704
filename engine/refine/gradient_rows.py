"""The gradient rows that flags stand on: passage relevance for A's first content tokens, computed once a case."""

from __future__ import annotations

from msgspec.structs import replace

from engine.attribute.aggregate import passage_attribution
from engine.attribute.input_x_gradient import input_x_gradient
from engine.attribute.spans import first_content_tokens
from engine.models.protocols import LanguageModel
from engine.progress import Watch
from engine.settings import Settings
from engine.types import Answer, Attribution, Prompt


def gradient_rows(
    model: LanguageModel, prompt: Prompt, answer: Answer, settings: Settings, watch: Watch | None = None
) -> Attribution:
    """Input x gradient by passage: the whole answer in `scores`, the first K content tokens in `per_token`.

    `details["lengths"]` are the passages' token counts. One forward, K + 1 backwards. Raises `CannotDo`,
    `PromptTooLong`, `AttributionError` for an answer without content tokens.
    """
    how, counted = settings.gradient, settings.occlusion.count_citation_markers
    first = first_content_tokens(answer, how.first_tokens, count_citation_markers=counted)
    relevance = input_x_gradient(
        model, prompt, answer, tokens=first, target=how.target, count_citation_markers=counted, watch=watch
    )
    coded = model.encode(prompt)
    found = passage_attribution(relevance, coded)
    spans = [coded.passage_span(source[0]) for source in found.sources]
    return replace(found, details={**found.details, "lengths": [end - start for start, end in spans]})
