"""Attributions: occlusion, gradients, token maps, faithfulness, used x supports, by the stamped model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.answer.citations import without_markers
from engine.answer.generate import stamp_of
from engine.attribute.on_case import (
    SENTENCES,
    faithfulness_of,
    method_of,
    occlusion_of,
    sentence_occlusion_of,
    subject,
    token_map_of,
    used_supports_of,
)
from engine.cases.replay.floors import entailment_floor, token_floor
from engine.cases.replay.outcome import Kind, Outcome, Tools, less
from engine.errors import GroundworkError
from engine.models.protocols import LanguageModel, require
from engine.settings import Settings
from engine.types import Analysis, Case, Passage, Stamp

STAGES = ("prompting", "decoding", "occlusion", "gradient", "faithfulness")
PLACEBOS_GONE = "the unrelated passages of the placebo floor are no longer here"


def scores_again(case: Case, analysis: Analysis, tools: Tools) -> Outcome:
    """A likelihood- or gradient-based analysis again, with the stamped model, revision, dtype and settings."""
    model, why = stamped_model(analysis.stamp, tools)
    if why:
        return Outcome(why=why)
    settings = settings_of(analysis.stamp)
    return _AGAIN.get(analysis.kind, _method_again)(case, analysis, model, settings, tools)


def stamped_model(stamp: Stamp, tools: Tools) -> tuple[LanguageModel, str]:
    """The stamped scorer, and in what it differs from the one of the stamp (empty where in nothing)."""
    writer = tools.writer(stamp.model)
    require(writer, "score")
    model: LanguageModel = writer  # type: ignore[assignment]
    return model, differs(stamp, model)


def differs(stamp: Stamp, model: Any) -> str:
    """Why a model is not the stamped one: another revision, number format or template."""
    settings = settings_of(stamp)
    here = stamp_of(model, settings.prompting, settings.decoding)
    for name in ("revision", "dtype", "template"):
        was, now = getattr(stamp, name), getattr(here, name)
        if was != now:
            return f"the model's {name} was {was or 'none'}, here it is {now or 'none'}"
    return ""


def settings_of(stamp: Stamp) -> Settings:
    """The stamped settings of the stages that scores depend on."""
    return Settings.from_dict({name: stamp.settings[name] for name in STAGES if name in stamp.settings})


def placebos(case: Case, stamp: Stamp, tools: Tools) -> tuple[tuple[Passage, ...], str]:
    """The unrelated passages that a floor was measured with, and why they cannot be had (empty where they can)."""
    wanted: Sequence[str] | None = stamp.settings.get("placebos")
    if wanted is None:
        return (), "the stamp does not name the unrelated passages of the placebo floor"
    try:
        known = {p.id: p for p in tools.collection(case.corpus).snapshot().passages} if case.corpus and wanted else {}
    except GroundworkError:
        known = {}
    found = tuple(known[name] for name in wanted if name in known)
    return (found, "") if len(found) == len(wanted) else ((), PLACEBOS_GONE)


def _method_again(case: Case, analysis: Analysis, model: LanguageModel, settings: Settings, tools: Tools) -> Outcome:
    again = method_of(case, analysis.kind, model, settings)
    return Outcome(values=less(again.result), floor=again.result.get("numerical_floor") or 0.0)


def _map_again(case: Case, analysis: Analysis, model: LanguageModel, settings: Settings, tools: Tools) -> Outcome:
    return Outcome(values=less(token_map_of(case, model, settings).result))


def _occlusion_again(case: Case, analysis: Analysis, model: LanguageModel, settings: Settings, tools: Tools) -> Outcome:
    found, missing = placebos(case, analysis.stamp, tools)
    if analysis.kind == SENTENCES:
        of = tuple(analysis.stamp.settings.get("of", ()))
        result = sentence_occlusion_of(case, model, settings, numbers=of, placebos=found).result
    else:
        by_set = analysis.kind == "occlusion of chunk sets"
        result = occlusion_of(case, model, settings, by_set=by_set, placebos=found).result
    values = less(result)
    if missing:
        values.pop("placebo_floor", None)
        for name in ("placebo_floor_by_span", "placebo_floor_by_token"):
            values.get("details", {}).pop(name, None)
    return Outcome(values=values, floor=result.get("numerical_floor") or 0.0, why=missing)


def _faithfulness_again(
    case: Case, analysis: Analysis, model: LanguageModel, settings: Settings, tools: Tools
) -> Outcome:
    prompt, answer, _ = subject(case, model, settings)
    # A probability moves by no more than its logarithm does.
    floor = token_floor(model, [(model.encode(prompt), [token.id for token in answer.tokens])])
    methods = tuple(curve["ranking"] for curve in analysis.result["curves"])
    return Outcome(values=less(faithfulness_of(case, model, settings, methods=methods).result), floor=floor)


def _used_supports_again(
    case: Case, analysis: Analysis, model: LanguageModel, settings: Settings, tools: Tools
) -> Outcome:
    found, missing = placebos(case, analysis.stamp, tools)
    verifier = tools.verifier(str(analysis.stamp.settings.get("verifier", "embedded")))
    values = less(used_supports_of(case, model, verifier, settings, placebos=found).result)
    if missing:
        values = less(values, {"floor", "floor_kind", "quadrant"})
    prompt, answer, _ = subject(case, model, settings)
    pairs = [(without_markers(case.answer.text), passage.text) for passage in case.passages]
    ids = [token.id for token in answer.tokens]
    # A score is a sum over the tokens of its span.
    nats = len(ids) * token_floor(model, [(model.encode(prompt), ids)])
    return Outcome(values=values, floor=nats, why=missing, floors={"supports": entailment_floor(verifier, pairs)})


_Again = Callable[[Case, Analysis, LanguageModel, Settings, Tools], Outcome]
_AGAIN: dict[str, _Again] = {
    "token map": _map_again,
    "occlusion": _occlusion_again,
    "occlusion of chunk sets": _occlusion_again,
    SENTENCES: _occlusion_again,
    "faithfulness": _faithfulness_again,
    "used x supports": _used_supports_again,
}
NAMES = tuple(_AGAIN)
KIND = Kind(scores_again)
