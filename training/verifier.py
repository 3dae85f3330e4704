"""Train a verifier: `python -m training.verifier --data DIR [--base all-mpnet-base-v2] [--teacher FILE]`.

Low-rank adapters (Hu et al. 2021, LoRA) on every matrix of the base, its biases and norms, sixteen token types and a
three-way head, by cross-entropy: towards the label on the mixed pairs of `verifier_pairs`, and towards the shares that
the teacher (`verifier_teacher`) gives the classes on what a model wrote (distillation, Hinton et al. 2015). A later
training can start from the weights of an earlier one, and be saved as the mean with another (`mix`). bf16 autocast
where the hardware has it, linear decay, and a running mean of the weights, which is what is saved. Then
`verifier_calibration` fits scale, bias and thresholds on the dev halves. On a GPU the recipe is the same and takes
minutes.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrize

from engine.models.choices import fast_bfloat16
from engine.models.embedder import DEFAULT
from engine.models.protocols import Floats
from engine.models.verifier import FOLDER
from engine.models.verifier_network import ADAPTER, REST, Encoded, EvidenceNetwork, base_network, collate, encode
from training.verifier_calibration import calibrate_folder
from training.verifier_data import Pair
from training.verifier_pairs import training_pairs

SCALE = 2.0
LIMIT = 144  # tokens of a training pair
POOL = 4096  # pairs that are sorted into batches together
DRAWN = 100_000


@dataclass(frozen=True)
class Recipe:
    """Settings of one training."""

    rank: int = 64
    pairs: int = 300_000  # seen in all; a pair of the list is seen again when the list is through
    rate: float = 6e-4  # peak learning rate of the adapters
    tokens: int = 4096  # padded tokens in a batch
    smoothing: float = 0.03
    times: int = 3  # how often a pair that a model wrote is in the list
    seed: int = 1337
    average: float = 0.998  # running mean of the weights


class LowRank(nn.Module):
    """W + scale * B A as a parametrisation of a weight matrix."""

    def __init__(self, rows: int, columns: int, rank: int) -> None:
        """Adapters of `rank` for a matrix of shape (rows, columns)."""
        super().__init__()
        self.a = nn.Parameter(torch.randn(rank, columns) / (3 * columns) ** 0.5)
        self.b = nn.Parameter(torch.zeros(rows, rank))

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        """The adapted matrix."""
        return weight + SCALE * (self.b @ self.a)


def add_adapters(network: EvidenceNetwork, rank: int) -> None:
    """Freeze the encoder's matrices and embeddings, and adapt every linear layer in place."""
    for parameter in network.encoder.parameters():
        parameter.requires_grad_(parameter.ndim == 1)
    for module in network.encoder.encoder.modules():
        if type(module) is nn.Linear:
            parametrize.register_parametrization(
                module, "weight", LowRank(module.weight.shape[0], module.weight.shape[1], rank)
            )
    for name, parameter in network.named_parameters():
        if "original" in name:
            parameter.requires_grad_(False)


@dataclass(frozen=True)
class Wanted:
    """Encoded pairs and the shares of the classes that are wanted of each, shape (pairs, 3)."""

    encoded: list[Encoded]
    shares: Floats


def wanted(
    tokenizer: Any, drawn: Sequence[Pair], made: Sequence[Pair], taught: Floats | None, recipe: Recipe
) -> Wanted:
    """The training examples; `taught`: the teacher's shares of the classes for `made`, shape (made, 3), or None."""

    def of_labels(pairs: Sequence[Pair]) -> Floats:
        labels = np.array([label for _, _, label in pairs], dtype=np.int64)
        smoothed: Floats = np.eye(3, dtype=np.float32)[labels] * (1 - recipe.smoothing) + recipe.smoothing / 3
        return smoothed

    shares = [of_labels(drawn)] + [of_labels(made) if taught is None else taught] * recipe.times
    encoded, more = (encode(tokenizer, [(c, e) for c, e, _ in pairs], LIMIT) for pairs in (drawn, made))
    return Wanted(encoded + more * recipe.times, np.concatenate(shares))


