"""Attributions: occlusion, gradients, token maps, faithfulness, used x supports, by the stamped model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from engine.analyses.attribution import (
    faithfulness_of,
    method_of,
    occlusion_of,
    sentence_occlusion_of,
    subject,
    token_map_of,
    used_supports_of,
)
from engine.analyses.kinds import (
    FAITHFULNESS,
    OCCLUSION,
    SENTENCES,
    SETS,
    TOKEN_MAP,
    USED_SUPPORTS,
)
from engine.analyses.token_map import Rows, TokenMap
from engine.answer.write import stamp_of
from engine.cases.replay.floors import (
    FLOOR_ROWS,
    Listening,
    drop_floor,
    relevance_floors,
    rounding,
    token_floor,
)
from engine.cases.replay.outcome import (
    COSTS,
    Floor,
    Json,
    Kind,
    Outcome,
    Tools,
    less,
    plain,
)
from engine.core.errors import GroundworkError
from engine.core.files import EMBEDDED
from engine.core.settings import Settings
from engine.core.values import (
    Analysis,
    Case,
    Passage,
    Stamp,
)
from engine.methods import registry
from engine.methods.spans import answer_spans
from engine.models.memory import computed_otherwise
from engine.models.protocols import LanguageModel, require

STAGES = ("prompting", "decoding", "occlusion", "gradient", "faithfulness")
# The sums of |R| follow from the rows whose signed sums are compared; older results do not have them.
LEFT_OUT = COSTS | {"absolute"}
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
    if stamp.revision != here.revision:
        return other_revision(stamp.model, stamp.revision, here.revision)
    for name in ("dtype", "template"):
        was, now = getattr(stamp, name), getattr(here, name)
        if was != now:
            return f"the model's {name} was {was or 'none'}, here it is {now or 'none'}"
    return ""


def other_revision(model: str, was: str, now: str) -> str:
    """Why numbers of a model's revision `was` cannot be computed with `now`."""
    was, now = was or "without a name", now or "without a name"
    return f"scored by another revision of {model} ({was}), which is not installed; the one here is {now}"


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
    values = less(method_of(case, analysis.kind, model, settings).result, LEFT_OUT)
    counted = settings.occlusion.count_citation_markers
    explain = registry.method(analysis.kind, settings.gradient, count_citation_markers=counted).explain
    if explain is None:
        return Outcome(values=values)
    prompt, answer, _ = subject(case, model, settings)
    rows, _ = relevance_floors(explain, model, prompt, answer, answer_spans(answer))
    floors: dict[str, Floor] = {"scores": rows, "elsewhere": rows}
    if "delta" in values["details"]:  # a share of what the row explains
        totals = [
            abs(sum(row) + rest) for row, rest in zip(values["scores"], values["details"]["elsewhere"], strict=True)
        ]
        floors["delta"] = max(floor / total for floor, total in zip(rows, totals, strict=True) if total)
    return Outcome(values=values, floors=floors)


def _map_again(case: Case, analysis: Analysis, model: LanguageModel, settings: Settings, tools: Tools) -> Outcome:
    prompt, answer, _ = subject(case, model, settings)
    stored = analysis.result
    sentences = tuple(i for i, span in enumerate(answer.sentences) if list(span) in stored["sentences"])
    asked = Rows(method=stored["method"], sentences=sentences, tokens=tuple(stored["tokens"]))
    bare = replace(case, analyses=())  # rows that the case holds would be kept
    values = less(token_map_of(bare, model, settings, asked=asked).result)
    counted = settings.occlusion.count_citation_markers
    own = registry.method(asked.method, settings.gradient, count_citation_markers=counted)
    explained = ((0, len(answer.text)), *(answer.sentences[i] for i in sentences))
    assert own.explain is not None
    spans, each = relevance_floors(own.explain, model, prompt, answer, explained, asked.tokens[:FLOOR_ROWS])
    return Outcome(values=values, floors={"rows": (*spans, each)})


