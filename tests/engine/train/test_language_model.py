"""Training of the embedded model, on models of two small layers."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.answer.prompt import build_prompt
from engine.models.huggingface import HuggingFaceModel
from engine.train.architecture import Shape, load, new_model, save
from engine.train.average import average
from engine.train.batches import batches, encode
from engine.train.jobs import (
    LEVELS,
    Mixture,
    Piece,
    answering_prompt,
    cited,
    memory_sample,
    sample,
    vocabulary_texts,
    world_sample,
)
from engine.train.language_model import (
    STAGES,
    Recipe,
    parse,
    rate_factor,
    stages,
    train,
)
from engine.train.losses import losses
from engine.train.tokenizer import train_tokenizer
from engine.train.worlds import Asked
from engine.types import Passage

TINY = Shape(vocabulary=600, width=64, inner=64, layers=2, heads=2)
SHORT = Recipe(batch_tokens=1024, warm_up=5, minutes=60.0, mixture=Mixture())


def passage(text: str) -> Passage:
    return Passage(id="p", document="d", title="", ordinal=0, start=0, end=len(text), text=text)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def tokenizer():
    texts = [text for _, text in zip(range(3000), vocabulary_texts(None), strict=False)]
    return train_tokenizer(texts, TINY.vocabulary)


@pytest.fixture(scope="module")
def trained(tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    model = new_model(TINY)
    log = train(model, tokenizer, SHORT, out=folder, steps=60, report=False)
    return folder, log


def test_digits_are_tokens_and_a_word_has_one_form_everywhere(tokenizer):
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("Heat 43,518 to 43.")["input_ids"])
    assert [t for t in tokens if t.isdigit()] == list("4351843")
    assert (
        tokenizer("The lamp")["input_ids"]
        == tokenizer("x The lamp")["input_ids"][-len(tokenizer("The lamp")["input_ids"]) :]
    )


@pytest.mark.parametrize("text", ["Velcor boils at 43.5 °C. [cite_12]", "naïve – “quoted” 日本", "two\n\nlines"])
def test_decoding_gives_the_text_back(tokenizer, text):
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_training_prompts_are_the_prompts_of_use():
    texts = ["Velcor melts at 43 °C.", "It is white.", "Orvel is blue."]
    whole = build_prompt("What melts?", [passage(t) for t in texts])
    assert answering_prompt("What melts?", texts, [1, 2, 3]) == whole
    assert answering_prompt("What melts?", [texts[0], texts[2]], [1, 3]) == whole.without({2})
    assert answering_prompt("What melts?", [texts[2]], [3]) == whole.keep({3})


def test_ids_in_training_are_the_ids_in_use(tokenizer, tmp_path):
    save(new_model(TINY), tokenizer, tmp_path, {})
    model = HuggingFaceModel.load(tmp_path)
    prompt = answering_prompt("What melts?", ["Velcor melts.", "Orvel is blue."], [2, 5])
    ids, *_ = encode([Piece(s.text, "prompt") for s in prompt.segments], tokenizer)
    assert tuple(ids) == model.encode(prompt).ids
    answer, codes, _ = encode([Piece("Velcor melts. [cite_2]", "answer"), Piece("", "end")], tokenizer)
    assert tuple(answer[1:-1]) == tuple(t.id for t in model.encode_answer("Velcor melts. [cite_2]").tokens)
    assert codes[0] == 0 and set(codes[1:]) == {2} and answer[-1] == tokenizer.eos_token_id


def test_only_targets_are_counted_by_the_curriculum(tokenizer):
    rng = random.Random(0)
    _, codes, _ = encode(world_sample(LEVELS[2], rng, Mixture()), tokenizer)
    assert {0, 1, 2, 5} == set(codes)
    _, codes, _ = encode(memory_sample(LEVELS[2], rng), tokenizer)
    assert 4 in codes and 2 not in codes


def test_a_marker_as_a_piece_of_its_own_has_the_ids_of_the_whole_answer(tokenizer):
    asked = Asked("What melts?", "Velcor melts at 43 °C.", "43 °C", 12)
    ids, codes, sources = encode(cited(asked, "garage", "answer"), tokenizer)
    assert ids[1:-1] == tokenizer("Velcor melts at 43 °C. [cite_12]")["input_ids"]
    assert set(sources[1:-1]) == {12}
    assert codes.count(5) == len(tokenizer("[cite_12]")["input_ids"]) + 1


def test_batches_keep_every_token_and_stay_under_the_budget(tokenizer):
    rng = random.Random(0)
    drawn = []

    def source():
        while True:
            drawn.append(encode(sample(LEVELS[3], Mixture(), rng), tokenizer))
            yield drawn[-1]

    made = batches(source(), 1024, 4, rng)
    assert all(b.ids.shape == b.codes.shape == b.sources.shape for b in made)
    assert all(len(b.ids) * int((b.codes > 0).sum(axis=1).max()) <= 1024 for b in made)
    assert sum(int((b.codes > 0).sum()) for b in made) == sum(sum(c > 0 for c in codes) for _, codes, _ in drawn)


def test_training_lowers_the_answer_loss(trained):
    _, log = trained
    assert log["steps"] == 60
    assert log["answer_loss"] < np.log(TINY.vocabulary) - 1


def test_training_goes_on_from_saved_weights_with_a_fresh_optimiser(trained, tokenizer):
    folder, _ = trained
    model, again = load(folder)
    rng = random.Random(9)
    source = iter(lambda: encode(world_sample(LEVELS[0], rng, Mixture()), again), None)
    batch = batches(source, 4096, 1, rng)[0]
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        known = losses(model, batch, generator)[1]
        unknown = losses(new_model(TINY, seed=2), batch, generator)[1]
    assert known < unknown - 1
    train(model, again, SHORT, steps=40, report=False)
    with torch.no_grad():
        assert losses(model, batch, generator)[1] < known


def test_weights_load_as_any_causal_model_does(trained):
    folder, _ = trained
    model = HuggingFaceModel.load(folder, dtype="bfloat16")
    assert model.window == 16_384
    assert (folder / "model.safetensors").stat().st_size < 30_000_000
    assert model.dtype == "bfloat16"


def test_random_weights_are_at_chance(tokenizer, tmp_path):
    """Of four values, the one that the passage gives is scored highest no more often than by luck."""
    save(new_model(TINY, seed=4), tokenizer, tmp_path, {})
    model = HuggingFaceModel.load(tmp_path)
    rng = random.Random(0)
    right = 0
    for _ in range(40):
        values = rng.sample(["10", "35", "72", "94", "58", "61"], 4)
        prompt = build_prompt("How warm is Velcor?", [passage(f"Velcor is {values[0]} degrees warm.")])
        scores = [model.score([model.encode(prompt)], ids(model, v)).sum() for v in values]
        right += int(np.argmax(scores)) == 0
    assert right <= 20


def ids(model: HuggingFaceModel, value: str) -> list[int]:
    return [t.id for t in model.encode_answer(f"Velcor is {value}").tokens]


def test_the_rate_rises_then_falls_to_a_twentieth():
    recipe = Recipe(warm_up=10, decay=0.2)
    assert rate_factor(0, 0.0, recipe) == pytest.approx(0.1)
    assert rate_factor(50, 0.5, recipe) == 1.0
    assert rate_factor(50, 0.9, recipe) == pytest.approx(0.5)
    assert rate_factor(50, 1.2, recipe) == pytest.approx(0.05)


def test_shares_on_the_command_line_replace_the_two_stages():
    assert stages(parse([])) == STAGES
    assert sum(share for share, _ in STAGES) == pytest.approx(1.0)
    assert stages(parse(["--real", "0.2"])) == ((1.0, Mixture(real=0.2)),)


def test_an_average_is_the_mean_of_every_weight_and_refuses_another_shape(tokenizer, tmp_path):
    folders = [tmp_path / name for name in ("one", "two", "wide", "mean")]
    for folder, model in zip(folders, (new_model(TINY, 1), new_model(TINY, 2)), strict=False):
        save(model, tokenizer, folder, {"seed": folder.name})
    average(folders[:2], folders[3])
    one, two, mean = (load(folder)[0].state_dict() for folder in (folders[0], folders[1], folders[3]))
    for name, weight in mean.items():
        torch.testing.assert_close(weight, (one[name] + two[name]) / 2, rtol=2**-7, atol=1e-6)
    save(new_model(replace(TINY, inner=128)), tokenizer, folders[2], {})
    with pytest.raises(ValueError, match="differ in shape"):
        average(folders[:3], folders[3])
