"""Train the verifiers' teacher: python -m training.verifier_teacher --data DIR --made FOLDER --out FOLDER.

The teacher is a language model (Qwen2.5-Coder-1.5B) with low-rank adapters. It answers one closed question by the
likelihood of three letters: does evidence support a claim, contradict it or leave it open. It is trained on the human
and code-made pairs of `verifier_pairs` and calibrated on the fitted parts of the development sets. Its adapter folder
is the large verifier (engine/models/verifier_large.py). With --made, it then scores the pairs that a model wrote
(teacher.npy, shape (pairs, 3)), of which the small verifier learns. An existing adapter in the folder is not trained
again. Needs a GPU with 40 GB.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
import torch
from torch.nn.functional import cross_entropy

from engine.models.calibration import called, fit_thresholds
from engine.models.protocols import Floats
from engine.models.verdicts import Thresholds
from engine.models.verifier import Calibration
from engine.models.verifier_large import BASE, letter_logits, questions
from training.adapter import MODULES
from training.verifier_calibration import Seen, even, fit_scale, labels_of, precisions
from training.verifier_data import Pair
from training.verifier_domains import every_set
from training.verifier_held_out import MADE, HeldOut
from training.verifier_pairs import training_pairs, written

SMOOTHING = 0.05


class Teacher:
    """The model with its adapter and the ids of the three letters."""

    def __init__(self, name: str, rank: int, adapter: Path) -> None:
        """Load a writer by its name in the workbench, with the adapter in its folder or a new one on every layer."""
        from peft import LoraConfig, PeftModel, get_peft_model

        from engine.models.registry import load_writer

        loaded: Any = load_writer(name, "bfloat16", "cuda" if torch.cuda.is_available() else "cpu")
        loaded.module.set_attn_implementation("sdpa")
        config = LoraConfig(r=rank, lora_alpha=4 * rank, target_modules=list(MODULES))
        self.known = adapter.exists()
        self.module: Any = (
            PeftModel.from_pretrained(loaded.module, str(adapter))
            if self.known
            else get_peft_model(loaded.module, config)
        )
        self.tokenizer = loaded.tokenizer

    def logits(self, ids: Sequence[list[int]]) -> torch.Tensor:
        """Logits of the three letters, shape (questions, 3)."""
        body, head = self.module.base_model.model.model, self.module.get_output_embeddings().weight
        with torch.autocast(head.device.type, torch.bfloat16):
            logits: torch.Tensor = letter_logits(body, head, self.tokenizer, ids)
        return logits

    def shares(self, pairs: Sequence[Pair], tokens: int) -> Floats:
        """The shares of the classes, shape (pairs, 3)."""
        ids = questions(self.tokenizer, [(claim, evidence) for claim, evidence, _ in pairs])
        result = np.zeros((len(pairs), 3), dtype=np.float32)
        self.module.eval()
        with torch.inference_mode():
            for group in by_length(ids, range(len(ids)), tokens):
                result[group] = torch.softmax(self.logits([ids[i] for i in group]), dim=-1).cpu().numpy()
        return result


def by_length(ids: Sequence[list[int]], places: Sequence[int], tokens: int) -> list[list[int]]:
    """The places in groups of similar length, each at most `tokens` padded tokens."""
    groups: list[list[int]] = [[]]
    for i in sorted(places, key=lambda i: len(ids[i])):
        if groups[-1] and (len(groups[-1]) + 1) * len(ids[i]) > tokens:
            groups.append([])
        groups[-1].append(i)
    return groups


def steps(ids: Sequence[list[int]], tokens: int, rng: Random) -> Iterator[list[int]]:
    """Groups of places for one pass over all pairs in random order."""
    order = rng.sample(range(len(ids)), len(ids))
    for first in range(0, len(order), 2048):
        groups = by_length(ids, order[first : first + 2048], tokens)
        yield from rng.sample(groups, len(groups))


def train(teacher: Teacher, pairs: Sequence[Pair], rate: float, tokens: int, minutes: float) -> None:
    """One pass over `pairs`, or as much of it as `minutes` allow."""
    ids, labels = (
        questions(teacher.tokenizer, [(c, e) for c, e, _ in pairs]),
        torch.tensor([label for _, _, label in pairs]),
    )
    weights = [p for p in teacher.module.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=rate, weight_decay=0.0, betas=(0.9, 0.98))
    start, seen, moving = time.monotonic(), 0, 1.1
    teacher.module.train()
    for number, group in enumerate(steps(ids, tokens, Random(1337))):
        passed = max(seen / len(pairs), (time.monotonic() - start) / (60 * minutes))
        if passed >= 1:
            break
        for settings in optimizer.param_groups:
            settings["lr"] = rate * min(1.0, (number + 1) / 30) * (1.0 - passed)
        logits = teacher.logits([ids[i] for i in group])
        loss = cross_entropy(logits, labels[group].to(logits.device), label_smoothing=SMOOTHING)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seen += len(group)
        if number % 20 == 0:
            moving = 0.7 * moving + 0.3 * float(loss.detach())
            print(f"{seen}/{len(pairs)} loss {moving:.3f} {time.monotonic() - start:.0f} s", flush=True)


def calibration(looks: Sequence[Floats], sets: Sequence[HeldOut]) -> Calibration:
    """Scale, bias, thresholds and precisions from the log shares of each set's pairs, shape (pairs, 3).

    Every human-made set has the same weight.
    """
    fitting = [
        (data, look, data.half(fitted=True)) for data, look in zip(sets, looks, strict=True) if data.name != MADE
    ]
    groups = [labels_of(data)[half] for data, _, half in fitting]
    scale, bias = fit_scale(
        Seen(np.concatenate([look[half] for _, look, half in fitting]), np.concatenate(groups), even(groups))
    )
    fitted = Calibration(scale=scale, bias=bias)
    three = [(data, look, half) for data, look, half in fitting if not data.two]
    maxima = [(fitted.probabilities(look[half])[:, :2], labels_of(data)[half]) for data, look, half in three]
    supportive, editing = fit_thresholds(maxima)
    thresholds = Thresholds(supportive=supportive, editing_required=editing)
    fitted = msgspec.structs.replace(fitted, thresholds=thresholds)
    verdicts = [called(fitted.probabilities(look)[:, :2], supportive, editing) for look in looks]
    return msgspec.structs.replace(fitted, precisions=precisions(sets, verdicts))


def write_calibration(found: Calibration, folder: Path) -> None:
    """Write thresholds.json into the adapter's folder."""
    (folder / "thresholds.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--made", type=Path)
    parser.add_argument("--model", default=BASE)
    parser.add_argument("--drawn", type=int, default=100_000, help="pairs of people and code")
    parser.add_argument("--seed", type=int, default=1337, help="of the made pairs' full stops; as for the student")
    parser.add_argument("--learn", type=int, default=64_000, help="of these, how many the teacher learns from")
    parser.add_argument("--rank", type=int, default=4)
    parser.add_argument("--rate", type=float, default=3e-4)
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    torch.manual_seed(1337)
    asked.out.mkdir(parents=True, exist_ok=True)
    teacher = Teacher(asked.model, asked.rank, asked.out / "adapter")
    if not teacher.known:
        learned, _ = training_pairs(asked.data, None, min(asked.drawn, asked.learn), 1337)
        train(teacher, learned, asked.rate, asked.tokens, asked.minutes)
        teacher.module.save_pretrained(str(asked.out / "adapter"))
        sets = every_set(asked.data)
        looks = [np.log(teacher.shares(data.pairs, 4 * asked.tokens) + 1e-6) for data in sets]
        write_calibration(calibration(looks, sets), asked.out / "adapter")
    if asked.made:
        made = written(asked.made, Random(asked.seed))
        np.save(asked.out / "teacher.npy", teacher.shares(made, 4 * asked.tokens).astype(np.float32))


if __name__ == "__main__":
    main()
