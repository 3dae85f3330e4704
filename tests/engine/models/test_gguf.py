"""GGUF files: converted exactly and once, refused with the way out where they cannot be."""

from __future__ import annotations

import multiprocessing
import os
import struct
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from engine.core.errors import Cancelled, ModelError, ModelNotFound, StorageError
from engine.core.progress import Watch
from engine.models.catalogue import is_complete
from engine.models.gguf import convert, converted_folder, read_header
from engine.models.huggingface import HuggingFaceModel
from engine.models.loading import estimate
from engine.models.registry import available_models, forget_models, load_writer
from tests.tiny import tiny_model, tiny_prompt
from tests.tiny_gguf import gguf_tensors, stored, write_gguf


@pytest.fixture(autouse=True)
def own_models(monkeypatch, tmp_path):
    monkeypatch.setenv("GROUNDWORK_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    forget_models()
    yield
    forget_models()


def rounded(kind, quantization):
    """The tiny model with each weight as GGUF stores it, in bfloat16: made without reading a GGUF file."""
    from transformers import AutoModelForCausalLM

    model = tiny_model(kind)
    module = AutoModelForCausalLM.from_config(model.module.config, dtype=torch.float32)
    state = {
        name: torch.from_numpy(stored(tensor.float().numpy(), quantization)).bfloat16().float()
        for name, tensor in model.module.state_dict().items()
    }
    module.load_state_dict(state)
    return HuggingFaceModel("rounded", module, model.tokenizer)


@pytest.mark.parametrize(("kind", "quantization"), [("llama", "Q8_0"), ("llama", "F32"), ("qwen2", "Q4_1")])
def test_a_gguf_file_scores_as_a_module_built_without_it(tmp_path, kind, quantization):
    path = write_gguf(tmp_path / "Tiny.gguf", kind, quantization=quantization)
    model, expected = load_writer(str(path)), rounded(kind, quantization)
    prompt, answer = expected.encode(tiny_prompt(2)), expected.encode_answer("Hanna Lind built it.")
    assert model.name == str(path) and model.can.gradients
    if kind == "llama":  # Qwen2's own way to split words is not the tiny tokenizer's
        assert model.encode(tiny_prompt(2)).ids == prompt.ids
    assert model.template == expected.template
    ids = [token.id for token in answer.tokens]
    np.testing.assert_allclose(model.score([prompt], ids), expected.score([prompt], ids), atol=1e-5)
    again = HuggingFaceModel.load(converted_folder(path), device="cpu")
    np.testing.assert_array_equal(again.score([prompt], ids), model.score([prompt], ids))


def test_a_conversion_draws_no_bar_of_another_library(tmp_path, capfd):
    converted_folder(write_gguf(tmp_path / "t.gguf"))
    assert "\r" not in "".join(capfd.readouterr())


def test_the_header_says_what_is_in_the_file(tmp_path):
    header = read_header(write_gguf(tmp_path / "t.gguf"))
    assert (header.architecture, header.values) == ("llama", sum(map(np.size, gguf_tensors("llama").values())))
    assert {tensor.quantization for tensor in header.tensors} == {"Q8_0", "F32"}


def test_another_file_of_the_same_name_is_another_model(tmp_path):
    (tmp_path / "a").mkdir()
    first = converted_folder(write_gguf(tmp_path / "t.gguf"))
    second = converted_folder(write_gguf(tmp_path / "a" / "t.gguf", quantization="F32"))
    assert first != second and first.name.startswith("t-") and is_complete(first) and is_complete(second)


def test_a_file_in_the_models_folder_goes_by_its_name(tmp_path):
    (tmp_path / "models").mkdir()
    write_gguf(tmp_path / "models" / "mine.gguf")
    assert "mine.gguf" in [card.name for card in available_models()]
    assert load_writer("mine.gguf").name == "mine.gguf"


def test_memory_is_estimated_without_converting(tmp_path):
    path = write_gguf(tmp_path / "t.gguf")
    assert estimate(path).parameters == estimate(converted_folder(path)).parameters
    bare = write_gguf(tmp_path / "u.gguf", quantization="F32")
    estimate(bare)
    assert not list((tmp_path / "models").glob("u-*"))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not a GGUF file"),
        (b"PK\x03\x04 a wheel", "not a GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "GGUF version 1"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "little-endian"),
        (b"GGUF" + struct.pack("<I", 3), "incomplete or damaged"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "entries, more than it can contain"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 60) + b"x" * 20, "longer than the file"),
        (b"GGUF" + struct.pack("<IQQQcII", 3, 0, 1, 1, b"k", 77, 0), "unknown type 77"),
        (b"GGUF" + struct.pack("<IQQQcIIQ", 3, 0, 1, 1, b"k", 9, 4, 1 << 60), "longer than the file"),
        (b"GGUF" + struct.pack("<IQQQcIIQ", 3, 0, 1, 1, b"k", 9, 9, 1), "array of unknown type"),
    ],
)
def test_what_is_no_whole_header_is_told(tmp_path, data, said):
    path = tmp_path / "t.gguf"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=said):
        load_writer(str(path))
    assert not list((tmp_path / "models").glob("t-*"))


