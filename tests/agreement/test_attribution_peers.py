"""Our attributions against Captum's, on tiny models of every shape; float32, 1e-4 relative."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.answer.citations import annotate
from engine.methods.input_x_gradient import input_x_gradient
from engine.methods.integrated_gradients import ADDS_UP, integrated_gradients
from engine.methods.occlusion import occlusion
from tests.tiny import KINDS, tiny_model, tiny_prompt

TEXT = "Hanna Lind built the bridge [cite_1]. It was repaired in 1931 [cite_2]."


def a_case(kind, count=4):
    model = tiny_model(kind)
    return model, tiny_prompt(count), annotate(model.encode_answer(TEXT), count)


RELATIVE = 1e-4  # float32


def difference(ours, theirs):
    """Largest difference as a share of the largest value of the other side, which must not be all zeros."""
    ours, theirs = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    assert ours.shape == theirs.shape
    return np.abs(ours - theirs).max() / np.abs(theirs).max()


def row_ids(model, prompt, answer):
    return [*model.encode(prompt).ids, *(token.id for token in answer.tokens)]


@pytest.mark.parametrize("target", ["logit", "log_probability"])
@pytest.mark.parametrize("kind", KINDS)
def test_input_x_gradient_is_captums_layer_gradient_x_activation(kind, target):
    from captum.attr import LayerGradientXActivation

    model, prompt, answer = a_case(kind)
    ids = row_ids(model, prompt, answer)
    ours = input_x_gradient(model, prompt, answer, tokens=(0, 5), target=target)
    count = len(answer.tokens)

    def one(row, t):
        scores = model.module(input_ids=row).logits[:, len(ids) - count - 1 + t]
        return (scores.log_softmax(-1) if target == "log_probability" else scores)[:, ids[len(ids) - count + t]]

    embedding = model.module.get_input_embeddings()
    embedding.requires_grad_(True)
    try:
        for k, t in enumerate((0, 5)):
            method = LayerGradientXActivation(one, embedding)
            theirs = method.attribute(torch.tensor([ids[:-1]]), additional_forward_args=(t,)).detach().sum(-1)[0]
            assert difference(ours.by_token[k], theirs) <= RELATIVE
    finally:
        embedding.requires_grad_(False)


@pytest.mark.parametrize("kind", KINDS)
def test_occlusion_is_captums_feature_ablation_over_removed_ids(kind):
    from captum.attr import FeatureAblation

    model, prompt, answer = a_case(kind)
    answer_ids = [token.id for token in answer.tokens]
    mask = [not any(c.start < t.end and t.start < c.end for c in answer.citations) for t in answer.tokens]

    def score(present):
        """present: (1, passages), 1 where the passage stays."""
        kept = {number for number, flag in zip(prompt.numbers, present[0].tolist(), strict=True) if flag}
        ids = [*model.encode(prompt.keep(kept)).ids, *answer_ids]
        with torch.no_grad():
            logits = model.module(input_ids=torch.tensor([ids])).logits[0, -len(answer_ids) - 1 : -1]
        scores = logits.log_softmax(-1)[torch.arange(len(answer_ids)), torch.tensor(answer_ids)]
        return scores[torch.tensor(mask)].sum()[None]

    theirs = FeatureAblation(score).attribute(torch.ones(1, len(prompt.numbers)))[0]
    assert difference(occlusion(model, prompt, answer, floors=False).scores[0], theirs) <= RELATIVE


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_occlusion_is_captums_llm_attribution_without_forward_in_tokens(kind):
    """Captum's default (cached decoding) repeats the prompt under transformers 5 and is wrong; this mode is exact."""
    from captum.attr import FeatureAblation, LLMAttribution, TextTemplateInput

    model, prompt, answer = a_case(kind, 3)
    plain = PlainTokenizer(model)
    texts = [segment.text for segment in prompt.segments]
    places = [i for i, segment in enumerate(prompt.segments) if segment.kind == "passage"]
    template = "\x00".join(texts[: places[0]]) + "".join("\x00{}" for _ in places)
    template += "".join("\x00" + text for text in texts[places[-1] + 1 :])
    inputs = TextTemplateInput(template, [texts[i] for i in places], baselines=[""] * len(places))
    method = LLMAttribution(FeatureAblation(model.module), plain)
    result = method.attribute(
        inputs, target=torch.tensor([t.id for t in answer.tokens]), forward_in_tokens=False, skip_tokens=[]
    )
    ours = occlusion(PlainPrompt(model), prompt, answer, floors=False)
    assert difference(ours.details.with_markers[0], result.seq_attr.detach().numpy()) <= RELATIVE


