"""The self-test passes on sound models of every shape and fails on each thing that can be broken."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.core.errors import Cancelled
from engine.core.progress import Watch
from engine.models.huggingface import HuggingFaceModel
from engine.models.protocols import TokenPrompt
from engine.models.scripted import ScriptedScorer, ScriptedWriter, reads
from engine.models.self_test import SelfTestCheck, self_test
from tests.tiny import KINDS, tiny_model

NAMES = [
    "chat template round trip",
    "byte-exact segments",
    "removal equals re-tokenised removal",
    "score equals generation's log-probabilities",
    "batch row equals lone row",
    "long batch row equals lone row",
    "gradients finite",
]


def failed(model) -> list[str]:
    return [check.name for check in self_test(model) if not check.passed]


@pytest.mark.parametrize("kind", KINDS)
def test_every_shape_passes(kind):
    checks = self_test(tiny_model(kind))
    assert [check.name for check in checks] == NAMES
    assert [check for check in checks if not check.passed] == []
    assert all(SelfTestCheck.from_dict(check.to_dict()) == check for check in checks)


class Broken(HuggingFaceModel):
    """A sound tiny model with one method spoilt by a subclass."""

    def __init__(self):
        super().__init__("broken", tiny_model("llama").module, tiny_model("llama").tokenizer)


def test_a_prompt_that_is_tokenised_whole_fails():
    class Whole(Broken):
        """Merges over the seams: the ids of a passage depend on its neighbour."""

        def encode(self, prompt):
            coded = super().encode(prompt)
            ids = self._ids(self.tokenizer.decode(list(coded.ids)), special=True, first=True)
            spans = tuple((s, min(a, len(ids)), min(b, len(ids))) for s, a, b in coded.spans)
            return TokenPrompt(ids=tuple(ids), spans=spans, numbers=coded.numbers)

    assert {"byte-exact segments", "removal equals re-tokenised removal"} <= set(failed(Whole()))


def test_a_prompt_that_lost_a_piece_of_its_template_fails():
    class Bare(Broken):
        def encode(self, prompt):
            coded = super().encode(prompt)
            first = coded.spans[1][1]
            spans = tuple((s, a - first, b - first) for s, a, b in coded.spans[1:])
            return TokenPrompt(ids=coded.ids[first:], spans=spans, numbers=coded.numbers[1:])

    assert failed(Bare()) == ["chat template round trip"]


def test_scores_that_are_off_by_one_position_fail():
    class Shifted(Broken):
        def score(self, prompts, answer_ids, watch=Watch()):
            return np.roll(super().score(prompts, answer_ids, watch), 1, axis=1)

    assert failed(Shifted()) == ["score equals generation's log-probabilities"]


def test_rows_that_lean_on_their_batch_fail():
    class Leaning(Broken):
        def score(self, prompts, answer_ids, watch=Watch()):
            return super().score(prompts, answer_ids, watch) + 0.01 * (len(prompts) - 1)

    assert failed(Leaning()) == ["batch row equals lone row", "long batch row equals lone row"]


def test_the_long_prompt_is_one_whose_beginning_is_read_once():
    from engine.models.scoring import worth_reusing

    class Watching(Broken):
        reused = False

        def score(self, prompts, answer_ids, watch=Watch()):
            self.reused |= worth_reusing(self.module, [prompt.ids for prompt in prompts])
            return super().score(prompts, answer_ids, watch)

    model = Watching()
    assert failed(model) == [] and model.reused


def test_a_window_without_room_for_the_long_prompt_leaves_that_check_out():
    class Short(Broken):
        window = 280

    assert "long batch row equals lone row" not in [check.name for check in self_test(Short())]


def test_gradients_that_are_not_finite_fail():
    model = Broken()
    handle = model.module.model.embed_tokens.register_forward_hook(lambda m, i, out: out * float("nan"))
    try:
        assert "gradients finite" in failed(model)
    finally:
        handle.remove()


def test_a_check_that_raises_is_a_failure_with_its_reason():
    class Raising(Broken):
        def score(self, prompts, answer_ids, watch=Watch()):
            raise RuntimeError("no kernel")

    check = next(c for c in self_test(Raising()) if not c.passed)
    assert check.detail == "RuntimeError: no kernel"


def test_half_precision_is_held_to_its_own_limit():
    import copy

    module = copy.deepcopy(tiny_model("qwen3").module).to(torch.bfloat16)
    checks = self_test(HuggingFaceModel("half", module, tiny_model("qwen3").tokenizer))
    assert all(check.passed for check in checks)
    assert "(limit 0.5)" in next(c for c in checks if "generation" in c.name).detail


@pytest.mark.slow
def test_the_embedded_model_passes_the_test(embedded_model):
    assert failed(embedded_model) == []


def test_a_self_test_that_is_stopped_makes_no_further_check():
    watch = Watch()
    watch.cancel.set()
    with pytest.raises(Cancelled, match="chat template"):
        self_test(tiny_model("llama"), watch)


def test_what_a_model_does_not_offer_is_said_and_no_failure():
    checks = self_test(ScriptedWriter(lambda asked: "Hanna Lind."))
    assert [check.name for check in checks] == ["writes text", "not offered"]
    assert "gradients: not offered" in checks[1].detail
    scorer = ScriptedScorer(reads({1}), lambda asked: "Hanna Lind.")
    assert failed(scorer) == []


def test_a_writer_that_writes_nothing_fails():
    assert failed(ScriptedWriter(lambda asked: " ")) == ["writes text"]
