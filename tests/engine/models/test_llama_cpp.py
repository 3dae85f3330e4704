"""llama.cpp writes what torch would write with the weights of the same file, and what it cannot do is told."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request

import pytest
import torch

from engine.answer.prompt import stamp_of
from engine.core.errors import Cancelled, ModelError
from engine.core.progress import Watch
from engine.core.settings import Decoding, Prompting
from engine.models.huggingface import HuggingFaceModel
from engine.models.llama_cpp import LEAST, LlamaCpp, writes_faster
from engine.models.writing import nucleus
from tests.tiny import WINDOW, tiny_prompt
from tests.tiny_gguf import write_gguf

pytest.importorskip("xllamacpp")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", quantization="F32")


@pytest.fixture
def model(file, tmp_path, monkeypatch):
    """The tiny model of the file, its texts by llama.cpp."""
    monkeypatch.setenv("GROUNDWORK_MODELS", str(tmp_path))
    loaded = HuggingFaceModel.load(str(file), dtype="float32", device="cpu")
    loaded.llama_cpp = LlamaCpp(file, WINDOW, threads=1)
    return loaded


def by_torch(model):
    return HuggingFaceModel(model.name, model.module, model.tokenizer)


def test_it_writes_as_torch_does_with_the_same_weights(model):
    prompt, decoding = tiny_prompt(2), Decoding(max_new_tokens=12)
    written, expected = [], by_torch(model).generate(prompt, decoding)
    limit = decoding.max_new_tokens
    model.llama_cpp.write(model.encode(prompt).ids, decoding, limit, lambda *token: written.append(token), Watch())
    for (token, logprob), other in zip(written, expected.tokens, strict=False):
        assert token == other.id
        assert logprob == pytest.approx(other.logprob, abs=0.05)  # its cache is float16
    assert written


def test_log_probabilities_are_those_that_score_gives(model):
    prompt = tiny_prompt(2)
    answer = model.generate(prompt, Decoding(max_new_tokens=12))
    known = [token for token in answer.tokens if token.logprob is not None]
    scored = model.score([model.encode(prompt)], [token.id for token in answer.tokens])[0]
    for token, score in zip(answer.tokens, scored, strict=True):
        assert token.logprob is None or token.logprob == pytest.approx(score, abs=0.05)
    assert not known or len(known) == len(answer.tokens)


def test_one_seed_gives_one_text_and_tokens_come_from_the_nucleus(file):
    writer, decoding, ids = LlamaCpp(file, WINDOW, 1), Decoding(temperature=0.8, top_p=0.5, seed=7), [5, 6, 7]
    texts = [[], [], []]
    for tokens, one in zip(texts, (decoding, decoding, Decoding(temperature=0.8, top_p=0.5, seed=8)), strict=True):
        writer.write(ids, one, 8, lambda token, _, tokens=tokens: tokens.append(token), Watch())
    assert texts[0] == texts[1] != texts[2]


def test_the_nucleus_is_that_of_sampling(model):
    """The first token of two hundred draws stays in the nucleus of the tempered distribution, and reaches its rim."""
    ids = model.encode(tiny_prompt(1)).ids
    logits = model.module(torch.tensor([ids])).logits[0, -1].double()
    inside = set(torch.nonzero(nucleus((logits / 2.0).softmax(-1), 0.3)).flatten().tolist())
    drawn = set()
    for seed in range(200):
        decoding = Decoding(temperature=2.0, top_p=0.3, seed=seed)
        model.llama_cpp.write(ids, decoding, 1, lambda token, _: drawn.add(token), Watch())
    assert drawn <= inside
    assert len(drawn) > min(len(inside), 200) / 4


def test_it_writes_one_by_one(model):
    assert not model.writes_together(exact=False)


def test_the_text_grows_and_writing_can_be_cancelled(model):
    seen, watch = [], Watch()

    def look(text):
        seen.append(text)
        if len(seen) == 3:
            watch.cancel.set()

    with pytest.raises(Cancelled):
        model.generate(tiny_prompt(1), Decoding(max_new_tokens=40), look, watch)
    assert len(seen) == 3
    assert model.generate(tiny_prompt(1), Decoding(max_new_tokens=2)).tokens  # it goes on after that


def test_what_a_reader_of_the_text_raises_is_raised(model):
    def refuse(text):
        raise KeyError(text)

    with pytest.raises(KeyError):
        model.generate(tiny_prompt(1), Decoding(max_new_tokens=4), refuse)


def test_its_context_grows_with_what_is_asked_up_to_the_window(file):
    writer, contexts = LlamaCpp(file, 10_000, threads=1), []
    for limit in (1, 4100, 1, 9000):
        writer.write([5, 6, 7], Decoding(), limit, lambda *_: None, Watch())
        contexts.append(writer.context)
    assert contexts == [4096, 8192, 8192, 10_000]


@pytest.mark.parametrize("why", ["a damaged file", "a missing library"])
def test_torch_writes_where_llama_cpp_cannot_load(model, tmp_path, monkeypatch, why):
    if why == "a missing library":
        monkeypatch.setitem(sys.modules, "xllamacpp", None)
    else:
        (tmp_path / "no.gguf").write_bytes(b"GGUF")
        model.llama_cpp = LlamaCpp(tmp_path / "no.gguf", WINDOW, threads=1)
    decoding = Decoding(max_new_tokens=4)
    assert model.generate(tiny_prompt(2), decoding) == by_torch(model).generate(tiny_prompt(2), decoding)
    assert "llama_cpp" not in stamp_of(model, Prompting(), decoding).settings


def test_a_file_that_it_cannot_load_is_told(tmp_path):
    (tmp_path / "no.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelError, match=r"llama.cpp cannot load no.gguf"):
        LlamaCpp(tmp_path / "no.gguf", 64, 1).write([1], Decoding(), 1, lambda *_: None, Watch())


def test_nobody_else_can_use_its_port(model):
    model.generate(tiny_prompt(1), Decoding(max_new_tokens=1))
    address = model.llama_cpp._server.listening_address
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{address}/completion", data=b'{"prompt": "a", "n_predict": 1}', timeout=10)


def test_small_models_other_devices_and_named_dtypes_write_with_torch(file, tmp_path, monkeypatch):
    assert writes_faster(LEAST, "cpu")
    assert not writes_faster(LEAST - 1, "cpu")
    assert not writes_faster(LEAST, "cuda:0")
    monkeypatch.setenv("GROUNDWORK_MODELS", str(tmp_path))
    assert HuggingFaceModel.load(str(file)).llama_cpp is None
    monkeypatch.setattr("engine.models.llama_cpp.LEAST", 1)
    assert HuggingFaceModel.load(str(file), dtype="float32").llama_cpp is None
    assert HuggingFaceModel.load(str(file), device="cpu").llama_cpp.file == file


def test_a_stamp_says_what_wrote(model):
    assert stamp_of(model, Prompting(), Decoding()).settings["llama_cpp"] == {"file": "tiny.gguf"}
    assert "llama_cpp" not in stamp_of(by_torch(model), Prompting(), Decoding()).settings
