"""Occlusion both ways: by hand, invariants, and against one forward for each prompt."""

from __future__ import annotations

import numpy as np
import pytest

from engine.core.progress import Watch
from engine.core.values import Prompt, Segment
from engine.methods.both_ways import METHOD, UNIT, both_ways
from engine.methods.occlusion import occlusion
from engine.methods.registry import method
from engine.methods.spans import content_mask
from engine.models.scripted import ScriptedScorer, reads
from tests.engine.methods.test_occlusion import brute_force
from tests.tiny import KINDS, tiny_answer, tiny_model, tiny_prompt


def prompt_of(*texts):
    passages = [Segment(kind="passage", text=f"\nPassage {n}: {text}", number=n) for n, text in enumerate(texts, 1)]
    return Prompt(segments=(Segment(kind="instruction", text="Answer."), *passages))


def test_by_hand_a_copy_counts_alone_and_a_loss_counts_nowhere():
    """Words 0 and 1 of "Tin melts early." from two copies, word 2 from passage 3, which makes word 0 less likely.

    Without: word 0 only reacts to passage 3 (a loss), word 2 by 0.5. Alone: the copies give 0.75 to words 0 and 1,
    passage 3 takes 0.05 from word 0 and gives 0.5 to word 2.
    """

    def logprob(passages, words, t):
        copies, own = bool({1, 2} & passages.keys()), 3 in passages
        return np.log(0.1 + ((0.75 * copies - 0.05 * own) if t == 0 else 0.75 * copies if t == 1 else 0.5 * own))

    model = ScriptedScorer(logprob)
    answer = model.encode_answer("Tin melts early.")
    found = both_ways(model, prompt_of("copy", "copy", "own"), answer, spans=[(0, 16), (0, 3), (10, 16)])
    assert len(answer.tokens) == 3
    assert np.array(found.per_token) == pytest.approx(np.array([[0.75, 0.75, 0], [0.75, 0.75, 0], [0, 0, 1]]))
    assert np.array(found.scores) == pytest.approx(np.array([[1.5, 1.5, 1], [0.75, 0.75, 0], [0, 0, 1]]))
    assert found.forwards == 2 * 3 + 2 and found.unit == UNIT
    assert found.details.full[0] == pytest.approx(np.log([0.8, 0.85, 0.6]).sum())
    assert found.details.alone == found.details.gained == found.details.with_markers == ()
    spans = [(0, 16), (0, 3), (10, 16)]
    left_out = occlusion(model, prompt_of("copy", "copy", "own"), answer, spans=spans, floors=False, alone=True)
    assert left_out.scores[0] == pytest.approx((0, 0, np.log(0.8 / 0.85) + np.log(6))), "it does not see the copies"
    assert np.array(left_out.details.gained) == pytest.approx(np.array(found.scores)), (
        "occlusion with each passage alone tells both"
    )


def test_scores_are_not_negative_and_sentences_add_up():
    model = tiny_model("llama")
    found = both_ways(model, tiny_prompt(4), tiny_answer(model))
    scores = np.array(found.scores)
    assert (scores >= 0).all() and scores[0].max() > 0
    assert scores[1:].sum(axis=0) == pytest.approx(scores[0], rel=1e-9)
    only = both_ways(model, tiny_prompt(1), tiny_answer(model))
    full, none = (np.exp(brute_force(model, tiny_prompt(1).keep(kept), tiny_answer(model))) for kept in ({1}, set()))
    gains = np.maximum(full - none, 0)[:, None]
    assert np.array(only.per_token) == pytest.approx(2 * gains, abs=1e-4), "one passage: both ways are the same"


def test_a_passage_that_is_not_read_scores_zero():
    model = ScriptedScorer(reads({2}))
    answer = tiny_answer(model)
    found = both_ways(model, prompt_of("a", "b", "c"), answer)
    gained = np.exp(-4) - np.exp(-5)  # `reads`: -5 nats per token, and 1 more with the passage
    assert found.scores[0] == pytest.approx((0, 2 * gained * content_mask(answer).sum(), 0))


@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_one_forward_for_each_prompt(kind):
    model, prompt = tiny_model(kind), tiny_prompt(3)
    answer = tiny_answer(model)
    found = both_ways(model, prompt, answer)
    full, none = (np.exp(brute_force(model, prompt.keep(kept), answer)) for kept in ({1, 2, 3}, set()))
    for j, number in enumerate((1, 2, 3)):
        left_out = full - np.exp(brute_force(model, prompt.without({number}), answer))
        alone = np.exp(brute_force(model, prompt.keep({number}), answer)) - none
        gains = np.maximum(left_out, 0) + np.maximum(alone, 0)
        assert [row[j] for row in found.per_token] == pytest.approx(gains, rel=1e-3, abs=1e-3)
        assert found.scores[0][j] == pytest.approx(gains[content_mask(answer)].sum(), rel=1e-3, abs=1e-3)


def test_it_is_registered():
    model = ScriptedScorer(reads({1}))
    own, answer = method(METHOD), tiny_answer(model)
    found = own.attribute(model, prompt_of("a", "b"), answer, [(0, 5), (0, len(answer.text))], Watch())
    assert (own.unit, own.needs, found.method, len(found.scores)) == (UNIT, "score", METHOD, 2)
