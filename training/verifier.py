"""Train the embedded verifier: `python -m training.verifier --data DIR --minutes 90`.

Low-rank adapters (Hu et al. 2021, LoRA) on every matrix of all-MiniLM-L6-v2, its biases and norms, sixteen token
types and a three-way head, by cross-entropy on the mixed pairs of `verifier_pairs`, bf16 autocast where the processor
has it, a linear decay over the given time, and a running mean of the weights, which is what is saved. Then
`verifier_calibration` fits scale, bias and thresholds on the dev halves.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import nn
from torch.nn.utils import parametrize

from engine.models.embedder import fast_bfloat16
from engine.models.verifier import FOLDER
from engine.models.verifier_network import (
    ADAPTER,
    REST,
    EvidenceNetwork,
    base_network,
    collate,
    encode,
)
from training.verifier_calibration import calibrate_folder
from training.verifier_data import Pair, load_pools
from training.verifier_pairs import draw

RANK = 64
SCALE = 2.0
LIMIT = 112  # tokens of a training pair
TARGETS = (
    r"encoder\.layer\.\d+\."
    r"(attention\.self\.(query|key|value)|attention\.output\.dense|intermediate\.dense|output\.dense)"
)


@dataclass(frozen=True)
class Recipe:
    """Settings of one training."""

    minutes: float = 90.0
    rate: float = 6e-4  # peak learning rate of the adapters
    tokens: int = 4096  # padded tokens in a batch
    smoothing: float = 0.03
    seed: int = 1337
    average: float = 0.995  # running mean of the weights


class LowRank(nn.Module):
    """W + scale * B A as a parametrisation of a weight matrix."""

    def __init__(self, rows: int, columns: int) -> None:
        """Adapters of rank `RANK` for a matrix of shape (rows, columns)."""
        super().__init__()
        self.a = nn.Parameter(torch.randn(RANK, columns) / (3 * columns) ** 0.5)
        self.b = nn.Parameter(torch.zeros(rows, RANK))

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        """The adapted matrix."""
        return weight + SCALE * (self.b @ self.a)


def add_adapters(network: EvidenceNetwork) -> None:
    """Freeze the encoder's matrices and embeddings, and adapt every linear layer in place."""
    for parameter in network.encoder.parameters():
        parameter.requires_grad_(parameter.ndim == 1)
    network.encoder.embeddings.token_type_embeddings.weight.requires_grad_(True)
    for module in network.encoder.encoder.modules():
        if type(module) is nn.Linear:
            parametrize.register_parametrization(module, "weight", LowRank(*module.weight.shape))
    for name, parameter in network.named_parameters():
        if "original" in name:
            parameter.requires_grad_(False)


def batches(
    tokenizer: Any, pairs: Iterator[Pair], recipe: Recipe
) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]:
    """Batches of similar length from a pool of 1,024 pairs, in random order."""
    rng = Random(recipe.seed + 1)
    while True:
        pool = [next(pairs) for _ in range(1024)]
        encoded = encode(tokenizer, [(claim, evidence) for claim, evidence, _ in pool], LIMIT)
        order = sorted(range(len(pool)), key=lambda i: (len(encoded[i][0]), rng.random()))
        groups: list[list[int]] = [[]]
        for i in order:
            if (len(groups[-1]) + 1) * len(encoded[i][0]) > recipe.tokens:
                groups.append([])
            groups[-1].append(i)
        rng.shuffle(groups)
        for group in groups:
            yield collate([encoded[i] for i in group]), torch.tensor([pool[i][2] for i in group])


def parameter_groups(network: EvidenceNetwork, rate: float) -> list[dict[str, Any]]:
    """Adapters and norms at `rate`, head at 1.5 times, token types at 3 times."""
    groups: dict[float, list[nn.Parameter]] = {1.0: [], 1.5: [], 3.0: []}
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            groups[1.5 if name.startswith("head") else 3.0 if "token_type" in name else 1.0].append(parameter)
    return [{"params": members, "lr": rate * k, "peak": rate * k} for k, members in groups.items()]


