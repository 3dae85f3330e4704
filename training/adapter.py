"""Train the embedded model's adapter: LoRA (Hu et al. 2021) on SmolLM2-135M-Instruct, for the jobs of `adapter_jobs`.

    python -m training.adapter --data DIR [--made FOLDER] [--out assets/models/adapter] [--steps 400] [--minutes 90]
                               [--threads 2] [--writers 1] [--work DIR] [--start FOLDER] [--compile]

Base weights stay frozen in bfloat16. The adapter's weights are float32 and rounded for each step. Only tokens of the
wanted reply count. A run writes its examples and a checkpoint into the work folder, and resumes from there. On a GPU
the recipe is the same and takes minutes.

`python -m torch.distributed.run --nproc-per-node 2 -m training.adapter` splits each step over processes. On a CPU two
processes with one thread each are faster than one process with two.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import multiprocessing
import os
import random
import time
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy

BASE = "HuggingFaceTB/SmolLM2-135M-Instruct"
BATCH_TOKENS = {"cpu": 2_048, "cuda": 8_192}  # padded tokens of one forward
STEP_EXAMPLES = 16
LONGEST = 700  # tokens of an example; what is longer costs more than it teaches
FIRST_LAYER = 8  # layers under it stay as they are, so that no gradient has to reach them
CLOSED = ("answerable", "verdict", "judge_pair", "judge_relevance")  # jobs whose reply is an option
MODULES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True)
class Recipe:
    """The settings of a run. Runs with equal settings and data see the same examples in the same order."""

    rank: int = 16
    alpha: int = 32
    rate: float = 5e-4
    warm_up: int = 20  # steps
    easy: int = 400  # examples that are sorted by length: short contexts first
    seed: int = 1337


@dataclass(frozen=True)
class Row:
    """An example as token ids; the last `wanted` of them are the reply with its end token."""

    job: str
    ids: list[int]
    wanted: int


def base(dtype: str, device: str = "cpu") -> Any:
    """The published SmolLM2, without an adapter."""
    from engine.models.huggingface import HuggingFaceModel
    from engine.models.registry import embedded_folder

    return HuggingFaceModel.load(embedded_folder(), dtype, device)


def end_of_turn(tokenizer: Any) -> int:
    """The token that closes an assistant's turn in the chat template.

    Not the tokenizer's end token: a version of transformers read another one from the same GGUF file. An adapter
    trained on it never closed its turn elsewhere.
    """
    turns = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "x"}]
    tail = tokenizer.apply_chat_template(turns, tokenize=False).rpartition("x")[2]
    ids: list[int] = tokenizer(tail, add_special_tokens=False)["input_ids"]
    return ids[0]


def write_examples(data: Path, made: Path | None, file: Path, count: int, seed: int) -> None:
    """Append examples to `file` until it has `count`; existing ones are kept."""
    from training.adapter_data import load_sources
    from training.adapter_jobs import examples

    torch.set_num_threads(1)
    known = sum(1 for _ in file.open()) if file.exists() else 0
    model = base("auto")
    sources, end = load_sources(data, made), end_of_turn(model.tokenizer)
    with file.open("a", encoding="utf-8") as lines:
        for example in itertools.islice(examples(sources, seed + known), max(0, count - known)):
            prompt = model.encode(example.prompt).ids
            reply = [token.id for token in model.encode_answer(example.reply).tokens] + [end]
            lines.write(json.dumps(asdict(Row(example.job, [*prompt, *reply], len(reply)))) + "\n")
            lines.flush()


def rows(file: Path, longest: int = LONGEST) -> Iterator[Row]:
    """The rows of a file that may still grow; rows that are too long are left out."""
    while not file.exists():
        time.sleep(1)
    with file.open(encoding="utf-8") as lines:
        while True:
            place, line = lines.tell(), lines.readline()
            if not line.endswith("\n"):
                lines.seek(place)
                time.sleep(1)
                continue
            row = Row(**json.loads(line))
            if len(row.ids) <= longest:
                yield row


def in_turn(streams: Sequence[Iterator[Row]]) -> Iterator[Row]:
    """Yield one row per stream in turn, endlessly."""
    while True:
        for stream in streams:
            yield next(stream)


def steps(found: Iterator[Row], recipe: Recipe) -> Iterator[list[Row]]:
    """The rows of each optimizer step: first by length, then in order."""
    easy = sorted(itertools.islice(found, recipe.easy), key=lambda row: len(row.ids))
    stream = itertools.chain(easy, found)
    while True:
        yield list(itertools.islice(stream, STEP_EXAMPLES))


def processes() -> int:
    """The number of processes that share a step."""
    return torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1


def rank() -> int:
    """The number of this process; the first one writes files."""
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def batches(step: Sequence[Row], tokens: int = BATCH_TOKENS["cpu"]) -> list[list[Row]]:
    """A step's rows in batches of similar length, each at most `tokens` padded tokens."""
    groups: list[list[Row]] = []
    for row in sorted(step, key=lambda row: len(row.ids)):
        if groups and len(row.ids) * (len(groups[-1]) + 1) <= tokens:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def weight(row: Row) -> float:
    """How much a row's mean loss counts: a long reply more than a short one, and an option as much as a sentence.

    By its length alone an option would count a tenth of a sentence; 4,000 examples taught it nothing that way.
    """
    return 2.0 if row.job in CLOSED else math.sqrt(row.wanted) / 5


