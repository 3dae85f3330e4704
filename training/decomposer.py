"""Tune a language model to decompose answers (ARE, section 4.1.2), by LoRA with the paper's settings.

    python -m training.decomposer SET --model NAME --out FOLDER [--rank 8]

SET is a folder from `training.decomposer_data`: train.jsonl holds the pairs, lora.json the settings. Only tokens of the
wanted replies count. FOLDER gets the whole model with the adapter merged in, so its path names a decomposer:
`python -m engine facts FILE --model FOLDER`. A restarted run resumes after its last finished epoch. The paper does
not state the rank; 8 is peft's default.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peft import LoraConfig, get_peft_model
from transformers import DataCollatorForSeq2Seq, Trainer, TrainingArguments

from engine.core.errors import CannotDo, InputError
from engine.models.huggingface import HuggingFaceModel
from engine.models.registry import load_writer
from training.adapter import end_of_turn
from training.decomposer_data import pairs

IGNORED = -100  # the label of a token that does not count


def examples(model: HuggingFaceModel, file: Path, longest: int) -> list[dict[str, list[int]]]:
    """Token ids and labels of every pair of up to `longest` tokens; raise `InputError` if none is left."""
    tokenizer, found = model.tokenizer, []
    end = end_of_turn(tokenizer) if tokenizer.chat_template else tokenizer.eos_token_id
    for line in file.read_text(encoding="utf-8").splitlines():
        for prompt, reply in pairs(json.loads(line)):
            before = list(model.encode(prompt).ids)
            wanted = [*(token.id for token in model.encode_answer(reply).tokens), end]
            if len(before) + len(wanted) <= longest:
                found.append({"input_ids": before + wanted, "labels": [IGNORED] * len(before) + wanted})
    if not found:
        raise InputError(f"{file} has no example of up to {longest} tokens. Make the set again.")
    return found


def tune(
    model: HuggingFaceModel, rows: list[dict[str, list[int]]], settings: dict[str, Any], out: Path, rank: int
) -> Any:
    """The trained module with the adapter merged in. Until then, checkpoints are in `out`/checkpoints."""
    work = out / "checkpoints"
    asked = TrainingArguments(
        output_dir=str(work),
        num_train_epochs=settings["epochs"],
        learning_rate=settings["learning_rate"],
        per_device_train_batch_size=settings["batch_size"],
        gradient_accumulation_steps=settings["gradient_accumulation"],
        warmup_steps=settings["warmup_ratio"],  # under 1: a share of all steps
        lr_scheduler_type=settings["lr_scheduler"],
        save_strategy="epoch",
        save_total_limit=1,
        report_to="none",
    )
    module = get_peft_model(model.module, LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear"))
    collator = DataCollatorForSeq2Seq(model.tokenizer, label_pad_token_id=IGNORED)
    trainer = Trainer(model=module, args=asked, train_dataset=rows, data_collator=collator)
    trainer.train(resume_from_checkpoint=any(work.glob("checkpoint-*")))
    return module.merge_and_unload()


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", type=Path)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rank", type=int, default=8)
    asked = parser.parse_args(arguments)
    model, settings = load_writer(asked.model), json.loads((asked.set / "lora.json").read_bytes())
    if not isinstance(model, HuggingFaceModel):
        raise CannotDo(f"{asked.model} cannot be trained here. Name a local model.")
    rows = examples(model, asked.set / "train.jsonl", settings["cutoff_length"])
    print(f"{len(rows)} examples, {settings['epochs']} epochs", flush=True)
    tune(model, rows, settings, asked.out, asked.rank).save_pretrained(asked.out)
    model.tokenizer.save_pretrained(asked.out)


if __name__ == "__main__":
    main()
