"""Leave-one-out down a hierarchy: by hand, against exact leave-one-out, and what it costs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.core.errors import AttributionError
from engine.core.progress import Watch
from engine.core.settings import Occlusion
from engine.core.values import Prompt, Segment
from engine.methods import hierarchy
from engine.methods.hierarchy import EXACT, SHARE, hierarchical
from engine.methods.occlusion import ask, occlusion
from engine.methods.registry import method
from engine.models.hooks import count_forwards
from engine.models.scripted import ScriptedScorer, reads
from tests.tiny import tiny_answer, tiny_model, tiny_prompt

ALL = Occlusion(max_sources=10_000)


def prompt_of(count: int) -> Prompt:
    segments = [Segment(kind="passage", text=f"\nPassage {n}: x", number=n) for n in range(1, count + 1)]
    return Prompt(segments=(Segment(kind="instruction", text="Answer."), *segments))


def rows_ahead(passages: int) -> int:
    """Rows of the large model for blocks of about the square root of the passages."""
    if passages <= EXACT:
        return passages + 1
    size = math.isqrt(passages - 1) + 1
    return max(int(SHARE * (passages + 1)), 1 + math.ceil(passages / size) + size)


def adding(effects):
    """A model to which each passage adds its own nats per token."""
    return ScriptedScorer(lambda passages, words, t: -9.0 + sum(effects[n - 1] for n in passages))


def drawn(rng, count):
    """A few passages that matter, many that hardly do."""
    effects = 0.004 * rng.standard_normal(count)
    effects[rng.choice(count, 3, replace=False)] += rng.uniform(0.1, 0.5, 3)
    return effects


def top(found):
    return found.sources[int(np.argmax(found.scores[0]))]


def test_by_hand_the_block_that_matters_is_opened_and_its_passages_are_exact():
    model = ScriptedScorer(reads({37}, gain=0.5))
    found = hierarchical(model, prompt_of(100), tiny_answer(model))
    assert found.sources == tuple((n,) for n in range(31, 41))
    assert found.scores[0] == pytest.approx([0] * 6 + [0.5 * 10] + [0] * 3)
    assert found.forwards == rows_ahead(100) == 1 + 10 + 10
    assert found.method == hierarchy.METHOD
    assert "10 of 100 passages" in found.notes[0]


def test_named_documents_are_the_blocks():
    model = ScriptedScorer(reads({5}, gain=0.5))
    documents = [[5, 70], [n for n in range(1, 62) if n != 5], list(range(62, 70))]
    found = hierarchical(model, prompt_of(70), tiny_answer(model), documents=documents)
    assert set(found.sources) >= {(5,), (70,)} and top(found) == (5,)
    for wrong in ([[1, 2]], [*documents, [5]], [[*range(1, 72)]]):
        with pytest.raises(AttributionError, match="in exactly one document"):
            hierarchical(model, prompt_of(70), tiny_answer(model), documents=wrong)


def test_a_small_model_names_what_the_large_one_measures():
    small = ScriptedScorer(reads({3, 80, 99}, gain=0.2))
    large = ScriptedScorer(reads({80}, gain=0.5))
    answer = tiny_answer(large)
    with count_forwards(large) as counted:
        found = hierarchical(large, prompt_of(100), answer, proxy=small)
    assert {(3,), (80,), (99,)} <= set(found.sources) and top(found) == (80,)
    assert found.forwards == counted.rows == 20 == int(0.2 * 101)
    exact = occlusion(large, prompt_of(100), answer, floors=False, settings=ALL)
    at = [exact.sources.index(source) for source in found.sources]
    assert found.scores[0] == pytest.approx([exact.scores[0][j] for j in at])


def test_what_is_scored_has_the_score_of_exact_leave_one_out(monkeypatch):
    monkeypatch.setattr(hierarchy, "EXACT", 5)
    model, prompt = tiny_model("llama"), tiny_prompt(9)
    answer = tiny_answer(model)
    exact = occlusion(model, prompt, answer, floors=False)
    found = hierarchical(model, prompt, answer)
    assert 0 < len(found.sources) < 9 and found.spans == exact.spans
    for span in range(len(exact.spans)):
        expected = {s: exact.scores[span][j] for j, s in enumerate(exact.sources)}
        assert found.scores[span] == pytest.approx([expected[s] for s in found.sources], abs=1e-3)


def test_a_model_whose_keys_can_be_masked_is_asked_so_within_the_share(monkeypatch):
    monkeypatch.setattr(hierarchy, "EXACT", 5)
    model, prompt = tiny_model("llama"), prompt_of(40)
    answer = tiny_answer(model)
    found = hierarchical(model, prompt, answer)
    assert found.forwards <= int(SHARE * 41) and "without whose keys" in found.notes[0]
    asked = ask(model.encode(prompt), answer, [(0, len(answer.text))], count_citation_markers=False)
    masked = model.score_knocked_out(asked.prompt, asked.removed, asked.ids)
    drops = (masked[0] - masked[1:]) @ asked.masks[0].astype(float)
    assert {(int(np.argmax(drops)) + 1,), (40,)} <= set(found.sources)
    documents = [range(1, 21), range(21, 41)]
    assert "blocks" in hierarchical(model, prompt, answer, documents=documents).notes[0]


def test_few_passages_are_all_left_out():
    model = tiny_model("gpt2")
    answer = tiny_answer(model)
    exact = occlusion(model, tiny_prompt(4), answer, floors=False)
    found = hierarchical(model, tiny_prompt(4), answer)
    assert (found.sources, found.scores) == (exact.sources, exact.scores)
    assert rows_ahead(4) == 5


@pytest.mark.parametrize("count", [120, 250])
def test_the_top_passage_is_that_of_exact_leave_one_out_for_a_fifth_of_the_rows(count):
    rng, right = np.random.default_rng(count), 0
    for _ in range(40):
        effects = drawn(rng, count)
        model = adding(effects)
        found = hierarchical(model, prompt_of(count), tiny_answer(model))
        assert found.forwards <= max(rows_ahead(count), int(0.2 * (count + 1)))
        right += top(found) == (int(np.argmax(effects)) + 1,)
    assert rows_ahead(count) <= 0.2 * (count + 1)
    assert right >= 38


def test_it_is_registered_and_takes_its_spans():
    model = ScriptedScorer(reads({7}, gain=0.5))
    own, answer = method(hierarchy.METHOD), tiny_answer(model)
    found = own.attribute(model, prompt_of(90), answer, [(0, 36), (37, len(answer.text))], Watch())
    assert len(found.scores) == 2 and top(found) == (7,)
    assert (own.unit, own.needs) == ("nats", "score")
