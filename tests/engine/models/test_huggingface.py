"""Scoring and writing on a tiny random model of every shape, against the plainest way to compute the same."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from engine.core.errors import Cancelled, ModelError, PromptTooLong
from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.models.hooks import count_forwards
from engine.models.huggingface import HuggingFaceModel
from engine.models.protocols import LanguageModel
from engine.models.scoring import score_batch, score_rows
from tests.tiny import KINDS, WINDOW, tiny_config, tiny_model, tiny_prompt, tiny_tokenizer

ANSWER = "Hanna Lind built the bridge [cite_1]. 👩‍👧 naïve."


def brute_force(model, ids, answer) -> np.ndarray:
    """One plain forward over everything, no padding, no cache, every logit kept."""
    with torch.no_grad():
        logits = model.module(torch.tensor([[*ids, *answer]])).logits[0].double()
    rows = logits.log_softmax(-1)
    return np.array([rows[len(ids) - 1 + t, token].item() for t, token in enumerate(answer)])


@pytest.mark.parametrize("kind", KINDS)
def test_score_equals_brute_force_for_rows_of_many_lengths(kind):
    model = tiny_model(kind)
    coded = model.encode(tiny_prompt(5))
    rows = [coded, *(coded.without({n}) for n in range(1, 6)), coded.without({1, 2, 3, 4, 5})]
    answer = [t.id for t in model.encode_answer(ANSWER).tokens]
    scores = model.score(rows, answer)
    expected = np.stack([brute_force(model, row.ids, answer) for row in rows])
    assert scores.shape == (7, len(answer))
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    assert np.ptp(scores.sum(1)) > 0.1  # removal does change these models' scores


@pytest.mark.parametrize("kind", KINDS)
def test_generation_logprobs_equal_the_score(kind):
    model, prompt = tiny_model(kind), tiny_prompt(3)
    for decoding in (Decoding(max_new_tokens=24), Decoding(max_new_tokens=24, temperature=0.8, top_p=0.9)):
        answer = model.generate(prompt, decoding)
        own = [t.logprob for t in answer.tokens]
        scored = model.score([model.encode(prompt)], [t.id for t in answer.tokens])[0]
        np.testing.assert_allclose(own, scored, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_generation_equals_transformers_generate(kind):
    model, prompt = tiny_model(kind), tiny_prompt(2)
    coded = model.encode(prompt)
    theirs = model.module.generate(
        torch.tensor([coded.ids]), max_new_tokens=16, do_sample=False, attention_mask=torch.ones(1, len(coded.ids))
    )[0, len(coded.ids) :].tolist()
    ours = [t.id for t in model.generate(prompt, Decoding(max_new_tokens=16)).tokens]
    assert ours == [i for i in theirs if i not in model.stop_ids]


def test_scores_do_not_depend_on_the_batch_size():
    model = tiny_model("qwen3")
    coded = model.encode(tiny_prompt(4))
    rows = [coded.without({n}).ids for n in range(1, 5)]
    alone = np.concatenate([score_rows(model.module, [row], [5, 6, 7]) for row in rows])
    with count_forwards(model) as count:
        together = score_rows(model.module, rows, [5, 6, 7])
    assert (count.forwards, count.rows) == (1, 4)
    np.testing.assert_allclose(alone, together, rtol=1e-4)


def test_only_the_answers_positions_go_through_the_output_layer():
    model = tiny_model("llama")
    coded = model.encode(tiny_prompt(4))
    seen: list[tuple[int, ...]] = []
    handle = model.module.lm_head.register_forward_hook(lambda m, i, out: seen.append(tuple(out.shape[:2])))
    try:
        model.score([coded, coded.without({2}), coded.without({1, 2, 3})], [5, 6, 7])
    finally:
        handle.remove()
    assert seen == [(3, 3)]


@pytest.mark.parametrize("keeps", [True, False])
def test_a_model_whose_output_layer_cannot_be_hooked_scores_the_same(monkeypatch, keeps):
    """No output layer to be found, with and without `logits_to_keep`: positions are picked from the logits."""
    model = tiny_model("gpt2")
    coded = model.encode(tiny_prompt(4))
    rows = [coded.ids, coded.without({2}).ids]
    expected = score_rows(model.module, rows, [5, 6, 7])
    monkeypatch.setattr(model.module, "get_output_embeddings", lambda: None)
    monkeypatch.setattr(
        "engine.models.scoring.last_positions", lambda module, count: {"logits_to_keep": count} if keeps else {}
    )
    np.testing.assert_allclose(score_rows(model.module, rows, [5, 6, 7]), expected, rtol=1e-4)


def test_an_answer_of_no_tokens_scores_nothing():
    model = tiny_model("llama")
    assert model.score([model.encode(tiny_prompt(1))], []).shape == (1, 0)
    assert model.score([], [5]).shape == (0, 1)


def test_a_batch_that_does_not_fit_is_halved_and_said(monkeypatch):
    """Memory runs out above two rows: the scores are the same, and the watch hears of it."""
    model = tiny_model("llama")
    coded = model.encode(tiny_prompt(4))
    rows = [coded.without({n}).ids for n in range(1, 5)]
    expected = score_rows(model.module, rows, [5, 6])

    def refuse(_, arguments, named):
        if named["input_ids"].shape[0] > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")

    said: list[str] = []
    handle = model.module.register_forward_pre_hook(refuse, with_kwargs=True)
    try:
        scores = score_rows(model.module, rows, [5, 6], Watch(report=lambda stage, done, total: said.append(stage)))
    finally:
        handle.remove()
    np.testing.assert_allclose(scores, expected, rtol=1e-4)
    assert "scoring: out of memory with 4 prompts at once, continuing with 2" in said


def test_a_lone_row_that_does_not_fit_is_an_error_with_a_way_out():
    model = tiny_model("llama")

    def refuse(*_):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    handle = model.module.register_forward_pre_hook(refuse)
    try:
        with pytest.raises(ModelError, match="fewer or shorter passages"):
            score_rows(model.module, [[1, 2]], [5])
    finally:
        handle.remove()


def test_other_errors_of_the_model_are_not_taken_for_memory():
    with pytest.raises((IndexError, RuntimeError)):
        score_batch(tiny_model("llama").module, [[10_000]], [5])


def like(model, stop: frozenset[int]) -> HuggingFaceModel:
    """The same weights and tokenizer with other end tokens."""
    other = HuggingFaceModel("like", model.module, model.tokenizer)
    other.stop_ids = stop
    return other


def test_streaming_gives_the_text_so_far_and_never_half_a_character():
    model = like(tiny_model("llama"), frozenset())
    seen: list[str] = []
    answer = model.generate(tiny_prompt(2), Decoding(max_new_tokens=60, temperature=1.5, top_p=1.0), seen.append)
    ids = [t.id for t in answer.tokens]
    raw = [model.decode(ids[:n]) for n in range(1, 61)]
    assert any(text.endswith("�") for text in raw)  # these weights do write cut characters
    assert seen == [text.rstrip("�") for text in raw]
    assert answer.text == raw[-1]


def test_generation_stops_at_the_end_token():
    """A token of the model's own greedy text is made its end token: the text ends before it."""
    endless = like(tiny_model("llama"), frozenset())
    ids = [t.id for t in endless.generate(tiny_prompt(2), Decoding(max_new_tokens=12)).tokens]
    cut = next(i for i in range(3, 12) if ids[i] not in ids[:i])
    answer = like(tiny_model("llama"), frozenset({ids[cut]})).generate(tiny_prompt(2), Decoding(max_new_tokens=12))
    assert answer.finished
    assert [t.id for t in answer.tokens] == ids[:cut]


