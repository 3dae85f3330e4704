"""Occlusion of single sentences inside the passages that matter, once passages have been told apart."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from engine.attribute.occlusion import Options, occlude
from engine.attribute.positions import sentence_sources
from engine.attribute.removal import passage_numbers
from engine.errors import Cancelled
from engine.models.protocols import LanguageModel, require
from engine.progress import Watch
from engine.settings import Occlusion
from engine.types import Answer, Attribution, Prompt

TOP_PASSAGES = 3  # passages whose sentences are told apart by default


def sentence_occlusion(
    model: LanguageModel,
    prompt: Prompt,
    answer: Answer,
    *,
    numbers: Sequence[int] | None = None,
    placebos: Sequence[str] = (),
    floors: bool = True,
    settings: Occlusion | None = None,
    watch: Watch | None = None,
) -> Attribution:
    """As `occlusion`, every sentence of the passages `numbers` being a source (default the prompt's first three).

    `details["source_spans"][j]` = [passage number, start, end] in the passage segment's text. Raises
    `AttributionError` where the model's tokens cannot be placed in the text.
    """
    require(model, "score")
    coded = model.encode(prompt)
    wanted = tuple(numbers) if numbers is not None else passage_numbers(coded)[:TOP_PASSAGES]
    found = sentence_sources(model, prompt, coded, wanted)
    groups = [(source.number,) for source in found]
    removed = [source.positions for source in found]
    options = Options(placebos, floors=floors, settings=settings or Occlusion(), watch=watch)
    where = [[source.number, source.start, source.end] for source in found]

    def placed(result: Attribution) -> Attribution:
        return replace(result, details={**result.details, "source_spans": [where[j] for j in result.details["kept"]]})

    try:
        return placed(occlude("occlusion of sentences", model, prompt, answer, coded, groups, removed, None, options))
    except Cancelled as stopped:
        if not isinstance(stopped.partial, Attribution):
            raise
        raise Cancelled(str(stopped), placed(stopped.partial)) from stopped


def top_passages(attribution: Attribution, count: int = TOP_PASSAGES) -> tuple[int, ...]:
    """The passages of the `count` highest sources for the whole answer: what to look into sentence by sentence."""
    order = sorted(range(len(attribution.sources)), key=lambda j: -attribution.scores[0][j])
    return tuple(dict.fromkeys(number for j in order[:count] for number in attribution.sources[j]))