def _occlusion_again(case: Case, analysis: Analysis, model: LanguageModel, settings: Settings, tools: Tools) -> Outcome:
    found, missing = placebos(case, analysis.stamp, tools)
    if analysis.kind == SENTENCES:
        of = tuple(analysis.stamp.settings.get("of", ()))
        result = sentence_occlusion_of(case, model, settings, numbers=of, placebos=found).result
    else:
        by_set = analysis.kind == SETS
        result = occlusion_of(case, model, settings, by_set=by_set, placebos=found).result
    values = less(result)
    if missing:
        values.pop("placebo_floor", None)
        for name in ("placebo_floor_by_span", "placebo_floor_by_token"):
            values.get("details", {}).pop(name, None)
    prompt, answer, _ = subject(case, model, settings)
    coded, ids = model.encode(prompt), [token.id for token in answer.tokens]
    by_token = 2 * token_floor(model, [(coded, ids)])  # a difference of two rows
    floors: dict[str, Floor] = dict.fromkeys(("per_token", "placebo_floor_by_token"), by_token)
    return Outcome(values=values, floor=drop_floor(model, coded, ids), why=missing, floors=floors)


def _faithfulness_again(
    case: Case, analysis: Analysis, model: LanguageModel, settings: Settings, tools: Tools
) -> Outcome:
    prompt, answer, _ = subject(case, model, settings)
    coded, methods = model.encode(prompt), tuple(analysis.result["rankings"])
    values = less(faithfulness_of(case, model, settings, methods=methods).result)
    # A probability moves by no more than its logarithm does.
    floor = token_floor(model, [(coded, [token.id for token in answer.tokens])])
    # Random rankings cost the most and no rounding turns them round.
    few = replace(settings, faithfulness=replace(settings.faithfulness, rankings=2))
    with computed_otherwise(model, len(coded.ids) + len(answer.tokens)) as other:
        again = less(faithfulness_of(case, other, few, methods=methods).result, COSTS | {"random"})
    return Outcome(values=values, floor=floor, floors=rounding(values, again, floor))


def _used_supports_again(
    case: Case, analysis: Analysis, model: LanguageModel, settings: Settings, tools: Tools
) -> Outcome:
    found, missing = placebos(case, analysis.stamp, tools)
    verifier = Listening(tools.verifier(str(analysis.stamp.settings.get("verifier", EMBEDDED))))
    values = less(used_supports_of(case, model, verifier, settings, placebos=found).result)
    if missing:
        values = less(values, {"floor", "floor_kind", "quadrant"})
    prompt, answer, _ = subject(case, model, settings)
    nats = drop_floor(model, model.encode(prompt), [token.id for token in answer.tokens])
    return Outcome(values=values, floor=nats, why=missing, floors={"supports": verifier.floor})


_Again = Callable[[Case, Analysis, LanguageModel, Settings, Tools], Outcome]
_AGAIN: dict[str, _Again] = {
    TOKEN_MAP: _map_again,
    OCCLUSION: _occlusion_again,
    SETS: _occlusion_again,
    SENTENCES: _occlusion_again,
    FAITHFULNESS: _faithfulness_again,
    USED_SUPPORTS: _used_supports_again,
}
NAMES = tuple(_AGAIN)


def given(result: Json) -> Json:
    """What was asked for: the rankings of a faithfulness report, method and rows of a token map; else nothing."""
    if "curves" in result:
        return {"rankings": [curve["ranking"] for curve in result["curves"]]}
    if "argmax_differs" in result:
        found = TokenMap.from_dict(result)
        return {"method": found.method, "sentences": plain(found.sentences), "tokens": plain(found.tokens)}
    return {}


def compared(result: Json) -> Any:
    """The result without costs; a token map of an older version names its method too."""
    return less(TokenMap.from_dict(result).to_dict() if "argmax_differs" in result else result, LEFT_OUT)


KIND = Kind(scores_again, given, compared)