def test_stop_ids_join_tokenizer_and_generation_config():
    tokenizer = tiny_tokenizer()
    module = type(tiny_model("llama").module)(tiny_config("llama", len(tokenizer)))
    module.generation_config.eos_token_id = [4, 9]
    assert HuggingFaceModel("m", module, tokenizer).stop_ids == {2, 4, 9}


def test_seeds_are_reproducible_and_independent_of_other_threads():
    model = tiny_model("llama")
    hot = [Decoding(max_new_tokens=16, temperature=1.0, top_p=0.95, seed=s) for s in (1, 2, 3)]
    alone = [model.generate(tiny_prompt(2), d).text for d in hot]
    assert len(set(alone)) == 3
    together: dict[int, str] = {}
    threads = [
        threading.Thread(target=lambda d=d: together.update({d.seed: model.generate(tiny_prompt(2), d).text}))
        for d in hot
    ]
    before = torch.random.get_rng_state()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[d.seed] for d in hot] == alone
    assert torch.equal(before, torch.random.get_rng_state())  # the global random state is not touched


def test_cancel_between_tokens_keeps_what_was_streamed():
    model, watch = tiny_model("llama"), Watch()
    seen: list[str] = []

    def stop(text: str) -> None:
        seen.append(text)
        if len(seen) == 3:
            watch.cancel.set()

    with count_forwards(model) as count, pytest.raises(Cancelled):
        model.generate(tiny_prompt(2), Decoding(max_new_tokens=200), stop, watch)
    assert len(seen) == 3 and count.forwards == 3


