"""MoRF, LeRF, ABPC: scripted scorers whose curves are known, brute force on tiny models."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from engine.answer.citations import annotate
from engine.core.errors import AttributionError, CannotDo
from engine.core.progress import last
from engine.core.settings import Faithfulness
from engine.core.values import Prompt, Segment
from engine.methods.faithfulness import Deletion, batches, diagnostics, passage_ranking, removable, token_ranking
from engine.methods.input_x_gradient import input_x_gradient
from engine.methods.spans import drop_positions
from engine.models.scripted import ScriptedScorer, ScriptedWriter
from tests.tiny import KINDS, tiny_model, tiny_prompt


def keyword_model(word="KEY"):
    """Sure of the answer while `word` is in a passage, and one in ten otherwise."""
    return ScriptedScorer(lambda passages, words, t: 0.0 if word in "".join(passages.values()) else math.log(0.1))


def a_prompt(*texts):
    segments = [Segment(kind="passage", text=f" {text}", number=i) for i, text in enumerate(texts, start=1)]
    return Prompt(segments=(Segment(kind="instruction", text="Go."), *segments))


def scripted_case(word="KEY"):
    model = keyword_model(word)
    prompt = a_prompt("a KEY b c d", "e f g h i")
    answer = model.encode_answer("yes indeed")
    return model, model.encode(prompt), [t.id for t in answer.tokens], np.array([True, True])


def test_a_ranking_that_knows_the_key_word_by_hand():
    model, coded, ids, explained = scripted_case()
    positions = removable(coded)  # ten words, the key word second
    right = [positions[1], *(p for p in positions if p != positions[1])]
    found = Deletion(model, coded, ids, explained).curves({"right": right, "wrong": right[::-1]}, steps=10)
    assert found["right"].shares == pytest.approx([k / 10 for k in range(11)])
    assert found["right"].morf == pytest.approx([1.0] + [0.1] * 10)
    assert found["right"].lerf == pytest.approx([1.0] * 10 + [0.1])
    assert found["right"].abpc == pytest.approx((0.1 * (9 + 0.55)) - (0.1 * (0.55 + 0.9)))
    assert found["wrong"].abpc == pytest.approx(-found["right"].abpc)
    assert found["right"].abpc_nats > 0


def test_a_model_that_ignores_passages_has_flat_curves():
    model, coded, ids, explained = scripted_case("ABSENT")
    found = Deletion(model, coded, ids, explained).curves({"any": removable(coded)})
    assert found["any"].abpc == 0.0


def test_random_rankings_are_around_zero():
    model, coded, ids, explained = scripted_case()
    result = last(Deletion(model, coded, ids, explained).random_abpcs(Faithfulness(rankings=200)))
    assert abs(result.mean) < 4 * result.deviation / math.sqrt(200) + 1e-9
    assert result.n == 200
    assert -1 <= result.low <= result.high <= 1


def test_batches_are_equal_and_reach_everything():
    steps = batches(list(range(23)), 10)
    assert (len(steps), len(steps[0]), len(steps[-1])) == (11, 0, 23)
    sizes = [len(b) - len(a) for a, b in pairwise(steps)]
    assert set(sizes) <= {2, 3}
    assert len(batches([1, 2], 10)) == 3


def test_token_ranking_is_signed_with_ties_in_text_order():
    assert token_ranking([0.0, 2.0, -5.0, 2.0, 1.0], [1, 2, 3, 4]) == (1, 3, 4, 2)


def test_passage_ranking_keeps_text_order_inside_a_passage():
    model = keyword_model()
    coded = model.encode(a_prompt("a b", "c d", "e f"))
    first = [coded.passage_span(n)[0] for n in (1, 2, 3)]
    expected = [first[1], first[1] + 1, first[2], first[2] + 1, first[0], first[0] + 1]
    assert list(passage_ranking(coded, [0.0, 2.0, 1.0], [(1,), (2,), (3,)])) == expected


def test_passage_curve_removes_whole_passages():
    model, coded, ids, explained = scripted_case()
    result = Deletion(model, coded, ids, explained).passage_curves([5.0, 1.0])
    assert result.shares == (0.0, 0.5, 1.0)
    assert result.morf == pytest.approx((1.0, 0.1, 0.1))
    assert result.lerf == pytest.approx((1.0, 1.0, 0.1))


@pytest.mark.parametrize("kind", KINDS)
def test_curves_agree_with_scoring_each_shortened_prompt(kind):
    import torch

    model, prompt = tiny_model(kind), tiny_prompt(3)
    coded = model.encode(prompt)
    answer = annotate(model.encode_answer("Hanna Lind built it."), 3)
    ids = [t.id for t in answer.tokens]
    ranking = list(np.random.default_rng(0).permutation(removable(coded)))
    found = Deletion(model, coded, ids, np.ones(len(ids), dtype=bool)).curves({"r": ranking}, steps=4)["r"]
    for k, gone in enumerate(batches(ranking, 4)):
        row = [*(i for p, i in enumerate(coded.ids) if p not in gone), *ids]
        with torch.no_grad():
            logits = model.module(input_ids=torch.tensor([row])).logits[0, -len(ids) - 1 : -1]
        expected = logits.softmax(-1)[torch.arange(len(ids)), torch.tensor(ids)].mean().item()
        assert found.morf[k] == pytest.approx(expected, rel=1e-4)


def test_removing_ids_differs_from_masking_with_plain_positions():
    """The trap: a masked passage with positions that are not closed up is another quantity."""
    import torch

    model, prompt = tiny_model("llama"), tiny_prompt(3)
    coded = model.encode(prompt)
    ids = [t.id for t in model.encode_answer("Hanna Lind.").tokens]
    start, end = coded.passage_span(2)
    removed = model.score([drop_positions(coded, set(range(start, end)))], ids)[0]
    row = torch.tensor([[*coded.ids, *ids]])
    mask = torch.ones_like(row)
    mask[0, start:end] = 0

    def masked(positions):
        with torch.no_grad():
            logits = model.module(input_ids=row, attention_mask=mask, position_ids=positions).logits[0]
        picked = logits[-len(ids) - 1 : -1].log_softmax(-1)
        return picked[torch.arange(len(ids)), torch.tensor(ids)].numpy()

    closed_up = masked((mask.cumsum(-1) - 1).clamp(min=0))
    plain = masked(torch.arange(row.shape[1])[None])
    assert closed_up == pytest.approx(removed, abs=1e-3)
    assert np.abs(plain - removed).max() > 1e-2


def test_diagnostics_by_hand():
    model = keyword_model()
    coded = model.encode(a_prompt("a b"))  # Go. | a b
    result = diagnostics([1.0, -2.0, 4.0, 1.0], coded, target=8.0)
    assert result == {"conservation": 0.5, "first_token_share": 1 / 8, "density_ratio": 3.0}
    assert diagnostics([0.0, 0.0, 0.0], coded, 0.0)["conservation"] is None


def test_diagnostics_of_a_gradient_map():
    model, prompt = tiny_model("llama"), tiny_prompt(3)
    answer = annotate(model.encode_answer("Hanna Lind built it."), 3)
    result = input_x_gradient(model, prompt, answer)
    found = diagnostics(result.by_span[0], model.encode(prompt), sum(result.values))
    assert found["conservation"] == pytest.approx(sum(result.by_span[0]) / sum(result.values))
    assert 0 <= found["first_token_share"] <= 1


def test_refusals():
    model, coded, ids, explained = scripted_case()
    with pytest.raises(CannotDo):
        Deletion(ScriptedWriter(["x"]), coded, ids, explained).curves({"r": removable(coded)})
    with pytest.raises(AttributionError, match="no passage"):
        removable(model.encode(a_prompt()))
    broken = ScriptedScorer(lambda p, w, t: float("-inf"))
    broken.encode(a_prompt("a KEY b c d", "e f g h i"))
    broken.encode_answer("yes indeed")
    with pytest.raises(AttributionError, match="finite"):
        Deletion(broken, coded, ids, explained).curves({"r": removable(coded)})
