"""Answers written together are those written one by one: every shape, greedy and sampled, and what guards it."""

from __future__ import annotations

import copy
import time

import pytest
import torch
from transformers import AutoModelForCausalLM, MambaConfig

from engine.core.errors import Cancelled, ModelError
from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.core.values import Prompt, Segment
from engine.models.batching import FLOOR, Batch, pads_exactly
from engine.models.hooks import count_forwards
from engine.models.huggingface import HuggingFaceModel
from engine.models.offsets import common_length
from engine.models.writing import choose, choose_clearly, nucleus
from tests.tiny import KINDS, tiny_config, tiny_model, tiny_prompt, tiny_tokenizer, written_together

GREEDY = Decoding(max_new_tokens=24)
SAMPLED = Decoding(max_new_tokens=24, temperature=0.8, top_p=0.9)


def same(model, prompts, each, together):
    """Each answer is the one of `generate`, its log-probabilities to the floor."""
    for prompt, decoding, answer in zip(prompts, each, together, strict=True):
        alone = model.generate(prompt, decoding)
        assert (answer.text, answer.finished) == (alone.text, alone.finished)
        assert [(t.id, t.start, t.end) for t in answer.tokens] == [(t.id, t.start, t.end) for t in alone.tokens]
        assert [t.logprob for t in answer.tokens] == pytest.approx([t.logprob for t in alone.tokens], abs=FLOOR)


def ended(model, stop) -> HuggingFaceModel:
    """The same weights and tokenizer with other end tokens."""
    other = HuggingFaceModel("ended", model.module, model.tokenizer)
    other.stop_ids = frozenset(stop)
    return other


def heard():
    """A watch, and the stages that it hears of."""
    said: list[str] = []
    return Watch(report=lambda stage, done, total: said.append(stage)), said


@pytest.mark.parametrize("kind", KINDS)
def test_answers_written_together_are_those_written_alone(kind):
    """Prompts of 0 to 9 passages, longer than a sliding window; greedy and sampled rows with limits of their own."""
    model, prompts = tiny_model(kind), [tiny_prompt(count) for count in (0, 1, 2, 5, 9)]
    assert pads_exactly(model.module)
    each = [Decoding(max_new_tokens=4 + 2 * i, temperature=0.4 * (i % 3), seed=i) for i in range(5)]
    same(model, prompts, each, written_together(model, prompts, each))