@pytest.mark.parametrize("kind", ["llama", "gpt2", "lfm2"])
def test_cancel_inside_a_forward_leaves_at_the_next_layer(kind):
    """The first layer's own hook cancels; the second layer never runs."""
    model, watch = tiny_model(kind), Watch()
    from engine.models.hooks import layers_of

    first, second = layers_of(model.module)
    ran: list[str] = []
    handles = [
        first.register_forward_hook(lambda *_: watch.cancel.set()),
        second.register_forward_hook(lambda *_: ran.append("second")),
    ]
    try:
        with pytest.raises(Cancelled):
            model.score([model.encode(tiny_prompt(2))], [5, 6], watch)
        assert ran == []
        watch.cancel.clear()
    finally:
        for handle in handles:
            handle.remove()
    assert model.score([model.encode(tiny_prompt(2))], [5, 6], watch).shape == (1, 2)  # it works on afterwards


def test_waiting_for_a_busy_model_can_be_cancelled():
    model, watch, outcome = tiny_model("llama"), Watch(), []

    def wait() -> None:
        try:
            model.score([model.encode(tiny_prompt(1))], [5], watch)
        except Cancelled:
            outcome.append("cancelled")

    with model.hold():
        thread = threading.Thread(target=wait)
        thread.start()
        watch.cancel.set()
        thread.join()
    assert outcome == ["cancelled"]


def test_a_short_answer_is_written_between_the_rows_of_a_long_scoring():
    model = tiny_model("llama")
    prompts = [model.encode(tiny_prompt(5))] * 20  # more than a batch
    ids = [token.id for token in model.encode_answer(ANSWER).tokens]
    with ThreadPoolExecutor(1) as pool:
        rows = model.scores(prompts, ids)
        next(rows)
        written = pool.submit(model.generate, tiny_prompt(2), Decoding(max_new_tokens=4))
        assert written.result(timeout=60).tokens
        np.testing.assert_array_equal(list(rows)[-1], model.score(prompts, ids))


def test_a_model_is_had_in_the_order_of_asking():
    model, order, asked = tiny_model("llama"), [], threading.Event()

    def first() -> None:
        with model.hold(Watch(report=lambda *_: asked.set())):
            order.append("first")

    with ThreadPoolExecutor(1) as pool:
        with model.hold():
            waiting = pool.submit(first)
            assert asked.wait(timeout=60)
        with model.hold():
            order.append("second")
        waiting.result(timeout=60)
    assert order == ["first", "second"]


def test_a_prompt_over_the_window_is_refused_with_the_count_and_the_passages():
    model = tiny_model("llama")
    prompt = tiny_prompt(20)
    count = len(model.encode(prompt).ids)
    with pytest.raises(PromptTooLong, match=f"has {count} tokens.* accepts {WINDOW}") as caught:
        model.generate(prompt, Decoding(max_new_tokens=40))
    gone = tuple(map(int, str(caught.value).partition("without passages ")[2].rstrip(".").split(", ")))
    assert gone == tuple(range(gone[0], 21))
    model.generate(prompt.without(set(gone)), Decoding(max_new_tokens=1))
    assert len(model.encode(prompt.without(set(gone[1:]))).ids) + 40 > WINDOW
    with pytest.raises(PromptTooLong):
        model.score([model.encode(prompt)], [5])


def test_the_answer_ends_at_the_window_and_says_that_it_was_cut():
    model = tiny_model("gpt2")
    prompt = tiny_prompt(9)
    room = WINDOW - len(model.encode(prompt).ids)
    answer = model.generate(prompt, Decoding(max_new_tokens=512))
    assert 64 <= room < 512 and len(answer.tokens) == room and not answer.finished


def test_the_revision_follows_the_weights():
    assert tiny_model("llama").revision == HuggingFaceModel("x", tiny_model("llama").module, None).revision
    assert tiny_model("llama").revision != tiny_model("llama", seed=1).revision


def test_what_a_model_says_of_itself():
    model = tiny_model("gemma")
    assert isinstance(model, LanguageModel)
    assert (model.dtype, model.device, model.window) == ("float32", "cpu", WINDOW)
    assert model.template and not tiny_model("gpt2").template
    assert model.can.gradients and model.can.score
