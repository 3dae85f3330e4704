"""Reading a shared beginning once: equal to scoring every row whole, on every model shape."""

from __future__ import annotations

import numpy as np
import pytest

from engine.core.progress import last
from engine.models.hooks import count_forwards
from engine.models.scoring import score_rows, scores_from_prefix, shared, worth_reusing
from tests.stopping import before_the_stop, stop_at
from tests.tiny import KINDS, tiny_model, tiny_prompt


def a_case(kind, count=5):
    model, prompt = tiny_model(kind), tiny_prompt(count)
    rows = [model.encode(prompt.without(gone)).ids for gone in (set(), *({n} for n in prompt.numbers))]
    return model, rows, [t.id for t in model.encode_answer("Hanna Lind built it [cite_1].").tokens]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_from_the_shared_beginning_equal_whole_rows(kind):
    model, rows, answer = a_case(kind)
    rows.append(rows[0])
    found = last(scores_from_prefix(model.module, rows, answer))
    assert found == pytest.approx(score_rows(model.module, rows, answer), rel=1e-4, abs=1e-4)


def test_a_convolution_is_continued_at_every_place_of_the_row():
    model, rows, answer = a_case("lfm2", 2)
    rows = [rows[0], *(rows[0][:cut] + rows[0][cut + 1 :] for cut in range(1, len(rows[0]) - 1, 7))]
    found = last(scores_from_prefix(model.module, rows, answer))
    assert found == pytest.approx(score_rows(model.module, rows, answer), rel=1e-4, abs=1e-4)
    assert np.abs(found[1:] - found[0]).max(axis=1).min() > 1e-4


def test_a_row_costs_what_follows_the_removed_passage():
    model, rows, answer = a_case("llama")
    with count_forwards(model) as count:
        last(scores_from_prefix(model.module, rows, answer))
    expected = sum(len(row) - length for row, length in zip(rows, shared(rows), strict=True))
    assert count.tokens == expected + len(rows) * (len(answer) - 1)
    assert count.tokens < 0.75 * sum(len(row) + len(answer) for row in rows)


def test_without_memory_for_the_cache_the_rows_are_left_to_the_plain_path():
    model, rows, answer = a_case("llama")

    def out_of_memory(*_):
        raise MemoryError

    handle = model.module.register_forward_pre_hook(out_of_memory)
    try:
        assert list(scores_from_prefix(model.module, rows, answer)) == []
    finally:
        handle.remove()


def test_shared_leaves_the_last_token_to_be_read():
    assert shared([(1, 2, 3), (1, 2), (1, 5, 3), (1, 2, 3)]) == [0, 1, 1, 2]


def test_short_or_unlike_rows_take_the_plain_path():
    module = tiny_model("llama").module
    long = tuple(range(300))
    assert worth_reusing(module, [long, long[:200] + long[220:]])
    assert not worth_reusing(module, [long])
    assert not worth_reusing(module, [long[:50], long[:40]])
    assert not worth_reusing(module, [long, long[::-1]])


def test_the_model_uses_it_and_stays_exact():
    model, _, answer = a_case("qwen2")
    prompts = [model.encode(tiny_prompt(10).without({n} if n else set())) for n in range(11)]
    assert worth_reusing(model.module, [p.ids for p in prompts])
    plain = score_rows(model.module, [p.ids for p in prompts], answer)
    assert model.score(prompts, answer) == pytest.approx(plain, rel=1e-4, abs=1e-4)


def test_a_stopped_run_has_told_what_was_scored():
    model, rows, answer = a_case("llama")
    scores = before_the_stop(scores_from_prefix(model.module, rows, answer, stop_at(3)))[-1]
    assert np.isfinite(scores).all(axis=1).tolist() == [True] * 3 + [False] * 3
