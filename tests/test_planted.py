"""The planted model: its scores follow the passage that holds the answer's words."""

from __future__ import annotations

import numpy as np
import pytest

from engine.methods.aggregate import passage_attribution
from engine.methods.input_x_gradient import input_x_gradient
from engine.methods.occlusion import occlusion
from engine.models.registry import load_writer
from engine.models.self_test import self_test
from tests.planted import planted_model, save_planted
from tests.tiny import passages, tiny_answer, tiny_prompt


@pytest.mark.parametrize("number", (1, 2, 3))
def test_the_passage_that_the_answer_repeats_counts_most(number):
    model = planted_model()
    answer = tiny_answer(model, passages(4)[number - 1].text)
    prompt = tiny_prompt(4)
    drops = occlusion(model, prompt, answer, floors=False)
    gradients = passage_attribution(input_x_gradient(model, prompt, answer), model.encode(prompt))
    assert [int(np.argmax(found.scores[0])) for found in (drops, gradients)] == [number - 1] * 2


def test_it_passes_the_self_test():
    assert [check for check in self_test(planted_model()) if not check.passed] == []


def test_it_is_loaded_by_its_folder_as_any_other(tmp_path):
    model = load_writer(str(save_planted(tmp_path / "planted")))
    prompt, answer = model.encode(tiny_prompt(2)), tiny_answer(model)
    ids = [token.id for token in answer.tokens]
    assert model.score([prompt], ids) == pytest.approx(planted_model().score([prompt], ids))