def losses(module: Any, group: Sequence[Row]) -> torch.Tensor:
    """Mean loss of each row's reply in nats, shape (rows,). Padding follows the text, so no mask is needed."""
    width = max(len(row.ids) for row in group)
    device = module.get_input_embeddings().weight.device
    ids = torch.tensor([row.ids + [0] * (width - len(row.ids)) for row in group], device=device)
    states = module.base_model.model.model(input_ids=ids).last_hidden_state  # (rows, width, hidden)
    each = []
    for state, row in zip(states, group, strict=True):
        first = len(row.ids) - row.wanted
        logits = module.get_output_embeddings()(state[first - 1 : len(row.ids) - 1]).float()  # (wanted, vocabulary)
        each.append(cross_entropy(logits, torch.tensor(row.ids[first:], device=device)))
    return torch.stack(each)


class Trainer:
    """The adapted module, its float32 weights and the optimizer."""

    def __init__(self, module: Any, recipe: Recipe, total: int) -> None:
        from peft import LoraConfig, get_peft_model

        torch.manual_seed(recipe.seed)
        layers = list(range(min(FIRST_LAYER, module.config.num_hidden_layers - 1), module.config.num_hidden_layers))
        config = LoraConfig(
            r=recipe.rank, lora_alpha=recipe.alpha, target_modules=list(MODULES), layers_to_transform=layers
        )
        self.module = get_peft_model(module, config, autocast_adapter_dtype=False)
        self.rounded = [p for p in self.module.parameters() if p.requires_grad]
        self.exact = [p.detach().float().clone().requires_grad_() for p in self.rounded]
        self.optimizer = torch.optim.AdamW(self.exact, lr=recipe.rate, weight_decay=0.0, betas=(0.9, 0.98))
        self.recipe, self.total, self.done = recipe, total, 0

    def step(self, step: Sequence[Row], passed: float = 0.0) -> dict[str, list[float]]:
        """One optimizer step; the losses by job. `passed`: the share of the run's time that is over."""
        found: dict[str, list[float]] = {}
        mine = sorted(step, key=lambda row: len(row.ids))[rank() :: processes()]
        for group in batches(mine, BATCH_TOKENS[self.exact[0].device.type]):
            each = losses(self.module, group)
            weights = torch.tensor([weight(row) for row in group], device=each.device)
            ((each * weights).sum() / len(step)).backward()  # type: ignore[no-untyped-call]
            for row, loss in zip(group, each.tolist(), strict=True):
                found.setdefault(row.job, []).append(loss)
        for exact, rounded in zip(self.exact, self.rounded, strict=True):
            exact.grad = torch.zeros_like(exact) if rounded.grad is None else rounded.grad.float()
            rounded.grad = None
            if processes() > 1:
                torch.distributed.all_reduce(exact.grad)
        torch.nn.utils.clip_grad_norm_(self.exact, 1.0)
        for settings in self.optimizer.param_groups:
            settings["lr"] = self.recipe.rate * self._share(passed)
        self.optimizer.step()
        with torch.no_grad():
            for exact, rounded in zip(self.exact, self.rounded, strict=True):
                rounded.copy_(exact)
        self.done += 1
        return found

    def _share(self, passed: float) -> float:
        """The share of the learning rate: warm-up, then a cosine down to a twentieth, by steps or by time."""
        if self.done < self.recipe.warm_up:
            return (self.done + 1) / self.recipe.warm_up
        progress = min(1.0, max(passed, (self.done - self.recipe.warm_up) / max(1, self.total - self.recipe.warm_up)))
        return 0.05 + 0.95 * (1 + math.cos(math.pi * progress)) / 2

    def save(self, folder: Path) -> None:
        """Write a checkpoint to resume from."""
        state = {"exact": self.exact, "optimizer": self.optimizer.state_dict(), "done": self.done}
        torch.save(state, folder / "checkpoint.new")
        (folder / "checkpoint.new").replace(folder / "checkpoint.pt")

    def start(self, adapter: Path) -> None:
        """Start from the weights of an adapter that `export` wrote."""
        from peft import set_peft_model_state_dict
        from safetensors.torch import load_file

        set_peft_model_state_dict(self.module, load_file(adapter / "adapter_model.safetensors"))
        with torch.no_grad():
            for exact, rounded in zip(self.exact, self.rounded, strict=True):
                exact.copy_(rounded)

    def resume(self, folder: Path) -> None:
        """Resume from the folder's checkpoint, if it has one."""
        if not (folder / "checkpoint.pt").exists():
            return
        state = torch.load(folder / "checkpoint.pt", weights_only=True)
        self.optimizer.load_state_dict(state["optimizer"])
        self.done = state["done"]
        with torch.no_grad():
            for exact, rounded, known in zip(self.exact, self.rounded, state["exact"], strict=True):
                exact.copy_(known)
                rounded.copy_(known)

    def export(self, out: Path) -> None:
        """Write the adapter in peft's format under its base's public name. The folder's README.md is not changed."""
        from peft import get_peft_model_state_dict
        from safetensors.torch import save_file

        out.mkdir(parents=True, exist_ok=True)
        weights = {name: tensor.contiguous() for name, tensor in get_peft_model_state_dict(self.module).items()}
        save_file(weights, out / "adapter_model.safetensors", metadata={"format": "pt"})
        config = copy(self.module.peft_config["default"])
        config.base_model_name_or_path, config.inference_mode = BASE, True
        config.save_pretrained(str(out))


