"""Tiny GGUF files of the Llama and Qwen2 shapes, written from the random models of tests/tiny.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.tiny import WINDOW, tiny_model

PARTS = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write_gguf(
    path: Path, kind: str = "llama", *, quantization: str = "Q8_0", architecture: str = "", without: str = ""
) -> Path:
    """The tiny model of `kind` ("llama" or "qwen2") as a GGUF file; `without` leaves a tensor out."""
    from gguf import GGUFWriter

    writer = GGUFWriter(path, architecture or kind)
    model = tiny_model(kind)
    config = model.module.config
    writer.add_context_length(WINDOW)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    _add_tokenizer(writer, model.tokenizer)
    for name, values in gguf_tensors(kind).items():
        if name != without:
            _add_tensor(writer, name, values, quantization)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def gguf_tensors(kind: str) -> dict[str, np.ndarray]:
    """The tiny model's weights under GGUF's names, as llama.cpp orders their rows."""
    module = tiny_model(kind).module
    heads, pairs = module.config.num_attention_heads, module.config.num_key_value_heads
    tensors = {}
    for name, tensor in module.state_dict().items():
        values = tensor.float().numpy()
        if name == "lm_head.weight" and module.config.tie_word_embeddings:
            continue
        if kind == "llama" and ("q_proj" in name or "k_proj" in name):
            values = _interleave(values, heads if "q_proj" in name else pairs)
        tensors[_gguf_name(name)] = values
    return tensors


def _gguf_name(name: str) -> str:
    whole = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    if name in whole or name == "lm_head.weight":
        return whole.get(name, "output.weight")
    _, _, layer, rest = name.split(".", 3)
    part, _, kind = rest.rpartition(".")
    return f"blk.{layer}.{PARTS[part]}.{kind}"


def _interleave(values: np.ndarray, heads: int) -> np.ndarray:
    """llama.cpp's order of rotary rows: halves of a head interleaved (convert_hf_to_gguf.py, permute)."""
    shape = values.shape
    return values.reshape(heads, 2, shape[0] // heads // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def stored(values: np.ndarray, quantization: str) -> np.ndarray:
    """A tensor as a GGUF reader returns it: matrices quantized and dequantized, vectors unchanged."""
    from gguf import GGMLQuantizationType, dequantize, quantize

    kind = GGMLQuantizationType[quantization if values.ndim == 2 else "F32"]
    return dequantize(quantize(values, kind), kind)


def _add_tensor(writer: Any, name: str, values: np.ndarray, quantization: str) -> None:
    from gguf import GGMLQuantizationType, quantize
    from gguf.quants import quant_shape_to_byte_shape

    kind = GGMLQuantizationType[quantization if values.ndim == 2 else "F32"]
    try:
        data = quantize(values, kind)
    except NotImplementedError:  # a kind that the package only knows by name
        data = np.zeros(quant_shape_to_byte_shape(values.shape, kind), np.uint8)
    writer.add_tensor(name, data, raw_dtype=kind)


def _add_tokenizer(writer: Any, tokenizer: Any) -> None:
    from gguf import TokenType

    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    tokens = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    special = set(tokenizer.all_special_tokens)
    merges = [m if isinstance(m, str) else " ".join(m) for m in backend["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([TokenType.CONTROL if token in special else TokenType.NORMAL for token in tokens])
    writer.add_token_merges(merges)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    if tokenizer.bos_token_id is not None:
        writer.add_bos_token_id(tokenizer.bos_token_id)
    if tokenizer.chat_template:
        writer.add_chat_template(tokenizer.chat_template)
