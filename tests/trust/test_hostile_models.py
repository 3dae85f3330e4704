"""A model's files are somebody else's: damaged or lying headers and configs are refused, in time and in memory."""

from __future__ import annotations

import json
import random
import signal
import struct

import pytest

from engine.core.errors import GroundworkError, ModelError
from engine.models.gguf import convert, read_header
from engine.models.loading import estimate, load_parts
from tests.tiny import save_tiny
from tests.tiny_gguf import write_gguf
from tests.trust.fuzz import damaged

SECONDS = 20  # of processor time


@pytest.fixture(autouse=True)
def _impatient():
    """A limit on CPU time ends endless work, so a busy machine ends nothing."""

    def too_long(*_):
        raise TimeoutError(f"over {SECONDS} s")

    before = signal.signal(signal.SIGVTALRM, too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


def test_damaged_gguf_headers_are_read_or_refused(tmp_path):
    data, rng = write_gguf(tmp_path / "t.gguf").read_bytes(), random.Random(5)
    path, came = tmp_path / "damaged.gguf", {"read": 0, "refused": 0}
    for _ in range(400):
        path.write_bytes(damaged(data[:9_000], rng) + data[9_000:])
        try:
            read_header(path)
            came["read"] += 1
        except ModelError as error:
            assert len(str(error)) > 20
            came["refused"] += 1
    assert min(came.values()) > 10


def tensor_of(dimensions: int) -> bytes:
    """A file with one tensor of so many dimensions, each as large as can be."""
    sizes = struct.pack("<Q", 2**64 - 1) * dimensions
    return (
        b"GGUF" + struct.pack("<IQQQcI", 3, 1, 0, 1, b"t", dimensions) + sizes + struct.pack("<IQ", 0, 0) + b"\0" * 64
    )


@pytest.mark.parametrize("dimensions", [9, 400_000])
def test_a_tensor_of_very_many_dimensions_is_refused_at_once(tmp_path, dimensions):
    (tmp_path / "t.gguf").write_bytes(tensor_of(dimensions))
    with pytest.raises(ModelError, match=rf"claims {dimensions:,} dimensions"):
        read_header(tmp_path / "t.gguf")


def claiming(data: bytes, name: str, value: int) -> bytes:
    """The file with another number in a field."""
    place = data.index(f"llama.{name}".encode()) + len(f"llama.{name}") + 4
    return data[:place] + struct.pack("<I", value) + data[place + 4 :]


@pytest.mark.parametrize("value", [0, 2**31 - 1])
@pytest.mark.parametrize(
    "name", ["block_count", "embedding_length", "feed_forward_length", "vocab_size", "attention.head_count"]
)
def test_a_gguf_file_that_claims_more_than_it_holds_is_refused(tmp_path, name, value):
    path = tmp_path / "t.gguf"
    path.write_bytes(claiming(write_gguf(path).read_bytes(), name, value))
    with pytest.raises(ModelError, match=f"its {name} is {value}"):
        convert(path, tmp_path / "models" / "t")
    assert not (tmp_path / "models" / "t").exists()


@pytest.mark.parametrize(
    "changed",
    [
        {"num_hidden_layers": 10**9},
        {"num_hidden_layers": -1},
        {"num_attention_heads": 0},
        {"hidden_size": 10**12},
        {"hidden_size": "x"},
        {"vocab_size": None},
        {"vocab_size": -5},
        {"rope_parameters": {"rope_theta": "NaN", "rope_type": "none"}},
        {"model_type": ["llama"]},
    ],
    ids=str,
)
def test_a_hostile_config_is_refused(tmp_path, changed):
    folder = save_tiny(tmp_path / "m")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changed}))
    with pytest.raises(GroundworkError):
        load_parts(folder)
    if changed != {"hidden_size": 10**12}:  # of which the estimate says what it would take
        with pytest.raises(GroundworkError):
            estimate(folder)


@pytest.mark.parametrize("text", ["", "[]", "null", '{"a":' * 100_000, "{" * 100_000, "\ufeff{}"])
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
def test_a_broken_file_of_a_model_is_refused(tmp_path, name, text):
    folder = save_tiny(tmp_path / "m")
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(GroundworkError):
        load_parts(folder)
