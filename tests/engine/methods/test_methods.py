"""The registry, attention, agreement between methods, used x supports, floors, spans."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch

from engine.answer.prompt import passage_body
from engine.core.errors import AttributionError, InputError
from engine.core.progress import Watch
from engine.core.settings import Settings
from engine.core.values import Answer, Attribution, Token
from engine.methods.aggregate import places
from engine.methods.attention import value_weighted_attention
from engine.methods.faithfulness import agreement
from engine.methods.input_x_gradient import inputs_of
from engine.methods.occlusion import cut_to_words, numerical_floor, occlusion, placebo_prompts
from engine.methods.registry import Method, built_in, method, methods, register, unregister
from engine.methods.spans import content_mask, first_content_tokens, span_mask, touched
from engine.methods.used_supports import quadrant, used_supports
from engine.models.huggingface import HuggingFaceModel
from engine.models.scripted import ScriptedScorer, reads
from tests.tiny import ANSWER, KINDS, passages, tiny_answer, tiny_config, tiny_model, tiny_prompt


@pytest.mark.parametrize("kind", KINDS)
def test_value_weighted_attention_is_a_plain_forward_with_all_weights(kind):
    model, prompt = tiny_model(kind), tiny_prompt(1)
    answer = tiny_answer(model, "Hanna Lind.")
    implementation = model.module.config._attn_implementation
    ours = np.array(value_weighted_attention(model, prompt, answer).by_span[0])
    assert model.module.config._attn_implementation == implementation
    inputs = inputs_of(model, prompt, answer)
    expected = whole_attention(model.module, inputs.row)[inputs.first :].sum(axis=0)
    assert ours == pytest.approx(expected, rel=1e-3, abs=1e-4 * expected.max())
    assert ours.min() >= 0


def whole_attention(module, row):
    """Attention x value norm summed over layers and heads, (inputs, inputs), values caught by hooks."""
    values = []

    def keep(layer, _, output):
        values.append(output)

    names = ("v_proj", "c_attn")
    handles = [m.register_forward_hook(keep) for n, m in module.named_modules() if n.rsplit(".")[-1] in names]
    before = module.config._attn_implementation
    module.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            out = module(input_ids=torch.tensor([list(row)]), output_attentions=True, use_cache=False)
    finally:
        module.set_attn_implementation(before)
        for handle in handles:
            handle.remove()
    total = np.zeros((len(row), len(row)))
    for weight, value in zip([w for w in out.attentions if w is not None], values, strict=True):
        heads = weight.shape[1]
        value = value[0][:, -value.shape[-1] // 3 :] if value.shape[-1] == 96 else value[0]
        norms = value.reshape(len(row), -1, 8).norm(dim=-1).T
        norms = norms.repeat_interleave(heads // norms.shape[0], dim=0)
        total += (weight[0] * norms[:, None]).sum(0).numpy()
    return total


@pytest.mark.parametrize("method", built_in(Settings()), ids=lambda m: m.name)
def test_every_method_scores_the_same_passages_for_the_same_spans(method):
    model, prompt = tiny_model("qwen2"), tiny_prompt(3)
    answer = tiny_answer(model)
    result = method.attribute(model, prompt, answer, [(0, len(ANSWER)), *answer.sentences], Watch())
    assert result.sources == ((1,), (2,), (3,))
    assert np.array(result.scores).shape == (3, 3)
    assert result.unit == method.unit
    if method.name != "gradient norm":  # the length of a sum of gradients is no sum of their lengths
        assert np.array(result.scores)[1:].sum(axis=0) == pytest.approx(result.scores[0], rel=1e-3)


def test_a_third_party_method_is_one_more_row():
    def longest(model, prompt, answer, spans, watch):
        lengths = tuple(float(len(s.text)) for s in prompt.segments if s.kind == "passage")
        return Attribution(
            method="longest", model=model.name, unit="characters", spans=tuple(spans),
            sources=tuple((n,) for n in prompt.numbers), scores=(lengths,) * len(spans), per_token=(),
        )  # fmt: skip

    register(Method("longest", longest, "characters"))
    try:
        assert methods()[-1].name == "longest"
        model = tiny_model("llama")
        found = method("longest").attribute(model, tiny_prompt(2), tiny_answer(model), [(0, 5)], Watch())
        assert len(found.scores[0]) == 2
        with pytest.raises(InputError, match="already"):
            register(Method("longest", longest, "characters"))
    finally:
        unregister("longest")
    with pytest.raises(InputError, match="occlusion"):
        method("longest")


def attribution(scores, sources=((1,), (2,), (3,))):
    return Attribution(
        method="m", model="s", unit="nats", spans=((0, 5),), sources=sources, scores=(tuple(scores),), per_token=()
    )


def test_agreement_of_every_pair():
    rows = agreement({"a": attribution((1, 2, 3)), "b": attribution((2, 4, 9)), "c": attribution((1, -1, -2))})
    assert [(r.first, r.second) for r in rows] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert (rows[0].rho, rows[0].signs, rows[0].same_top) == (pytest.approx(1.0), 1.0, True)
    assert (rows[1].rho, rows[1].signs, rows[1].same_top) == (pytest.approx(-1.0), pytest.approx(1 / 3), False)
    with pytest.raises(AttributionError):
        agreement({"a": attribution((1, 2, 3)), "b": attribution((1, 2, 3), ((1,), (2,), (4,)))})


class WordVerifier:
    """Entails if the evidence contains the first word of the claim."""

    name = "words"

    def entailment(self, pairs, watch=None):
        return np.array([float(claim.split()[0].lower() in evidence.lower()) for claim, evidence in pairs])


def test_used_and_supporting_are_told_apart():
    model = ScriptedScorer(reads({2, 3}))
    prompt = tiny_prompt(3)
    answer = tiny_answer(model, "Hanna built it. Crystals form.")
    result = occlusion(model, prompt, answer, spans=answer.sentences, placebos=["a b c"] * 5)
    texts = {n: p.text for n, p in enumerate(passages(3), start=1)}
    matrix = used_supports(result, answer, texts, WordVerifier())
    assert [[cell.quadrant for cell in row] for row in matrix.cells] == [
        ["supported but not used", "used but not supporting", "used but not supporting"],
        ["neither", "used but not supporting", "used and supporting"],
    ]
    assert matrix.floor_kind == "placebo"
    assert (matrix.scorer, matrix.verifier) == ("scripted-scorer", "words")
    with pytest.raises(AttributionError, match="nats"):
        used_supports(Attribution.from_dict({**result.to_dict(), "unit": "logit"}), answer, texts, WordVerifier())


def test_an_effect_at_the_floor_is_not_used():
    assert quadrant(0.2, 0.2, 0.9) == "supported but not used"
    assert quadrant(0.21, 0.2, 0.5) == "used but not supporting"


def test_placebos_are_cut_to_the_median_length_and_get_a_free_number():
    prompt = tiny_prompt(3)
    bodies = [passage_body(s)[1] for s in prompt.segments if s.kind == "passage"]
    assert bodies == [p.text for p in passages(3)]
    changed = placebo_prompts(prompt, ["one two three four five six seven eight nine ten eleven"] * 3, seed=1)
    for other in changed:
        assert other.without({4}) == prompt
        body = next(passage_body(s)[1] for s in other.segments if s.number == 4)
        assert body == "one two three four five six seven"
    assert len({other.numbers for other in placebo_prompts(prompt, ["x"] * 12, seed=1)}) > 1
    assert cut_to_words("a, b. c", 2) == "a, b"


def half(kind="llama"):
    model = tiny_model(kind)
    module = type(model.module)(model.module.config).to(torch.bfloat16)
    module.load_state_dict(model.module.state_dict())
    return HuggingFaceModel(f"{kind} in bfloat16", module, model.tokenizer)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "gemma"])
def test_bfloat16_scores_are_within_a_few_floors_of_the_same_weights_in_float32(kind):
    coarse = half(kind)
    fine = HuggingFaceModel(kind, deepcopy(coarse.module).float(), coarse.tokenizer)
    prompt, answer = tiny_prompt(4), tiny_answer(coarse)
    ours = occlusion(coarse, prompt, answer)
    exact = occlusion(fine, prompt, answer)
    rounding = np.abs(np.array(ours.scores) - exact.scores).max()
    assert ours.numerical_floor > 0
    assert rounding <= 4 * ours.numerical_floor
    assert exact.numerical_floor < 1e-3 < ours.numerical_floor


def test_a_floor_of_zero_in_bfloat16_is_said_to_be_none():
    """Gemma's attention is eager as it is: there is no second order of sums to hold it against."""
    model = half("gemma")
    result = occlusion(model, tiny_prompt(4), tiny_answer(model))
    assert result.numerical_floor == 0.0
    assert any("The floor shows no rounding" in note for note in result.notes)


