"""Tokenizers that put a space before everything they are given lose it inside a prompt."""

from __future__ import annotations

import json

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from engine.models.chat import TEMPLATE
from engine.models.huggingface import HuggingFaceModel, prefixless, without_prefix
from engine.models.self_test import self_test
from tests.tiny import TEXT, tiny_model, tiny_prompt

CHAT = "{{ bos_token }}{% for m in messages %}[INST] {{ m['content'] }} [/INST]{% endfor %}"


def sentencepiece_like(style: str) -> PreTrainedTokenizerFast:
    """A BPE that marks spaces with "▁" and adds one in front, by pre-tokenizer or by normalizer."""
    backend = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    if style == "metaspace":
        backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    else:
        backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    bytes_ = [f"<0x{i:02X}>" for i in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=384, special_tokens=["<unk>", "<s>", "</s>", *bytes_], show_progress=False)
    backend.train_from_iterator(TEXT, trainer)
    state = json.loads(backend.to_str())
    state["added_tokens"] = state["added_tokens"][:3]  # the bytes are tokens like any other, not special ones
    backend = Tokenizer.from_str(json.dumps(state))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>")
    tokenizer.chat_template = CHAT
    return tokenizer


@pytest.mark.parametrize("style", ["metaspace", "normalizer"])
def test_no_space_is_added_at_the_seams(style):
    tokenizer = sentencepiece_like(style)
    model = HuggingFaceModel("sp", tiny_model("llama").module, tokenizer)
    prompt = tiny_prompt(2)
    read = tokenizer.decode(list(model.encode(prompt).ids), skip_special_tokens=True)
    assert read == f"[INST] {prompt.text} [/INST]"


def test_without_the_copy_each_seam_would_gain_a_space():
    """The copy is needed: the plain tokenizer, piece by piece, does not spell the prompt."""
    tokenizer = sentencepiece_like("metaspace")
    ids = [i for text in ("a", "b") for i in tokenizer(text, add_special_tokens=False)["input_ids"]]
    assert tokenizer.decode(ids) == "a b"
    bare = prefixless(tokenizer)
    assert bare.decode([i for text in ("a", "b") for i in bare(text, add_special_tokens=False)["input_ids"]]) == "ab"
    assert tokenizer.decode(tokenizer("a", add_special_tokens=False)["input_ids"]) == "a"  # the original is untouched


def test_a_tokenizer_without_prefix_is_used_as_it_is():
    tokenizer = tiny_model("llama").tokenizer
    assert prefixless(tokenizer) is tokenizer


def test_states_by_hand():
    nested = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, {"type": "NFC"}]}
    assert without_prefix(nested) == {"type": "Sequence", "normalizers": [{"type": "NFC"}]}
    assert without_prefix({"type": "Prepend"}) is None
    assert without_prefix({"type": "ByteLevel", "add_prefix_space": True})["add_prefix_space"] is False
    assert without_prefix(None) is None


def test_removal_and_self_test_hold_for_them_too():
    model = HuggingFaceModel("sp", tiny_model("llama").module, sentencepiece_like("metaspace"))
    coded = model.encode(tiny_prompt(3))
    assert coded.without({2}).ids == model.encode(tiny_prompt(3).without({2})).ids
    assert coded.spans[0][0] == TEMPLATE
    assert [c.name for c in self_test(model) if not c.passed] == []
