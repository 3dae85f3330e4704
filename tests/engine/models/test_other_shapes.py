"""The self-test over more architectures: experts, alibi, learned positions, state spaces, linear attention."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.core.settings import Decoding
from engine.models.huggingface import HuggingFaceModel
from engine.models.self_test import self_test
from tests.tiny import TURNS, WINDOW, tiny_prompt, tiny_tokenizer, written_together

pytestmark = pytest.mark.slow

VOCABULARY = len(tiny_tokenizer())
PLAIN: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "initializer_range": 0.3,
    "max_position_embeddings": WINDOW,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = PLAIN | {"num_key_value_heads": 2}
STATES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "state_size": 8,
    "initializer_range": 0.3,
}
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "gemma3": (
        "Gemma3TextConfig",
        GROUPED
        | {
            "head_dim": 8,
            "query_pre_attn_scalar": 8,
            "sliding_window": 32,
            "layer_types": ["sliding_attention", "full_attention"],
        },
    ),
    "mixtral": ("MixtralConfig", GROUPED | {"num_local_experts": 4}),
    "phi3": ("Phi3Config", GROUPED),
    "gpt_neox": ("GPTNeoXConfig", PLAIN),
    "bloom": (
        "BloomConfig",
        {"vocab_size": VOCABULARY, "hidden_size": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.3},
    ),
    "opt": ("OPTConfig", PLAIN | {"ffn_dim": 64, "init_std": 0.3, "word_embed_proj_dim": 32}),
    "cohere": ("CohereConfig", GROUPED),
    "granite": ("GraniteConfig", GROUPED | {"logits_scaling": 4.0}),
    "mamba": ("MambaConfig", STATES),
    "mamba2": ("Mamba2Config", STATES | {"num_heads": 8, "head_dim": 8, "n_groups": 1}),
    "falcon_h1": (
        "FalconH1Config",
        GROUPED | {"mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 8},
    ),
    "qwen3_next": (
        "Qwen3NextConfig",
        GROUPED
        | {
            "head_dim": 8,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 16,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
            "layer_types": ["linear_attention", "full_attention"],
        },
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_self_test_passes_and_answers_written_together_are_those_alone(shape):
    import transformers

    name, values = SHAPES[shape]
    if not hasattr(transformers, name):
        pytest.skip(f"this transformers has no {name}")
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = getattr(transformers, name)(**values)
        module = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model = HuggingFaceModel(shape, module, tiny_tokenizer(template=TURNS))
    assert [check for check in self_test(model) if not check.passed] == []
    prompts = [tiny_prompt(count) for count in (0, 3, 6)]
    each = [Decoding(max_new_tokens=6 + i, temperature=0.7 * (i % 2)) for i in range(3)]
    alone = [model.generate(prompt, decoding).text for prompt, decoding in zip(prompts, each, strict=True)]
    assert model.writes_together(True) == (shape not in ("mamba", "mamba2"))
    if model.writes_together(True):
        assert [answer.text for answer in written_together(model, prompts, each)] == alone
