"""Attention knockout: against one masked pass over the whole text, what it costs, and who cannot."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.core.values import Prompt
from engine.methods.occlusion import ask
from engine.models.hooks import count_forwards
from tests.tiny import tiny_answer, tiny_model, tiny_prompt


def asked_of(model, passages=5):
    return ask(model.encode(tiny_prompt(passages)), tiny_answer(model), count_citation_markers=False)


@torch.no_grad()
def by_hand(module, ids, removed, answer):
    """One pass over prompt and answer, in which no position after the last source sees `removed`."""
    whole, first = [*ids, *answer[:-1]], 1 + max(max(positions) for positions in removed)
    rows = []
    for positions in [frozenset(), *removed]:
        seen = torch.ones(len(whole), len(whole), dtype=torch.bool).tril()
        seen[first:, sorted(positions)] = False
        mask = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)
        logits = module(input_ids=torch.tensor([whole]), attention_mask=mask[None, None]).logits[0]
        chosen = logits[len(ids) - 1 :].log_softmax(-1)
        rows.append(chosen.gather(-1, torch.tensor(answer)[:, None])[:, 0].numpy())
    return np.stack(rows)


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "gpt2"])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_it_equals_one_masked_pass_over_the_whole_text(kind, attention):
    model = tiny_model(kind)
    asked = asked_of(model)
    before = model.module.config._attn_implementation
    model.module.set_attn_implementation(attention)
    try:
        found = model.score_knocked_out(asked.prompt, asked.removed, asked.ids)
        expected = by_hand(model.module, asked.prompt.ids, asked.removed, asked.ids)
    finally:
        model.module.set_attn_implementation(before)
    assert found == pytest.approx(expected, abs=1e-4)
    assert found[0] == pytest.approx(model.score([asked.prompt], asked.ids)[0], abs=1e-4)
    assert (np.abs(found[1:] - found[0]).max(axis=1) > 1e-3).all()  # every mask changes something


def test_sources_share_passes_up_to_the_prompts_length():
    model = tiny_model("llama")
    asked = asked_of(model, passages=9)
    tail = len(asked.prompt.ids) - 1 - max(map(max, asked.removed)) + len(asked.ids) - 1
    with count_forwards(model) as count:
        model.score_knocked_out(asked.prompt, asked.removed, asked.ids)
    together = len(asked.prompt.ids) // tail
    assert 1 < together < 9
    assert count.forwards == 1 + -(-9 // together)


@pytest.mark.parametrize("answer", ["Green", "Hanna Lind built the bridge."])
def test_a_prompt_that_ends_in_a_source_is_left_to_others(answer):
    model = tiny_model("gpt2")  # has no template, which would come after the last passage
    prompt = tiny_prompt(3)
    passages = tuple(segment for segment in prompt.segments if segment.kind == "passage")
    asked = ask(model.encode(Prompt(passages)), model.encode_answer(answer), count_citation_markers=False)
    assert max(map(max, asked.removed)) == len(asked.prompt.ids) - 1
    assert model.score_knocked_out(asked.prompt, asked.removed, asked.ids) is None


@pytest.mark.parametrize("kind", ["gemma", "mistral", "lfm2"])
def test_windows_and_convolutions_take_no_such_mask(kind):
    asked = asked_of(tiny_model(kind))
    assert tiny_model(kind).score_knocked_out(asked.prompt, asked.removed, asked.ids) is None
