"""The embedded language model's shape: a new one with random weights, and how it is saved and read again.

transformers' Lfm2ForCausalLM, short convolution and attention layers alternating: the convolution gives the
previous-token feature that copying needs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import Lfm2Config, Lfm2ForCausalLM, PreTrainedTokenizerFast

from engine.train.tokenizer import load_tokenizer


@dataclass(frozen=True)
class Shape:
    """The model's size; the default has about 4.5 million parameters."""

    vocabulary: int = 2048
    width: int = 256
    inner: int = 512
    layers: int = 6
    heads: int = 8


def new_model(shape: Shape, seed: int = 1) -> Lfm2ForCausalLM:
    """A model with random weights."""
    torch.manual_seed(seed)
    kinds = ["conv" if i % 2 == 0 else "full_attention" for i in range(shape.layers)]
    return Lfm2ForCausalLM(
        Lfm2Config(
            vocab_size=shape.vocabulary,
            hidden_size=shape.width,
            intermediate_size=shape.inner,
            block_auto_adjust_ff_dim=False,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.heads,
            layer_types=kinds,
            conv_L_cache=3,
            max_position_embeddings=16_384,
            rope_parameters={"rope_type": "default", "rope_theta": 100_000.0},
            tie_word_embeddings=True,
            bos_token_id=0,
            eos_token_id=1,
            pad_token_id=2,
        )
    )


def save(model: Lfm2ForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path, log: dict[str, Any]) -> None:
    """Write bf16 safetensors, tokenizer and training log so that AutoModelForCausalLM loads the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {n: p.detach().to(torch.bfloat16) for n, p in model.state_dict().items()}
    copy = Lfm2ForCausalLM(model.config).bfloat16()
    copy.load_state_dict(weights)
    copy.set_attn_implementation("sdpa")
    copy.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "training.json").write_text(json.dumps(log, indent=1) + "\n", encoding="utf-8")


def load(folder: Path) -> tuple[Lfm2ForCausalLM, PreTrainedTokenizerFast]:
    """Weights (as float32, for training) and tokenizer of a saved folder."""
    return Lfm2ForCausalLM.from_pretrained(folder, dtype=torch.float32), load_tokenizer(folder)
