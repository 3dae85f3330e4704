"""A tiny language model that copies: a word of the answer is the likelier the more often the prompt has it.

A Llama of one layer with weights set by hand. Its head attends to every position alike and writes the share of each
token in the text so far; the logit of a token is `GAIN` times its share. A passage that holds the answer's words
therefore raises the answer's log-probability, by occlusion as by gradients. Nothing is random, nothing is trained.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.tiny import TURNS, tiny_tokenizer

if TYPE_CHECKING:
    from engine.models.huggingface import HuggingFaceModel

VOCABULARY = 512
WINDOW = 16_384
GAIN = 40.0  # nats between a token that is the whole text and one that is not in it


def planted_module() -> Any:
    """The weights: dimensions [0, V) hold the token at a position, [V, 2V) the shares that the head writes."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=2 * VOCABULARY,
        intermediate_size=1,
        num_hidden_layers=1,
        num_attention_heads=1,
        head_dim=VOCABULARY,
        max_position_embeddings=WINDOW,
        rms_norm_eps=1e-6,
        tie_word_embeddings=False,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    module = LlamaForCausalLM(config)
    layer, one, scale = module.model.layers[0], torch.eye(VOCABULARY), (2 * VOCABULARY) ** 0.5
    weights = {
        module.model.embed_tokens.weight: torch.cat([one, 0 * one], dim=1),  # unit vectors, which the norm scales
        layer.self_attn.v_proj.weight: torch.cat([one, 0 * one], dim=1) / scale,
        layer.self_attn.o_proj.weight: torch.cat([0 * one, one], dim=0),
        module.lm_head.weight: torch.cat([0 * one, GAIN * one], dim=1) / scale,
    }
    with torch.no_grad():
        for parameter in (*layer.self_attn.parameters(), *layer.mlp.parameters()):
            parameter.zero_()  # attention without queries and keys is alike everywhere
        for parameter, values in weights.items():
            parameter.copy_(values)
    return module


@cache
def planted_model() -> HuggingFaceModel:
    """The model, float32 on the CPU; the same object each time."""
    from engine.models.huggingface import HuggingFaceModel

    return HuggingFaceModel("planted", planted_module(), tiny_tokenizer(template=TURNS, vocabulary=VOCABULARY))


def save_planted(folder: Path) -> Path:
    """`folder` with the model in it: a name for `load_writer`, or one of the data folder's `models`."""
    planted_model().module.save_pretrained(folder)
    planted_model().tokenizer.save_pretrained(folder)
    return folder
