"""The attributions of passages that a case holds by one model, ready to be compared (agreement.py)."""

from __future__ import annotations

from msgspec.structs import replace

from engine.attribute import registry
from engine.attribute.kinds import TOKEN_MAP
from engine.attribute.token_map import TokenMap
from engine.types import Analysis, Attribution, Case

ALONE = "each alone"


def methods_run(case: Case, model: str) -> dict[str, Attribution]:
    """Passage-level attributions under `model` by name of the method; what a stopped run left incomplete is left out.

    The token map stands for input x gradient, and occlusion also gives the scores of each passage alone.
    """
    found: dict[str, Attribution] = {}
    for analysis in case.analyses:
        if analysis.result.get("model") == model:
            found.update(_attributions(analysis))
    every = tuple((number,) for number in range(1, len(case.passages) + 1))
    return {name: attribution for name, attribution in found.items() if attribution.sources == every}


def _attributions(analysis: Analysis) -> dict[str, Attribution]:
    if analysis.kind == TOKEN_MAP:
        return {"input x gradient": TokenMap.from_dict(analysis.result).by_passage()}
    if analysis.kind not in {method.name for method in registry.methods()}:
        return {}
    found = Attribution.from_dict(analysis.result)
    alone = found.details.get("alone")
    own = {analysis.kind: found}
    if alone:
        own[ALONE] = replace(found, method=ALONE, scores=tuple(map(tuple, alone)), per_token=(), details={})
    return own
