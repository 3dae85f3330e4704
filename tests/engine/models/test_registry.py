"""Models by name: loaded once, kept two at a time, missing ones said with the way out."""

from __future__ import annotations

import threading

import pytest

from engine.core.errors import ModelNotFound
from engine.models import registry
from engine.models.registry import KEPT, available_models, forget_models, load_writer, writers
from tests.tiny import tiny_model, tiny_prompt


@pytest.fixture(autouse=True)
def apart(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("GROUNDWORK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GROUNDWORK_MODELS")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(registry, "PACKAGE", "no_such_package")
    forget_models()
    yield
    forget_models()


def save(folder, kind="llama"):
    tiny_model(kind).module.save_pretrained(folder)
    tiny_model(kind).tokenizer.save_pretrained(folder)
    return folder


def test_a_folder_is_loaded_once(tmp_path):
    folder = str(save(tmp_path / "m"))
    model = load_writer(folder)
    assert load_writer(f" {folder} ") is model
    assert model.name == folder and model.encode(tiny_prompt(1)).ids


def test_many_who_ask_at_once_get_one_model(tmp_path):
    folder, got = str(save(tmp_path / "m")), []
    threads = [threading.Thread(target=lambda: got.append(load_writer(folder))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(model) for model in got}) == 1


def test_the_one_unused_longest_goes_first(tmp_path):
    names = [str(save(tmp_path / f"m{i}")) for i in range(KEPT + 1)]
    first, second = load_writer(names[0]), load_writer(names[1])
    assert load_writer(names[0]) is first
    load_writer(names[2])
    assert load_writer(names[0]) is first
    assert load_writer(names[1]) is not second


def test_embedded_is_found_or_said_to_be_missing(tmp_path):
    with pytest.raises(ModelNotFound, match=r"is not installed.*openai:MODEL@BASE_URL"):
        load_writer("embedded")
    card = next(c for c in available_models() if c.name == "embedded")
    assert not card.can_score and card.note == "Not installed."
    save(registry.ENTRY.folder)
    assert next(c for c in available_models() if c.name == "embedded").can_gradients


@pytest.mark.parametrize("name", ["", "reader", "auto"])
def test_names_that_mean_no_model(name):
    with pytest.raises(ModelNotFound, match="is not a language model"):
        load_writer(name)


@pytest.mark.parametrize("name", ["x" * 300, "~nobody-of-that-name/model"])
def test_a_name_that_can_be_no_folder_is_said_to_load_nothing(name, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelNotFound, match="cannot be loaded"):
        load_writer(name)


def test_a_failed_load_can_be_tried_again(tmp_path):
    folder = tmp_path / "later"
    with pytest.raises(ModelNotFound):
        load_writer(str(folder))
    save(folder)
    assert load_writer(str(folder)).window


def test_models_of_the_data_folder_and_the_cache_are_listed(tmp_path, monkeypatch):
    save(tmp_path / "home" / "models" / "mine", "qwen2")
    save(tmp_path / "hub" / "models--someone--tiny" / "snapshots" / "abc", "gpt2")
    (tmp_path / "hub" / "models--someone--encoder" / "snapshots" / "abc").mkdir(parents=True)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    cards = {card.name: card for card in available_models()}
    assert list(cards) == ["reader", "embedded", "mine", "someone/tiny", "openai:MODEL@http://127.0.0.1:9/v1"]
    assert cards["mine"].can_score and not cards["reader"].can_score
    assert "score" in cards["openai:MODEL@http://127.0.0.1:9/v1"].note
    assert "mine" in writers() and "reader" not in writers()
    assert load_writer("mine").name == "mine"
    assert cards["mine"].to_dict()["kind"] == "language model"