class PlainTokenizer:
    """A tokenizer that encodes NUL-separated segments one by one, as our prompts are encoded, without a template."""

    def __init__(self, model):
        self.tokenizer = model.tokenizer
        self.model = model

    def encode(self, text, return_tensors=None, **_):
        ids = [i for part in text.split("\x00") for i in self.tokenizer(part, add_special_tokens=False)["input_ids"]]
        return torch.tensor([ids]) if return_tensors else ids

    def __call__(self, text, return_tensors=None, **options):
        if options.get("return_offsets_mapping"):  # for the labels of the result
            return self.tokenizer(text, return_tensors=return_tensors, **options)
        return {"input_ids": self.encode(text, return_tensors)}

    def __getattr__(self, name):
        return getattr(self.tokenizer, name)


class PlainPrompt:
    """The model with prompts encoded without its chat template."""

    def __init__(self, model):
        self.model = model

    def encode(self, prompt):
        from engine.models.protocols import TokenPrompt

        ids, spans, numbers = [], [], []
        for index, segment in enumerate(prompt.segments):
            new = self.model.tokenizer(segment.text, add_special_tokens=False)["input_ids"]
            spans.append((index, len(ids), len(ids) + len(new)))
            numbers.append(segment.number)
            ids.extend(new)
        return TokenPrompt(ids=tuple(ids), spans=tuple(spans), numbers=tuple(numbers))

    def __getattr__(self, name):
        return getattr(self.model, name)


@pytest.mark.parametrize("kind", KINDS)
def test_integrated_gradients_is_a_gauss_legendre_sum_done_by_hand(kind):
    model, prompt, answer = a_case(kind, 2)
    ids = row_ids(model, prompt, answer)
    count, steps = len(answer.tokens), 8
    content = [not any(c.start < t.end and t.start < c.end for c in answer.citations) for t in answer.tokens]
    embeddings = model.module.get_input_embeddings()(torch.tensor([ids[:-1]])).detach()
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    total = torch.zeros_like(embeddings)
    for node, weight in zip(nodes, weights, strict=True):
        point = (embeddings * (node + 1) / 2).requires_grad_(True)
        logits = model.module(inputs_embeds=point, use_cache=False).logits[0, -count:]
        target = logits[torch.arange(count), torch.tensor(ids[-count:])][torch.tensor(content)].sum()
        total += weight / 2 * torch.autograd.grad(target, point)[0]
    theirs = (total * embeddings).sum(-1)[0]
    ours = integrated_gradients(model, prompt, answer, steps=steps)
    assert difference(ours.by_span[0], theirs) <= RELATIVE


def test_integrated_gradients_reports_delta_and_more_steps_shrink_it():
    model, prompt, answer = a_case("gpt2", 2)
    few, many = (integrated_gradients(model, prompt, answer, steps=steps) for steps in (2, 64))
    assert many.delta < few.delta
    for found in (few, many):
        assert found.notes[0].startswith("The values add up") == (found.delta <= ADDS_UP)
        assert f"{found.delta:.0%} with {found.steps:.0f} steps" in found.notes[0]
    assert many.delta < 0.2
