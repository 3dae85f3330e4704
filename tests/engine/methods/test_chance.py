"""A model that knows nothing finds planted sources at chance, whatever words they hold: no lexical feature scores."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from engine.answer.prompt import build_prompt
from engine.core.values import Passage
from engine.methods.aggregate import passage_attribution
from engine.methods.input_x_gradient import input_x_gradient
from engine.methods.occlusion import occlusion
from tests.tiny import tiny_model

NAMES = ("Hanna Lind", "Olaf Berg", "Mira Holt", "Jon Vale", "Ida Fisk", "Tom Reed", "Eva Dahl", "Nils Ohm")
THINGS = ("bridge", "mill", "tower", "lock", "chapel", "harbour", "school", "kiln")


def planted(case, count=5):
    """Passages of one shape and length; the answer repeats one of them word for word. (prompt, answer, place)."""
    rng = np.random.default_rng(case)
    names, things = rng.permutation(NAMES)[:count], rng.permutation(THINGS)[:count]
    texts = [
        f"{name} built the {thing} in 18{rng.integers(10, 99)}." for name, thing in zip(names, things, strict=True)
    ]
    passages = [
        Passage(id=str(i), document=str(i), title="", ordinal=0, start=0, end=len(t), text=t)
        for i, t in enumerate(texts)
    ]
    place = int(rng.integers(count))
    return build_prompt(f"Who built the {things[place]}?", passages), texts[place], place


def top(scores):
    return int(np.argmax(scores))


@pytest.mark.slow
def test_planted_sources_are_found_at_chance_with_random_weights():
    found = {"occlusion": 0, "input x gradient": 0}
    cases = 120
    for case in range(cases):
        model = tiny_model("llama", seed=case % 12)
        prompt, text, place = planted(case)
        answer = model.encode_answer(text)
        found["occlusion"] += top(occlusion(model, prompt, answer, floors=False).scores[0]) == place
        gradient = passage_attribution(input_x_gradient(model, prompt, answer), model.encode(prompt))
        found["input x gradient"] += top(gradient.scores[0]) == place
    for method, hits in found.items():
        assert binomtest(hits, cases, 1 / 5).pvalue > 0.001, (method, hits)