def batches(found: Wanted, recipe: Recipe) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]:
    """Batches of similar length, in random order, without end."""
    rng = Random(recipe.seed + 1)
    while True:
        order = list(range(len(found.encoded)))
        rng.shuffle(order)
        for first in range(0, len(order), POOL):
            yield from _of_pool(found, order[first : first + POOL], recipe, rng)


def _of_pool(
    found: Wanted, pool: Sequence[int], recipe: Recipe, rng: Random
) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]:
    groups: list[list[int]] = [[]]
    for i in sorted(pool, key=lambda i: (len(found.encoded[i][0]), rng.random())):
        if (len(groups[-1]) + 1) * len(found.encoded[i][0]) > recipe.tokens:
            groups.append([])
        groups[-1].append(i)
    rng.shuffle(groups)
    for group in groups:
        yield collate([found.encoded[i] for i in group]), torch.from_numpy(found.shares[group])


def parameter_groups(network: EvidenceNetwork, rate: float) -> list[dict[str, Any]]:
    """Adapters and norms at `rate`, head at 1.5 times, token types at 3 times."""
    groups: dict[float, list[nn.Parameter]] = {1.0: [], 1.5: [], 3.0: []}
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            groups[1.5 if name.startswith("head") else 3.0 if name.startswith("types") else 1.0].append(parameter)
    return [{"params": members, "lr": rate * k, "peak": rate * k} for k, members in groups.items()]


def take_up(network: EvidenceNetwork, folder: Path) -> None:
    """Put what `save` wrote to `folder` into an adapted network of the same rank, in place."""
    from safetensors.torch import load_file

    known = {name: tensor.float() for name, tensor in load_file(folder / REST).items()}
    for name, tensor in load_file(folder / ADAPTER).items():
        module, factor = name.removeprefix("base_model.model.").removesuffix(".weight").split(".lora_")
        known[f"encoder.{module}.parametrizations.weight.0.{factor.lower()}"] = tensor.float()
    unknown = network.load_state_dict(known, strict=False).unexpected_keys
    if unknown:
        raise KeyError(f"{folder} has weights of another network: {', '.join(unknown)}")


def train(network: EvidenceNetwork, found: Wanted, recipe: Recipe, out: Path, base: str) -> None:
    """Train until `recipe.pairs` are seen; save the averaged weights to `out` every eight minutes and at the end."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network.to(device)
    averaged = copy.deepcopy(network)
    optimizer = torch.optim.AdamW(parameter_groups(network, recipe.rate), weight_decay=0.01, betas=(0.9, 0.98))
    stream = batches(found, recipe)
    start, step, seen, loss_mean, saved = time.monotonic(), 0, 0, 1.1, 0.0
    while seen < recipe.pairs:
        inputs, shares = next(stream)
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * min(1.0, (step + 1) / 100) * (1.0 - seen / recipe.pairs)
        network.train()
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda" or fast_bfloat16()):
            loss = nn.functional.cross_entropy(network(**inputs), shares.to(device))
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step, seen = step + 1, seen + len(shares)
        average(averaged, network, min(recipe.average, step / (step + 10)))
        if step % 50 == 0:
            elapsed, loss_mean = time.monotonic() - start, 0.6 * loss_mean + 0.4 * float(loss.detach())
            print(f"step {step} pairs {seen} {seen / elapsed:.0f}/s loss {loss_mean:.3f} {elapsed:.0f} s", flush=True)
        if time.monotonic() - start - saved > 480:
            saved = time.monotonic() - start
            save(trained(averaged), out, base)
    save(trained(averaged), out, base)


def mix(other: Path, out: Path, share: float) -> None:
    """Move the weights in `out` towards `other`'s: `share` in [0, 1] of these.

    The mean of two trainings from one start (model soups), or of a training and its start (WiSE-FT; both Wortsman et
    al. 2022): fine-tuned weights lose on text of other kinds, and the mean keeps most of what both have learned.
    """
    from safetensors.torch import load_file, save_file

    for name in (ADAPTER, REST):
        old, new = load_file(other / name), load_file(out / name)
        mean = {key: new[key].float().lerp(old[key].float(), share).to(new[key].dtype) for key in new}
        save_file(mean, out / name, metadata={"format": "pt"})
        (out / name).chmod(0o644)


def average(averaged: EvidenceNetwork, network: EvidenceNetwork, keep: float) -> None:
    """Move the running mean of the trained weights towards `network`'s, in place; `keep` in [0, 1] of it stays."""
    with torch.no_grad():
        for mean, new in zip(averaged.parameters(), network.parameters(), strict=True):
            if new.requires_grad:
                mean.lerp_(new, 1.0 - keep)


