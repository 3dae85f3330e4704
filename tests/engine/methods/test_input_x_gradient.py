"""Input x gradient: sums, finite differences, aggregation, refusals. Captum's side is in tests/agreement."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.core.errors import AttributionError, CannotDo, PromptTooLong
from engine.methods.aggregate import passage_attribution, passage_places, passage_sums
from engine.methods.input_x_gradient import answer_logits, embed, input_x_gradient, inputs_of, target_values
from engine.methods.spans import content_mask, passage_positions
from engine.models.hooks import count_forwards
from engine.models.huggingface import HuggingFaceModel
from engine.models.scripted import ScriptedScorer, reads
from tests.tiny import ANSWER, KINDS, passages, tiny_answer, tiny_model, tiny_prompt


@pytest.mark.parametrize("target", ["logit", "log_probability"])
def test_tokens_add_up_to_sentences_and_sentences_to_the_answer(target):
    model, prompt = tiny_model("qwen3"), tiny_prompt(4)
    answer = tiny_answer(model)
    spans = [(0, len(ANSWER)), *answer.sentences]
    everything = range(len(answer.tokens))
    result = input_x_gradient(model, prompt, answer, spans=spans, tokens=everything, target=target)
    by_span, by_token = np.array(result.by_span), np.array(result.by_token)
    content = [not any(c.start < t.end and t.start < c.end for c in answer.citations) for t in answer.tokens]
    scale = np.abs(by_token).max()
    assert by_token[content].sum(axis=0) == pytest.approx(by_span[0], rel=1e-4, abs=1e-5 * scale)
    assert by_span[1:].sum(axis=0) == pytest.approx(by_span[0], rel=1e-4, abs=1e-5 * scale)
    assert (result.forwards, result.backwards) == (1, len(spans) + len(answer.tokens))


@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_finite_differences_in_double_precision(kind):
    float_model, prompt = tiny_model(kind), tiny_prompt(2)
    answer = tiny_answer(float_model, "Hanna Lind.")
    result = input_x_gradient(float_model, prompt, answer, target="log_probability")
    module = double(kind)
    ids = [*float_model.encode(prompt).ids, *(t.id for t in answer.tokens)]
    embeddings = module.get_input_embeddings()(torch.tensor([ids[:-1]])).detach()
    row = np.array(result.by_span[0])
    for position in np.argsort(-np.abs(row))[:4]:
        slope = finite_difference(module, embeddings, position, ids, len(answer.tokens))
        assert row[position] == pytest.approx(slope, rel=2e-3, abs=1e-4 * np.abs(row).max())


def double(kind):
    """The same weights in float64."""
    model = tiny_model(kind)
    module = type(model.module)(model.module.config).double().eval()
    module.load_state_dict(model.module.state_dict())
    return module


def finite_difference(module, embeddings, position, ids, count, step=0.01):
    """d total / d s at s = 0, where the embedding at `position` is scaled by 1 + s: its relevance.

    Two central differences, extrapolated: models compute their norms in float32, so that steps cannot be small.
    """

    def total(scale):
        moved = embeddings.clone()
        moved[:, position] *= 1 + scale
        with torch.no_grad():
            logits = module(inputs_embeds=moved, use_cache=False).logits[0, -count:]
        return logits.log_softmax(-1)[torch.arange(count), torch.tensor(ids[-count:])].sum().item()

    wide, narrow = ((total(h) - total(-h)) / (2 * h) for h in (step, step / 2))
    return (4 * narrow - wide) / 3


def test_targets_are_the_logits_of_a_plain_forward_and_the_argmax_is_shown():
    model, prompt = tiny_model("llama"), tiny_prompt(3)
    answer = tiny_answer(model)
    result = input_x_gradient(model, prompt, answer)
    ids = [*model.encode(prompt).ids, *(t.id for t in answer.tokens)]
    with torch.no_grad():
        logits = model.module(input_ids=torch.tensor([ids])).logits[0, -len(answer.tokens) - 1 : -1]
    expected = logits[torch.arange(len(answer.tokens)), torch.tensor([t.id for t in answer.tokens])]
    assert result.values == pytest.approx(expected.tolist(), rel=1e-4, abs=1e-4)
    assert list(result.argmax) == logits.argmax(-1).tolist()
    assert len(result.by_span[0]) == len(ids) - 1


def test_the_whole_answer_is_one_forward_and_leaves_no_gradient_in_the_model():
    model = tiny_model("llama")
    with count_forwards(model) as count:
        result = input_x_gradient(model, tiny_prompt(3), tiny_answer(model))
    assert (count.forwards, result.forwards, result.backwards) == (1, 1, 1)
    assert all(p.grad is None and not p.requires_grad for p in model.module.parameters())


def test_citation_markers_are_left_out_unless_asked_for():
    model, prompt = tiny_model("gpt2"), tiny_prompt(2)
    answer = tiny_answer(model)
    without = np.array(input_x_gradient(model, prompt, answer).by_span[0])
    with_them = np.array(input_x_gradient(model, prompt, answer, count_citation_markers=True).by_span[0])
    assert np.abs(with_them - without).max() > 1e-3 * np.abs(without).max()


def test_works_in_bfloat16_and_stays_near_float32():
    model = tiny_model("llama")
    module = type(model.module)(model.module.config).to(torch.bfloat16)
    module.load_state_dict(model.module.state_dict())
    half = HuggingFaceModel("half", module, model.tokenizer)
    coarse = np.array(input_x_gradient(half, tiny_prompt(3), tiny_answer(model)).by_span[0])
    fine = np.array(input_x_gradient(model, tiny_prompt(3), tiny_answer(model)).by_span[0])
    assert np.corrcoef(coarse, fine)[0, 1] > 0.98


@pytest.mark.parametrize("kind", KINDS)
def test_the_tokens_of_a_passage_have_its_sum(kind):
    model, prompt = tiny_model(kind), tiny_prompt(5)
    result = input_x_gradient(model, prompt, tiny_answer(model))
    coded = model.encode(prompt)
    sums = passage_sums(result.by_span, coded, [(n,) for n in prompt.numbers])[0]
    for (*_, tokens), total in zip(passage_places(model, prompt, coded), sums, strict=True):
        own = [result.by_span[0][token.position] for token in tokens]
        assert sum(own) == pytest.approx(total, abs=1e-9 * sum(map(abs, own)))


def test_passages_and_the_rest_add_up_to_all_inputs():
    model, prompt = tiny_model("lfm2"), tiny_prompt(4)
    result = input_x_gradient(model, prompt, tiny_answer(model), tokens=(0, 3))
    attribution = passage_attribution(result, model.encode(prompt))
    assert attribution.sources == ((1,), (2,), (3,), (4,))
    assert np.array(attribution.per_token).shape == (2, 4)
    total = sum(attribution.scores[0]) + attribution.details.elsewhere[0]
    assert total == pytest.approx(sum(result.by_span[0]), rel=1e-9)
    assert attribution.unit == "logit"


def test_passage_positions_are_exactly_the_passages_tokens():
    model, prompt = tiny_model("llama"), tiny_prompt(3)
    coded = model.encode(prompt)
    where = sorted(passage_positions(coded, [2]))
    assert passages(3)[1].text in model.decode([coded.ids[i] for i in where])


def test_refusals():
    model = tiny_model("llama")
    scorer = ScriptedScorer(reads({1}))
    with pytest.raises(CannotDo):
        input_x_gradient(scorer, tiny_prompt(1), tiny_answer(scorer))
    with pytest.raises(AttributionError, match="content tokens"):
        input_x_gradient(model, tiny_prompt(1), tiny_answer(model, "[cite_1]"))
    with pytest.raises(PromptTooLong):
        input_x_gradient(model, tiny_prompt(40), tiny_answer(model))


def test_logits_that_are_not_finite_are_refused():
    model = tiny_model("llama")
    module = type(model.module)(model.module.config)
    module.load_state_dict(model.module.state_dict())
    with torch.no_grad():
        module.model.norm.weight.fill_(float("inf"))
    broken = HuggingFaceModel("broken", module, model.tokenizer)
    with pytest.raises(AttributionError, match="finite"):
        input_x_gradient(broken, tiny_prompt(2), tiny_answer(model))


def test_the_gradient_norm_is_the_squared_length_of_each_gradient():
    """By brute force: a backward of the same sum on the same embeddings."""
    model = tiny_model("llama")
    prompt, answer = tiny_prompt(3), tiny_answer(model)
    found = input_x_gradient(model, prompt, answer, form="norm", target="log_probability")
    inputs = inputs_of(model, prompt, answer)
    embeddings = embed(model.module, inputs.row).requires_grad_(True)
    logits = answer_logits(model.module, embeddings, inputs)[0]
    total = target_values(logits, inputs.answer, "log_probability")[torch.as_tensor(content_mask(answer))].sum()
    (gradient,) = torch.autograd.grad(total, embeddings)
    assert np.array(found.by_span[0]) == pytest.approx(gradient[0].square().sum(-1).numpy(), rel=1e-4, abs=1e-9)
    assert (found.method, found.target) == ("gradient norm", "squared gradient of the log_probability")
    assert min(found.by_span[0]) >= 0
