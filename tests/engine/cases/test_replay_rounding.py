"""Replay on another processor: what another arithmetic gave is within the floors, an altered number is not."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from engine.analyses.floors import drop_floor, entailment_floor, relevance_floors, rounding, token_floor
from engine.analyses.kind import FAITHFULNESS, OCCLUSION, TOKEN_MAP, USED_SUPPORTS, Loaders
from engine.answer.citations import annotate
from engine.answer.prompt import stamp_of
from engine.core.canonical import canonical
from engine.core.settings import Faithfulness, Gradient, Settings
from engine.core.values import Case, inputs_hash
from engine.methods import registry
from engine.models.memory import computed_otherwise, in_double
from engine.models.scripted import ScriptedScorer
from engine.models.verifier import load_entailment
from tests.analysing import analysed, replay_here
from tests.engine.are.scripted import WordVerifier
from tests.tiny import passages, tiny_model, tiny_prompt

TEXT = "Hanna Lind built the bridge [cite_1]. It was repaired in 1931 [cite_2]."
SETTINGS = Settings(faithfulness=Faithfulness(steps=4, rankings=3), gradient=Gradient(integrated_steps=4))
METHODS = [method.name for method in registry.built_in(Settings()) if method.explain]
MODEL = tiny_model("lfm2")
TOOLS = Loaders(writer=lambda name: MODEL, verifier=lambda name: WordVerifier())


def analyses_by(case, model):
    rankings = ("input x gradient", "occlusion", "value-weighted attention")
    return (
        analysed(case, OCCLUSION, model, SETTINGS),
        analysed(case, TOKEN_MAP, model, SETTINGS),
        analysed(case, FAITHFULNESS, model, SETTINGS, methods=rankings),
        analysed(case, USED_SUPPORTS, model, SETTINGS, verifier=WordVerifier()),
        *(analysed(case, name, model, SETTINGS) for name in METHODS),
    )


@pytest.fixture(scope="module")
def case() -> Case:
    """A case whose every analysis was computed in float64, under the stamp of the float32 model."""
    given = passages(3)
    prompt = tiny_prompt(3)
    answer = annotate(MODEL.encode_answer(TEXT), 3)
    stamp = stamp_of(MODEL, SETTINGS.prompting, SETTINGS.decoding, inputs_hash("Who built the bridge?", given))
    bare = Case(
        id="0123456789ab", question="Who built the bridge?", passages=given, answer=answer, stamp=stamp, prompt=prompt
    )
    twin = in_double(MODEL)
    assert twin is not None and twin.dtype == "float64" and MODEL.dtype == "float32"
    made = tuple(
        replace(there, stamp=here.stamp)
        for there, here in zip(analyses_by(bare, twin), analyses_by(bare, MODEL), strict=True)
    )
    return Case.from_dict(msgspec.json.decode(canonical(replace(bare, analyses=made))))


def test_what_another_arithmetic_gave_reproduces(case):
    found = [number for number in replay_here(case, TOOLS).numbers if number.place.startswith("analyses")]
    drifted = [(n.place, n.difference, n.floor) for n in found if n.status != "reproduced"]
    assert drifted == [], [place for place, *_ in drifted]
    assert sum(bool(n.difference) for n in found) > 100  # the two arithmetics do differ


@pytest.mark.parametrize("kind", ["token map", "faithfulness", *METHODS])
def test_a_number_altered_by_more_is_named(case, kind):
    analysis = next(a for a in case.analyses if a.kind == kind)
    result = msgspec.json.decode(canonical(analysis.result))
    row = {"token map": "rows", "faithfulness": "curves"}.get(kind, "scores")
    place = result[row][0]["morf"] if kind == "faithfulness" else result[row][0]
    place = place[0] if kind == "token map" else place
    place[0] += 0.01 * max(1.0, abs(place[0]))
    altered = replace(case, analyses=(replace(analysis, result=result),))
    found = replay_here(altered, TOOLS).numbers
    (drifted,) = [n for n in found if n.status == "drifted" and n.place.startswith("analyses")]
    assert drifted.place.startswith(f"analyses[{analysis.id}].{row}[0]")


def test_floors_are_measured_and_nothing_where_nothing_rounds():
    prompt, answer = tiny_prompt(3), annotate(MODEL.encode_answer(TEXT), 3)
    coded, ids = MODEL.encode(prompt), [token.id for token in answer.tokens]
    assert 0 < token_floor(MODEL, [(coded, ids)]) < drop_floor(MODEL, coded, ids) < 0.01
    explain = registry.method("input x gradient").explain
    (whole,), each = relevance_floors(explain, MODEL, prompt, answer, [(0, len(TEXT))], [0, 1])
    assert each > 0 and 0 < whole < 0.01
    scripted = ScriptedScorer(lambda numbers, words, t: -1.0)
    own = [token.id for token in scripted.encode_answer(TEXT).tokens]
    assert drop_floor(scripted, scripted.encode(prompt), own) == 0.0


def test_a_model_without_a_module_is_computed_as_it_is():
    scripted = ScriptedScorer(lambda numbers, words, t: -1.0)
    assert in_double(scripted) is None
    with computed_otherwise(scripted, 10) as other:
        assert other is scripted


def test_without_memory_for_float64_sums_are_ordered_otherwise(monkeypatch):
    # Room for the attention weights of a short row, and none for a copy in float64.
    monkeypatch.setattr("engine.models.memory.free_memory", lambda place: 600_000)
    coded, ids = MODEL.encode(tiny_prompt(3)), list(range(5, 15))
    once, before = MODEL.score([coded], ids), MODEL.module.config._attn_implementation
    with computed_otherwise(MODEL, 30) as other:
        assert other is MODEL and MODEL.module.config._attn_implementation == "eager"
        assert 0 < np.abs(other.score([coded], ids) - once).max() < 1e-3
    assert MODEL.module.config._attn_implementation == before


def test_rounding_is_four_times_the_largest_difference_of_a_name_whole_numbers_aside():
    values = {"a": [1.0, 2.0], "b": {"a": [3.0, {"c": 1.0}]}, "n": 3}
    again = {"a": [1.0, 2.5], "b": {"a": [3.75, {"c": 1.0}]}, "n": 4}
    assert rounding(values, again, 0.1) == {"a": 4 * 0.75, "c": 0.1}


def test_a_verifiers_floor_holds_what_its_other_number_format_says():
    verifier = load_entailment()
    pairs = [
        (f"The bridge was built in {year}.", "Hanna Lind built the bridge in 1874, after the flood.")
        for year in range(1870, 1880)
    ]
    other = verifier.in_other_format()
    moved = np.abs(verifier.entailment(pairs) - other.entailment(pairs))
    assert 0 < moved.max() <= entailment_floor(verifier, pairs) / 4 + 1e-9
    assert other.in_other_format().entailment(pairs) == pytest.approx(verifier.entailment(pairs), abs=1e-6)
