"""Loading from a folder, the memory estimate, and refusals with a way out. The network is never asked."""

from __future__ import annotations

import pytest
import torch

from engine.core.errors import ModelError, ModelNotFound
from engine.core.hosts import is_offline
from engine.core.settings import Decoding
from engine.models.huggingface import HuggingFaceModel
from engine.models.loading import estimate, pick_device, pick_dtype
from engine.models.memory import PROMPT_TOKENS, cache_values, is_out_of_memory, memory_estimate
from tests.tiny import KINDS, tiny_config, tiny_model, tiny_prompt


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def save(model, folder, **options):
    model.module.save_pretrained(folder, **options)
    model.tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", ["llama", "gemma", "gpt2", "lfm2"])
def test_a_saved_model_comes_back_the_same(kind, tmp_path):
    model = tiny_model(kind)
    again = HuggingFaceModel.load(save(model, tmp_path), device="cpu")
    assert again.revision == model.revision
    assert again.encode(tiny_prompt(2, system=True)) == model.encode(tiny_prompt(2, system=True))
    short = Decoding(max_new_tokens=8)
    assert again.generate(tiny_prompt(2), short).text == model.generate(tiny_prompt(2), short).text


def test_a_model_that_cannot_fit_is_refused_before_its_weights_are_read(tmp_path):
    """The config of a model of 10 trillion parameters, without weights."""
    huge = tiny_config("llama", 384)
    huge.hidden_size, huge.intermediate_size, huge.num_hidden_layers = 200_000, 800_000, 20
    huge.save_pretrained(tmp_path)
    tiny_model("llama").tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"needs \d+\.\d GB for its weights in bfloat16.*Choose a smaller model"):
        HuggingFaceModel.load(tmp_path, dtype="bfloat16", device="cpu")
    assert estimate(tmp_path).weights > 10**13


def test_dtype_and_name_are_as_asked(tmp_path):
    folder = save(tiny_model("llama"), tmp_path)
    model = HuggingFaceModel.load(folder, dtype="bfloat16", device="cpu", called="mine")
    assert (model.dtype, model.name) == ("bfloat16", "mine")
    with pytest.raises(ModelError, match="no dtype 'float12'"):
        HuggingFaceModel.load(folder, dtype="float12")


def test_pickled_weights_are_refused_with_the_way_out(tmp_path):
    folder = save(tiny_model("llama"), tmp_path)
    (folder / "model.safetensors").unlink()
    torch.save(tiny_model("llama").module.state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(ModelNotFound, match="only pickled weights"):
        HuggingFaceModel.load(folder, device="cpu")


def test_remote_code_is_never_run(tmp_path):
    import json

    folder = save(tiny_model("llama"), tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "odd", "auto_map": {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"}}
    (folder / "config.json").write_text(json.dumps(config))
    marker = tmp_path / "ran"
    (folder / "evil.py").write_text(f"open({str(marker)!r}, 'w').write('x')\nclass Config: pass\nclass Model: pass\n")
    with pytest.raises(ModelError):
        HuggingFaceModel.load(folder, device="cpu")
    assert not marker.exists()


def test_an_unknown_name_is_not_found_and_says_what_to_do(tmp_path):
    with pytest.raises(ModelNotFound, match="Unset HF_HUB_OFFLINE"):
        HuggingFaceModel.load("nobody/nothing-of-that-name")
    with pytest.raises(ModelNotFound):
        HuggingFaceModel.load(tmp_path)


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_offline_is_read_from_the_environment(monkeypatch, value, expected):
    monkeypatch.setenv("HF_HUB_OFFLINE", value)
    assert is_offline() is expected


def test_a_device_that_is_not_there_is_said():
    if not torch.cuda.is_available():
        with pytest.raises(ModelError, match="no CUDA device"):
            pick_device("cuda:0")
    assert pick_device("cpu") == "cpu"


def test_auto_dtype_is_float32_on_a_cpu_that_holds_it():
    config = tiny_model("llama").module.config
    config.dtype = torch.bfloat16
    try:
        assert pick_dtype("auto", "cpu", config) == torch.float32
        assert pick_dtype("auto", "cuda", config) == torch.bfloat16
    finally:
        config.dtype = torch.float32


@pytest.mark.parametrize("kind", KINDS)
def test_the_estimate_counts_parameters_exactly(kind):
    module = tiny_model(kind).module
    estimate = memory_estimate(module.config, "float32")
    counted = sum(p.numel() for p in module.parameters())
    assert estimate.parameters == counted and estimate.weights == 4 * counted


def test_the_estimated_cache_is_what_a_llama_cache_takes():
    module = tiny_model("llama").module
    with torch.no_grad():
        cache = module(torch.ones(3, 50, dtype=torch.long), use_cache=True).past_key_values
    taken = sum(t.numel() for layer in cache.layers for t in (layer.keys, layer.values)) * 4
    assert cache_values(module.config) * 50 * 3 * 4 == taken
    assert memory_estimate(module.config, "float32").cache == taken / (50 * 3) * PROMPT_TOKENS


def test_out_of_memory_is_told_from_other_errors():
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(RuntimeError("MPS backend out of memory"))
    assert not is_out_of_memory(RuntimeError("shape mismatch"))