@pytest.mark.parametrize(("width", "layers", "count"), [(64, 2, 4), (96, 3, 8), (160, 3, 8), (256, 4, 4)])
def test_bfloat16_in_a_batch_is_within_rounding_of_each_row_alone(width, layers, count):
    """Answers of 30 tokens: totals move by at most about 0.05 nats; scores themselves are 15 to 40 nats."""
    model, prompt = wide(width, layers), tiny_prompt(count)
    answer = tiny_answer(model)
    result = occlusion(model, prompt, answer)
    coded, ids = model.encode(prompt), [t.id for t in answer.tokens]
    rows = [coded, *(coded.without({n}) for n in prompt.numbers)]
    alone = np.concatenate([model.score([row], ids) for row in rows])[:, content_mask(answer)].sum(axis=1)
    difference = np.abs(alone[0] - alone[1:] - np.array(result.scores[0])).max()
    assert difference <= max(2 * result.numerical_floor, 0.2)
    assert np.abs(result.scores[0]).max() > 5


def wide(width, layers):
    """A random Llama in bfloat16: width 32 is too narrow for batching to change how products are summed."""
    from transformers import AutoModelForCausalLM

    base = tiny_model("llama")
    config = tiny_config("llama", len(base.tokenizer))
    config.hidden_size, config.intermediate_size, config.num_hidden_layers = width, 2 * width, layers
    config.head_dim, config.max_position_embeddings = width // 4, 1024
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = AutoModelForCausalLM.from_config(config).to(torch.bfloat16)
    return HuggingFaceModel(f"llama {width}", module, base.tokenizer)


