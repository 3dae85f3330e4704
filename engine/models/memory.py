"""How much memory a model takes, from its config alone, before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "8bit": 1.0, "4bit": 0.5}


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes, by what takes them; `parameters` is a count."""

    parameters: int
    weights: int
    cache: int
    activations: int

    @property
    def total(self) -> int:
        """All of it, in bytes."""
        return self.weights + self.cache + self.activations


def memory_estimate(config: Any, dtype: str = "float32", prompt_tokens: int = 4096, batch: int = 1) -> MemoryEstimate:
    """What a model of this transformers config takes with `batch` prompts of `prompt_tokens` tokens.

    Parameters are counted on a model without storage: exact. The cache is keys and values of every layer;
    activations are one layer's and the logits of 256 answer positions, an upper estimate.
    """
    parameters = count_parameters(config)
    size = BYTES[dtype]
    return MemoryEstimate(
        parameters=parameters,
        weights=int(parameters * size),
        cache=int(batch * prompt_tokens * cache_values(config) * (2.0 if size <= 2 else size)),
        activations=batch * row_bytes(config, prompt_tokens, 256),
    )


def count_parameters(config: Any) -> int:
    """Number of parameters of the causal model of `config`, tied ones once."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        module = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    return sum(parameter.numel() for parameter in module.parameters())


def cache_values(config: Any) -> int:
    """Numbers a token adds to the key-value cache, all layers."""
    config = config.get_text_config()
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    pairs = getattr(config, "num_key_value_heads", None) or heads
    return int(2 * config.num_hidden_layers * pairs * width)


def row_bytes(config: Any, tokens: int, answer: int) -> int:
    """Bytes of one row's activations in a forward without gradients: one layer's, and float32 logits twice."""
    config = config.get_text_config()
    wide = getattr(config, "intermediate_size", None) or getattr(config, "n_inner", None) or 4 * config.hidden_size
    return int(4 * tokens * (8 * config.hidden_size + 3 * int(wide)) + 12 * answer * config.vocab_size)


def free_memory(device: str) -> int:
    """Free bytes on `device` ("cpu", "cuda", "mps")."""
    import psutil
    import torch

    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0])
    return int(psutil.virtual_memory().available)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception of torch or numpy says that memory ran out."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text