def trained(network: EvidenceNetwork) -> dict[str, torch.Tensor]:
    """The trained tensors by name."""
    return {n: p.detach().cpu().clone() for n, p in network.named_parameters() if p.requires_grad}


def save(tensors: dict[str, torch.Tensor], folder: Path, base: str) -> None:
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
    rank = len(next(tensor for name, tensor in factors.items() if name.endswith("lora_A.weight")))
    (folder / "adapter_config.json").write_text(
        json.dumps(adapter_config(base, sorted({name.split(".")[-3] for name in factors}), rank), indent=1) + "\n",
        encoding="utf-8",
    )


def adapter_config(base: str, modules: list[str], rank: int) -> dict[str, Any]:
    """The configuration by which peft loads the adapter on the base."""
    return {
        "peft_type": "LORA",
        "base_model_name_or_path": f"sentence-transformers/{base}",
        "r": rank,
        "lora_alpha": int(SCALE * rank),
        "lora_dropout": 0.0,
        "bias": "none",
        "inference_mode": True,
        "target_modules": modules,
    }


def main() -> None:
    """Read the arguments, train, save, calibrate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    parser.add_argument("--made", type=Path, help="folder that training.made_text wrote")
    parser.add_argument("--teacher", type=Path, help="what training.verifier_teacher wrote for the made pairs")
    parser.add_argument("--base", default=DEFAULT, help="an installed embedder")
    parser.add_argument("--drawn", type=int, default=DRAWN, help="pairs of people and code")
    parser.add_argument("--pairs", type=int, default=Recipe.pairs)
    parser.add_argument("--tokens", type=int, default=Recipe.tokens)
    parser.add_argument("--rank", type=int, default=Recipe.rank)
    parser.add_argument("--rate", type=float, default=Recipe.rate)
    parser.add_argument("--seed", type=int, default=Recipe.seed, help="of the drawn pairs and their order")
    parser.add_argument("--start", type=Path, help="a folder of an earlier training to go on from")
    parser.add_argument("--times", type=int, default=Recipe.times, help="how often a made pair is in the list")
    parser.add_argument("--mix", type=Path, help="a folder of weights to save the mean with")
    parser.add_argument("--keep", type=float, default=0.5, help="share of the weights of --mix in that mean")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder that gets adapter, head and thresholds")
    parser.add_argument("--threads", type=int, default=1, help="more only on cores with nothing else to do")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    torch.manual_seed(asked.seed)
    network, tokenizer = base_network(asked.base)
    recipe = Recipe(
        rank=asked.rank, pairs=asked.pairs, rate=asked.rate, tokens=asked.tokens, times=asked.times, seed=asked.seed
    )
    add_adapters(network, recipe.rank)
    if asked.start:
        take_up(network, asked.start)
    drawn, made = training_pairs(asked.data, asked.made, asked.drawn, recipe.seed)
    taught = np.load(asked.teacher) if asked.teacher else None
    train(network, wanted(tokenizer, drawn, made, taught, recipe), recipe, asked.out, asked.base)
    if asked.mix:
        mix(asked.mix, asked.out, asked.keep)
    calibrate_folder(asked.data, asked.out)


if __name__ == "__main__":
    main()
