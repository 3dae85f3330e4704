"""The committed weights do what the model card says, on a few held-out worlds (the table: make bench-models)."""

import random

import numpy as np
import pytest

from engine.answer.citations import find_citations
from engine.attribute.occlusion import occlusion
from engine.home import ASSETS
from engine.models.huggingface import HuggingFaceModel
from engine.settings import Decoding
from engine.train.jobs import answering_prompt
from engine.train.worlds import Difficulty, answering_example, make_world

FOLDER = ASSETS / "models" / "language_model"


@pytest.fixture(scope="module")
def model():
    return HuggingFaceModel.load(FOLDER, dtype="float32", threads=1)


@pytest.fixture(scope="module")
def answered(model):
    rng, difficulty = random.Random("held out test"), Difficulty(sentences=2, alike=0.5)
    made = []
    for _ in range(20):
        example = answering_example(make_world(rng, 4, 3, difficulty), 4, rng, difficulty)
        asked = example.asked[0]
        prompt = answering_prompt(asked.question, example.passages, example.numbers)
        made.append((prompt, asked, model.generate(prompt, Decoding(max_new_tokens=50))))
    return made


def test_all_weights_together_stay_under_30_mb():
    assert sum(p.stat().st_size for p in FOLDER.iterdir()) < 30_000_000


def test_value_and_citation_are_right_far_above_chance(answered):
    values = [asked.value.lower() in answer.text.lower() for _, asked, answer in answered]
    cited = [
        [c.number for c in find_citations(answer.text, 30)][:1] == [asked.passage] for _, asked, answer in answered
    ]
    assert np.mean(values) >= 0.6
    assert np.mean(cited) >= 0.6


def test_occlusion_ranks_the_passage_of_the_right_sentence_first(model, answered):
    first = []
    for prompt, asked, _ in answered[:10]:
        found = occlusion(model, prompt, model.encode_answer(asked.sentence), floors=False)
        first.append(found.sources[int(np.argmax(found.scores[0]))] == (asked.passage,))
    assert np.mean(first) >= 0.7