def test_two_equal_rows_in_one_batch_are_no_floor():
    """The trap: they differ by exactly 0 in bfloat16 whatever batching does to both."""
    model = half()
    answer = tiny_answer(model)
    ids = [t.id for t in answer.tokens]
    coded = model.encode(tiny_prompt(4))
    rows = [coded, coded, coded.without({1})]
    scored = model.score(rows, ids)
    assert (scored[0] == scored[1]).all()
    masks = content_mask(answer)[None]
    assert numerical_floor(model, rows, scored + 0.25, ids, masks)[0] == pytest.approx(0.25 * masks.sum(), rel=0.2)


def test_content_tokens_leave_markers_out_and_spans_partition_the_answer():
    for kind in KINDS:
        model = tiny_model(kind)
        answer = tiny_answer(model)
        masks = np.array([span_mask(answer, span) for span in ((0, 12), (12, 40), (40, len(ANSWER)))])
        assert (masks.sum(axis=0) == 1).all()
        text = "".join(ANSWER[answer.tokens[t].start : answer.tokens[t].end] for t in first_content_tokens(answer, 99))
        assert "cite" not in text


def test_a_span_touches_whole_tokens():
    places = ((0, 3), (3, 9), (9, 10), (10, 14), (14, 19))
    answer = Answer(text="Ice melts. [1]\n\nNow", tokens=tuple(Token(id=0, start=s, end=e) for s, e in places))
    content = np.array([True, True, True, False, True])
    assert [touched(answer, span, content) for span in ((1, 2), (5, 6), (2, 5), (0, 10))] == [
        (0, 3), (4, 9), (0, 9), (0, 10),
    ]  # fmt: skip
    assert [touched(answer, span, content) for span in ((3, 4), (11, 12), (10, 11))] == [None] * 3


def test_tokens_that_cannot_be_placed_in_the_text_are_refused():
    class Misaligned:
        name = "misaligned"

        def __init__(self, model):
            self.model = model

        def encode_answer(self, text):
            return self.model.encode_answer(text[::-1])

    model, prompt = tiny_model("llama"), tiny_prompt(2)
    with pytest.raises(AttributionError, match="cannot be located"):
        places(Misaligned(model), prompt, model.encode(prompt), 1)
