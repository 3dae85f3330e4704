"""The adapter's examples and trainer, on a tiny model and made-up questions."""

import copy
import json
import random

import pytest
import torch

from engine.core.text import sentences
from engine.core.values import Passage
from tests.tiny import tiny_model
from training.adapter import BASE, Recipe, Row, Trainer, batches, end_of_turn, losses, rows, steps
from training.adapter_data import Question, Sources, number_of
from training.adapter_jobs import JOBS, VERDICTS, answer

TEXTS = {
    "Kiln": "The kiln was built in 1874. It burned oak until 1901. The chimney fell in a storm.",
    "Mill": "The mill grinds barley. Hanna Lind bought it in 1931. Its wheel turns twice a minute.",
    "Weir": "The weir is made of granite. Boats pass it by a lock. It was lowered in 1960.",
    "Barn": "The barn holds hay. Ola Berg painted it red in 1955. Owls nest under its roof.",
    "Quay": "The quay was laid in 1822. Ships load salt there. A lamp marks its end.",
}
SHORT = {"Kiln": "1874", "Mill": "Hanna Lind", "Weir": "1960", "Barn": "Ola Berg", "Quay": "salt"}


def question(title):
    text = TEXTS[title]
    passage = Passage(id=title, document=title, title=title, ordinal=0, start=0, end=len(text), text=text)
    span = next(span for span in sentences(text) if SHORT[title] in text[slice(*span)])
    return Question(f"What about the {title.lower()}?", passage, (span,), SHORT[title])


@pytest.fixture
def sources():
    asked = tuple(map(question, TEXTS))
    unanswered = Question("Who sings?", asked[0].passage, ())
    claim = {"page": "Mill", "claim": "The mill grinds rye.", "evidence": "The mill grinds barley."}
    verdicts = tuple(claim | {"label": label} for label in VERDICTS)
    edits = (claim | {"gold_claim": "The mill grinds barley."},)
    return Sources((*asked, unanswered), tuple(q.passage for q in asked), verdicts, edits)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
def test_every_job_has_a_prompt_and_a_reply(job, sources):
    for seed in range(4):
        example = job(sources, random.Random(seed))
        assert example.prompt.text.strip() and example.reply.strip()


def test_the_cited_piece_holds_what_is_copied(sources):
    for seed in range(10):
        example = answer(sources, random.Random(seed))
        said, _, number = example.reply.rstrip("]").rpartition("[")
        cited = next(s for s in example.prompt.segments if s.number == int(number.removeprefix("cite_")))
        assert said.strip() in cited.text


def test_a_context_without_the_answer_lacks_it(sources):
    asked = sources.questions[1]
    context = sources.context(asked, random.Random(0), 4, answered=False)
    assert number_of(asked, context) is None and all("Hanna Lind" not in p.text for p in context)


def test_rows_of_a_file_come_in_order_and_the_first_are_sorted(tmp_path):
    lengths = (9, 5, 7, 3, 8, 2)
    file = tmp_path / "examples.jsonl"
    file.write_text(
        "".join(json.dumps({"job": "a", "ids": [1] * n, "wanted": 1}) + "\n" for n in (*lengths, *[4] * 40))
    )
    first = next(steps(rows(file), Recipe(easy=4)))
    assert [len(row.ids) for row in first[:6]] == [3, 5, 7, 9, 8, 2]


def test_a_batch_is_no_wider_than_allowed_and_loses_nothing():
    step = [Row("a", [1] * n, 1) for n in (400, 30, 410, 420, 20, 405, 415)]
    groups = batches(step)
    assert sorted(len(r.ids) for g in groups for r in g) == sorted(len(r.ids) for r in step)
    assert all(max(len(r.ids) for r in g) * len(g) <= 2_048 for g in groups)


def trainer(steps=8):
    module = tiny_model("llama").module
    return Trainer(copy.deepcopy(module), Recipe(rank=4, rate=0.02, warm_up=1), steps)


def test_padding_does_not_change_a_loss():
    found = trainer()
    short, long = Row("a", [5, 6, 7, 8], 2), Row("a", list(range(5, 25)), 3)
    alone = losses(found.module, [short])
    assert torch.allclose(alone[0], losses(found.module, [short, long])[0], atol=1e-5)


def test_training_lowers_the_loss_and_goes_on_from_a_checkpoint(tmp_path):
    step = [Row("a", [5, 6, 7, 8, 9, 10], 3)] * 2
    whole, first = trainer(), trainer()
    found = [whole.step(step)["a"][0] for _ in range(6)]
    assert found[-1] < found[0]
    for _ in range(3):
        first.step(step)
    first.save(tmp_path)
    second = trainer()
    second.resume(tmp_path)
    rest = [second.step(step)["a"][0] for _ in range(3)]
    assert rest == pytest.approx(found[3:], abs=1e-5)


def test_an_exported_adapter_loads_and_names_its_base_publicly(tmp_path):
    from engine.models.loading import merge_adapter

    (tmp_path / "README.md").write_text("A card of our own.")
    trained = trainer()
    trained.step([Row("a", [5, 6, 7, 8, 9, 10], 3)] * 2)
    trained.export(tmp_path)
    assert (tmp_path / "README.md").read_text() == "A card of our own."
    assert json.loads((tmp_path / "adapter_config.json").read_text())["base_model_name_or_path"] == BASE
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        merged = merge_adapter(copy.deepcopy(tiny_model("llama").module), tmp_path)(ids).logits
        assert torch.allclose(merged, trained.module(ids).logits, atol=1e-5)


def test_a_reply_ends_with_the_token_that_closes_a_turn_whatever_the_tokenizer_calls_its_end():
    tokenizer = copy.deepcopy(tiny_model("qwen2").tokenizer)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|start|>", "<|end|>"]})
    tokenizer.eos_token = "<|start|>"
    assert tokenizer.decode([end_of_turn(tokenizer)]) == "<|end|>"
