"""Tuning a decomposer on a tiny model: only replies count, the loss falls, and the folder is a model by its path."""

from __future__ import annotations

import json

import pytest

from engine.core.errors import InputError
from engine.models.registry import load_writer
from tests.tiny import save_tiny, tiny_model
from training.decomposer import IGNORED, examples, main
from training.decomposer_data import LORA, pairs

TEXT = {
    "text": "Ada was born in Cork.",
    "clauses": [{"text": "Ada was born in Cork.", "facts": ["Ada was born in Cork"]}],
}


def test_only_the_reply_and_its_end_count(tmp_path):
    file, model = tmp_path / "train.jsonl", tiny_model("llama")
    file.write_text(json.dumps(TEXT) + "\n")
    rows = examples(model, file, 2048)
    assert len(rows) == 2
    for row, (prompt, reply) in zip(rows, pairs(TEXT), strict=True):
        counted = [token for token in row["labels"] if token != IGNORED]
        assert row["input_ids"][-len(counted) :] == counted
        assert model.decode(counted[:-1]) == reply
        assert len(row["input_ids"]) == len(model.encode(prompt).ids) + len(counted)
    with pytest.raises(InputError, match="Make the set again"):
        examples(model, file, 3)


def test_the_tuned_folder_is_a_model_that_finds_the_wanted_reply_likelier(tmp_path):
    base, made, out = save_tiny(tmp_path / "base"), tmp_path / "set", tmp_path / "tuned"
    made.mkdir()
    (made / "train.jsonl").write_text((json.dumps(TEXT) + "\n") * 8)
    (made / "lora.json").write_text(json.dumps(LORA | {"learning_rate": 0.05}))
    prompt, reply = next(pairs(TEXT))

    def likelihood(folder) -> float:
        model = load_writer(str(folder))
        return model.score([model.encode(prompt)], [token.id for token in model.encode_answer(reply).tokens]).mean()

    before = likelihood(base)
    main([str(made), "--model", str(base), "--out", str(out)])
    assert likelihood(out) > before + 0.1
    steps = LORA["epochs"] * 16 // (LORA["batch_size"] * LORA["gradient_accumulation"])  # 8 texts of one clause
    assert [path.name for path in (out / "checkpoints").iterdir()] == [f"checkpoint-{steps}"]