def train(asked: argparse.Namespace, recipe: Recipe) -> None:
    """Train until all steps are done or time is up, then write the adapter to `--out`."""
    work, total = asked.work, asked.steps
    work.mkdir(parents=True, exist_ok=True)
    files = [work / f"examples.{number}.jsonl" for number in range(asked.writers)]
    count = 2 * (total + 2 + recipe.easy // STEP_EXAMPLES) * STEP_EXAMPLES // asked.writers  # over-long ones go
    writing = [
        multiprocessing.get_context("spawn").Process(
            target=write_examples,
            args=(asked.data, asked.made, file, count, recipe.seed + place * 1_000_003),
            daemon=True,
        )
        for place, file in enumerate(files)
    ]
    if not rank():
        for process in writing:
            process.start()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    module = base("bfloat16", device).module
    if device == "cpu":
        module.set_attn_implementation("eager")  # a tenth faster than the fused kernel at these lengths
    trainer = Trainer(module, recipe, total)
    if asked.start:
        trainer.start(asked.start)
    if asked.compile:
        module.model.compile(dynamic=True)
    trainer.resume(work)
    stream = steps(in_turn([rows(file) for file in files]), recipe)
    for _ in range(trainer.done):
        next(stream)
    start, moving, passed = time.monotonic(), dict[str, float](), 0.0
    while trainer.done < total and passed < 1:
        for job, values in trainer.step(next(stream), passed).items():
            mean = sum(values) / len(values)
            moving[job] = mean if job not in moving else 0.8 * moving[job] + 0.2 * mean
        passed = (time.monotonic() - start) / (60 * asked.minutes)
        if trainer.done % 5 == 0 and not rank():
            said = " ".join(f"{job} {value:.2f}" for job, value in sorted(moving.items()))
            print(f"{trainer.done}/{total} {time.monotonic() - start:.0f} s: {said}", flush=True)
        if trainer.done % (25 if device == "cpu" else 500) == 0 and not rank():
            trainer.save(work)
            trainer.export(work / "adapter")
    if not rank():
        trainer.save(work)
        trainer.export(asked.out)
        for process in writing:
            process.terminate()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--made", type=Path, help="folder that training.made_text wrote")
    parser.add_argument("--out", type=Path, default=Path("assets/models/adapter"))
    parser.add_argument("--work", type=Path, default=Path("build/adapter"))
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--writers", type=int, default=1, help="processes that write examples")
    parser.add_argument("--start", type=Path, help="an adapter to begin with instead of none")
    parser.add_argument(
        "--compile", action="store_true", help="1.5 times as fast after three minutes; needs a C++ compiler"
    )
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    if "RANK" in os.environ:
        torch.distributed.init_process_group("gloo")
    random.seed(Recipe().seed)
    train(asked, Recipe())


if __name__ == "__main__":
    main()