def test_a_cut_file_is_told_with_its_numbers(tmp_path):
    path = write_gguf(tmp_path / "t.gguf")
    size = path.stat().st_size
    os.truncate(path, size - 100)
    with pytest.raises(ModelError, match=rf"need .* bytes and it has {size - 100:,}.*Download it again"):
        load_writer(str(path))


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(ModelNotFound, match=r"t\.gguf does not exist"):
        load_writer(str(tmp_path / "t.gguf"))


def test_an_architecture_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"architecture rwkv9.*openai:MODEL@BASE_URL"):
        load_writer(str(write_gguf(tmp_path / "t.gguf", architecture="rwkv9")))


def test_a_quantization_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"quantized as Q8_1.*Q4_K_M"):
        load_writer(str(write_gguf(tmp_path / "t.gguf", quantization="Q8_1")))


def test_a_file_without_one_of_its_weights_is_not_filled_with_random_ones(tmp_path):
    path = write_gguf(tmp_path / "t.gguf", without="blk.1.ffn_up.weight")
    with pytest.raises(ModelError, match=r"lacks 1 weights.*up_proj"):
        load_writer(str(path))
    assert not list((tmp_path / "models").glob("t-*"))


def test_too_little_disk_or_memory_is_told_before_anything_is_written(tmp_path, monkeypatch):
    path, folder = write_gguf(tmp_path / "t.gguf"), tmp_path / "models" / "t"
    monkeypatch.setattr("engine.models.memory.free_memory", lambda _: 1000)
    with pytest.raises(ModelError, match=r"needs 0\.3 GB of memory; 0\.0 GB are free"):
        convert(path, folder)
    monkeypatch.setattr("engine.models.memory.disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(StorageError, match=r"needs 0\.1 GB in .*; 0\.0 GB are free"):
        convert(path, folder)
    assert not folder.exists()


@pytest.mark.parametrize("stage", ["reading the tokenizer", "dequantizing the weights", "writing the weights"])
def test_a_conversion_broken_off_leaves_nothing_that_counts_as_a_model(tmp_path, stage):
    path, watch = write_gguf(tmp_path / "t.gguf"), Watch()

    def report(now, done, total):
        if now == stage:
            watch.cancel.set()

    watch = Watch(report=report)
    with pytest.raises(Cancelled):
        convert(path, tmp_path / "models" / "t", watch)
    assert not (tmp_path / "models" / "t").exists() and not list((tmp_path / "models" / ".unfinished").glob("t"))
    assert is_complete(convert(path, tmp_path / "models" / "t"))


def test_what_a_killed_process_left_is_made_again(tmp_path):
    path, folder = write_gguf(tmp_path / "t.gguf"), tmp_path / "models" / "t"
    left = tmp_path / "models" / ".unfinished" / "t"
    left.mkdir(parents=True)
    (left / "config.json").write_text("{")
    (left / "stray.safetensors").write_bytes(b"half")
    assert [card.name for card in available_models()] == ["reader", "embedded"]
    convert(path, folder)
    assert not (folder / "stray.safetensors").exists() and HuggingFaceModel.load(folder).window


def _convert_in_turn(path, folder, barrier, results):
    stages = []
    barrier.wait()
    convert(path, folder, Watch(report=lambda stage, done, total: stages.append(stage)))
    results.put("writing the weights" in stages and is_complete(folder))


def test_two_processes_convert_a_file_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    path, folder = write_gguf(tmp_path / "t.gguf"), tmp_path / "models" / "t"
    barrier, results = context.Barrier(2), context.Queue()
    processes = [context.Process(target=_convert_in_turn, args=(path, folder, barrier, results)) for _ in range(2)]
    for process in processes:
        process.start()
    wrote = [results.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    assert sorted(wrote) == [False, True] and is_complete(folder)