@pytest.mark.parametrize("decoding", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_rows_end_where_their_end_token_comes(decoding):
    model, prompts = tiny_model("lfm2"), [tiny_prompt(count) for count in range(6)]
    written = [[t.id for t in model.generate(prompt, decoding).tokens] for prompt in prompts]
    places = {i: [ids.index(i) if i in ids else len(ids) for ids in written] for row in written for i in row}
    stopping = ended(model, {max(places, key=lambda i: len(set(places[i])))})
    together = written_together(stopping, prompts, [decoding] * 6)
    assert len({len(answer.tokens) for answer in together}) > 2
    same(stopping, prompts, [decoding] * 6, together)


def test_a_forward_writes_a_token_of_every_row_and_of_none_that_ended():
    model, prompts = tiny_model("llama"), [tiny_prompt(count) for count in (1, 2, 3)]
    each = [Decoding(max_new_tokens=limit) for limit in (2, 5, 3)]
    watch, said = heard()
    assert model.writes_together(True)  # measured once a model, before the count
    with count_forwards(model) as count:
        written_together(model, prompts, each, watch)
    assert set(said) == {"writing"}, "no choice was close"
    assert (count.forwards, count.rows) == (3 + 4, 3 + 3 + 2 + 1 + 1), "a forward reads each prompt, a forward a token"


def test_a_choice_too_close_is_made_alone():
    """Two tokens with the same output row always tie: which one a batch takes could hang on the last bit."""
    module = copy.deepcopy(tiny_model("llama").module)
    model = HuggingFaceModel("tied", module, tiny_model("llama").tokenizer)
    prompts = [tiny_prompt(count) for count in range(4)]
    favourite = model.generate(prompts[2], GREEDY).tokens[3].id
    module.lm_head.weight.data[favourite - 1] = module.lm_head.weight.data[favourite]
    waiting = iter([model.request(prompt, GREEDY) for prompt in prompts])
    assert any(one.answer is None for one in model.write_stream(lambda: next(waiting, None), 4, exact=True))
    waiting = iter([model.request(prompt, GREEDY) for prompt in prompts])
    assert all(one.answer for one in model.write_stream(lambda: next(waiting, None), 4, exact=False))
    same(model, prompts, [GREEDY] * 4, written_together(model, prompts, [GREEDY] * 4))


def test_prompts_are_read_without_padding():
    """A bias before the convolution would make padding differ from nothing, were any read."""
    config = tiny_config("lfm2", len(tiny_tokenizer()))
    config.conv_bias = True
    model, prompts = of_config("biased", config), [tiny_prompt(count) for count in range(3)]
    model.module.model.layers[0].conv.in_proj.bias.data.normal_(generator=torch.Generator().manual_seed(1))
    assert model.writes_together(True)
    same(model, prompts, [GREEDY] * 3, written_together(model, prompts, [GREEDY] * 3))


def test_a_model_whose_cache_cannot_be_joined_writes_one_by_one():
    """A state space keeps no keys and values."""
    config = MambaConfig(vocab_size=len(tiny_tokenizer()), hidden_size=32, num_hidden_layers=2, state_size=8)
    model = of_config("states", config)
    assert not model.writes_together(False)


def of_config(name, config) -> HuggingFaceModel:
    """A random model of a config."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    return HuggingFaceModel(name, module, tiny_tokenizer())


def test_it_stops_between_two_tokens():
    model, seen = tiny_model("llama"), []
    assert model.writes_together(True)

    def report(stage, done, total):
        seen.append((stage, done, total))
        if len(seen) == 4:
            watch.cancel.set()

    watch = Watch(report=report)
    with count_forwards(model) as count, pytest.raises(Cancelled):
        written_together(model, [tiny_prompt(1), tiny_prompt(2)], [Decoding(max_new_tokens=2), GREEDY], watch)
    assert count.forwards == 3 and seen[-1] == ("writing", 1, 2)


def test_a_batch_that_does_not_fit_is_halved_and_said():
    model, prompts = tiny_model("llama"), [tiny_prompt(count) for count in range(4)]
    assert model.writes_together(True)

    def refuse(_, arguments, named):
        if named["input_ids"].shape[0] > most:
            raise torch.OutOfMemoryError("CUDA out of memory")

    (watch, said), most = heard(), 2
    handle = model.module.register_forward_pre_hook(refuse, with_kwargs=True)
    try:
        together = written_together(model, prompts, [SAMPLED] * 4, watch)
        most = 0
        with pytest.raises(ModelError, match="fewer or shorter passages"):
            written_together(model, prompts, [SAMPLED] * 4)
    finally:
        handle.remove()
    assert "writing: out of memory with 4 prompts at once, continuing with 2" in said
    same(model, prompts, [SAMPLED] * 4, together)


def test_a_device_without_memory_says_nothing_of_the_model():
    """Memory may be free later: the model is measured again, and not taken for one that cannot batch."""
    model, full = tiny_model("llama"), [True]

    def refuse(*_):
        if full[0]:
            raise torch.OutOfMemoryError("CUDA out of memory")

    handle = model.module.register_forward_pre_hook(refuse)
    try:
        with pytest.raises(ModelError, match="out of memory for three short prompts"):
            pads_exactly(model.module)
        full[0] = False
        assert pads_exactly(model.module)
    finally:
        handle.remove()


def test_nothing_asked_and_nothing_to_be_written():
    model = tiny_model("llama")
    assert written_together(model, [], []) == []
    none, some = written_together(model, [tiny_prompt(1)] * 2, [Decoding(max_new_tokens=0), GREEDY])
    assert none.text == "" and some.text == model.generate(tiny_prompt(1), GREEDY).text


@pytest.mark.parametrize("kind", KINDS)
def test_rows_come_and_go_while_others_are_written(kind):
    """Two at a time, long and short ones in turn: each place is taken anew, and the cache shrinks with its rows."""
    model, prompts = tiny_model(kind), [tiny_prompt(count) for count in (9, 0, 5, 1, 7, 2)]
    each = [Decoding(max_new_tokens=3 + 5 * (i % 3), temperature=0.5 * (i % 2), seed=i) for i in range(6)]
    same(model, prompts, each, written_together(model, prompts, each, rows=2))


def test_the_cache_holds_no_more_than_its_rows_need():
    """A long prompt that ended leaves its columns."""
    model, long, short = tiny_model("llama"), tiny_prompt(9), tiny_prompt(0)
    requests = [model.request(long, Decoding(max_new_tokens=2)), model.request(short, GREEDY)]
    batch, waiting = Batch(model.module, model.stop_ids, 4, exact=True), iter(requests)
    seen = []
    while not seen or not batch.is_empty:
        batch.advance(lambda: next(waiting, None), Watch())
        if not batch.is_empty:
            seen.append(batch._state.mask.shape[1])
    assert seen[0] == len(requests[0].ids) + 1 and seen[1] == len(requests[1].ids) + 2


def test_the_beginning_that_prompts_share_is_read_once():
    model, prompts = tiny_model("llama"), [prompt_about(word) for word in ("iron", "gold", "lead")]
    ids = [model.request(prompt, GREEDY).ids for prompt in prompts]
    with count_forwards(model) as count:
        together = written_together(model, prompts, [Decoding(max_new_tokens=1)] * 3)
    shared = common_length(ids[0], ids[1])
    assert count.tokens < sum(map(len, ids)) - shared and 2 * shared > len(ids[0])
    same(model, prompts, [Decoding(max_new_tokens=1)] * 3, together)


def prompt_about(word) -> Prompt:
    """A long instruction with a short question."""
    return Prompt(
        segments=(
            Segment(kind="instruction", text="Say in a few words what is known, and what is not, of a metal. " * 2),
            Segment(kind="question", text=word),
        )
    )


def test_memory_that_runs_out_once_costs_half_of_the_rows_for_a_while():
    model, prompts = tiny_model("llama"), [tiny_prompt(count % 3) for count in range(12)]
    each, sizes = [Decoding(max_new_tokens=2 + i % 4) for i in range(12)], []

    def refuse(_, arguments, named):
        sizes.append(named["input_ids"].shape[0])
        if sizes.count(4) == 1 and sizes[-1] == 4:
            raise torch.OutOfMemoryError("CUDA out of memory")

    handle = model.module.register_forward_pre_hook(refuse, with_kwargs=True)
    try:
        together = written_together(model, prompts, each, rows=4)
    finally:
        handle.remove()
    first = sizes.index(4)
    assert max(sizes[first + 1 : first + 4]) <= 2 and 4 in sizes[first + 1 :]
    same(model, prompts, each, together)


def test_each_row_is_counted_its_share_of_the_seconds():
    model, prompts = tiny_model("llama"), [tiny_prompt(count) for count in range(6)]
    waiting = iter([model.request(prompt, GREEDY) for prompt in prompts])
    start = time.perf_counter()
    written = list(model.write_stream(lambda: next(waiting, None), 3, exact=True))
    assert 0 < sum(one.seconds for one in written) <= time.perf_counter() - start


def test_keys_that_turn_with_the_length_of_the_text_are_not_shared():
    config = tiny_config("llama", len(tiny_tokenizer()))
    config.rope_parameters = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    assert not of_config("turning", config).writes_together(exact=False)


@pytest.mark.parametrize("kept", [1, 3])
def test_the_output_layer_gets_plain_strides_and_the_same_values(kept):
    seen, module = [], copy.deepcopy(tiny_model("llama").module).to(torch.bfloat16)
    model = HuggingFaceModel("half", module, tiny_tokenizer())
    head = model.module.get_output_embeddings()
    handle = head.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    bare = copy.deepcopy(model.module)
    bare.get_output_embeddings()._forward_pre_hooks.clear()
    ids = torch.tensor([model.request(tiny_prompt(2), GREEDY).ids])
    with torch.no_grad():
        logits = model.module(input_ids=ids, logits_to_keep=kept).logits
        assert torch.equal(logits, bare(input_ids=ids, logits_to_keep=kept).logits)
    handle.remove()
    width = seen[0].shape[-1]
    assert seen[0].stride() == (kept * width, width, 1)


def test_half_precision_keeps_close_choices_only_if_asked():
    module = copy.deepcopy(tiny_model("llama").module).to(torch.bfloat16)
    model = HuggingFaceModel("half", module, tiny_tokenizer())
    assert model.writes_together(exact=False) and not model.writes_together(exact=True)


def test_a_draw_is_the_one_of_torch_multinomial():
    """The same numbers from the same generator: seeds mean what they always meant."""
    for seed in range(200):
        logits = 3 * torch.randn(50, generator=torch.Generator().manual_seed(seed))
        ours, theirs = (torch.Generator().manual_seed(1000 + seed) for _ in range(2))
        kept = nucleus((logits.double() / SAMPLED.temperature).softmax(-1), SAMPLED.top_p)
        assert choose(logits, SAMPLED, ours) == int(torch.multinomial(kept, 1, generator=theirs))
        assert torch.equal(ours.get_state(), theirs.get_state())


@pytest.mark.parametrize("decoding", [Decoding(), SAMPLED, Decoding(temperature=1.5, top_p=0.3)], ids=str)
def test_a_clear_choice_stands_whatever_the_logits_do_within_the_floor(decoding):
    """Each logit moves by half the floor at most, so that a difference moves by the floor."""
    floor, turned = 0.1, {True: 0, False: 0}
    for seed in range(60):
        noise = torch.Generator().manual_seed(seed)
        logits = 2 * torch.randn(12, generator=noise)
        token, clear = choose_clearly(logits, decoding, torch.Generator().manual_seed(seed), floor)
        for _ in range(12):
            moved = logits + floor * (torch.randint(0, 2, (12,), generator=noise) - 0.5)
            turned[clear] += choose(moved, decoding, torch.Generator().manual_seed(seed)) != token
    assert turned[True] == 0 and turned[False] > 0