def train(network: EvidenceNetwork, tokenizer: Any, folder: Path, recipe: Recipe, out: Path) -> None:
    """Train for `recipe.minutes`; save the averaged weights to `out` every eight minutes and at the end."""
    add_adapters(network)
    averaged = copy.deepcopy(network)
    optimizer = torch.optim.AdamW(parameter_groups(network, recipe.rate), weight_decay=0.01, betas=(0.9, 0.98))
    stream = batches(tokenizer, draw(load_pools(folder), Random(recipe.seed)), recipe)
    criterion = nn.CrossEntropyLoss(label_smoothing=recipe.smoothing)
    start, step, seen, loss_mean, saved = time.monotonic(), 0, 0, 1.1, 0.0
    while (progress := (time.monotonic() - start) / (60 * recipe.minutes)) < 1.0:
        inputs, labels = next(stream)
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * min(1.0, (step + 1) / 100) * (1.0 - progress)
        network.train()
        with torch.autocast("cpu", torch.bfloat16, enabled=fast_bfloat16()):
            loss = criterion(network(**inputs), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step, seen, loss_mean = step + 1, seen + len(labels), 0.98 * loss_mean + 0.02 * float(loss.detach())
        average(averaged, network, min(recipe.average, step / (step + 10)))
        if step % 50 == 0:
            elapsed = time.monotonic() - start
            print(
                f"step {step} pairs {seen} {seen / elapsed:.0f}/s loss {loss_mean:.3f} {elapsed / 60:.1f} min",
                flush=True,
            )
        if time.monotonic() - start - saved > 480:
            saved = time.monotonic() - start
            save(trained(averaged), out)
    save(trained(averaged), out)


def average(averaged: EvidenceNetwork, network: EvidenceNetwork, keep: float) -> None:
    """Move the running mean of the trained weights towards `network`'s, in place; `keep` in [0, 1] of it stays."""
    with torch.no_grad():
        for mean, new in zip(averaged.parameters(), network.parameters(), strict=True):
            if new.requires_grad:
                mean.lerp_(new, 1.0 - keep)


def trained(network: EvidenceNetwork) -> dict[str, torch.Tensor]:
    """The trained tensors by name."""
    return {n: p.detach().clone() for n, p in network.named_parameters() if p.requires_grad}


def save(tensors: dict[str, torch.Tensor], folder: Path) -> None:
    """Write adapter (peft's layout, bfloat16) and the rest; names as `trained` gives them."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    factors, rest = {}, {}
    for name, tensor in tensors.items():
        if name.endswith(("weight.0.a", "weight.0.b")):
            module = name.removeprefix("encoder.").removesuffix(name[-len(".parametrizations.weight.0.a") :])
            factors[f"base_model.model.{module}.lora_{name[-1].upper()}.weight"] = tensor.bfloat16().contiguous()
        else:
            rest[name] = tensor.bfloat16() if tensor.ndim > 1 else tensor
    save_file(factors, folder / ADAPTER, metadata={"format": "pt"})
    save_file(rest, folder / REST, metadata={"format": "pt"})
    for name in (ADAPTER, REST):
        (folder / name).chmod(0o644)
    (folder / "adapter_config.json").write_text(json.dumps(adapter_config(), indent=1) + "\n", encoding="utf-8")


def adapter_config() -> dict[str, Any]:
    """The configuration by which peft loads the adapter on the base."""
    return {
        "peft_type": "LORA",
        "base_model_name_or_path": "sentence-transformers/all-MiniLM-L6-v2",
        "r": RANK,
        "lora_alpha": int(SCALE * RANK),
        "lora_dropout": 0.0,
        "bias": "none",
        "inference_mode": True,
        "target_modules": TARGETS,
    }


def main() -> None:
    """Read the arguments, train, save, calibrate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    parser.add_argument("--minutes", type=float, default=Recipe.minutes)
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder that gets adapter, head and thresholds")
    parser.add_argument("--threads", type=int, default=1, help="more only on cores with nothing else to do")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(Recipe.seed)
    network, tokenizer = base_network()
    recipe = Recipe(minutes=arguments.minutes)
    train(network, tokenizer, arguments.data, recipe, arguments.out)
    calibrate_folder(arguments.data, arguments.out)


if __name__ == "__main__":
    main()
