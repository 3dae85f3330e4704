"""Train a re-ranker: `python -m training.reranker --data DIR --minutes 25 --out FOLDER`.

The verifier's network and adapters (`training.verifier`) on all-MiniLM-L6-v2 with one logit for (question,
passage), by softmax over a gold passage and three hard negatives (`reranker_data`), bf16 autocast where the processor
has it, a linear decay and a running mean of the weights. Minutes are processor time, so that a busy machine trains as
long. No weights are shipped: after 20 minutes they did not beat best-sentence similarity (`python -m bench.reranker`).
"""

from __future__ import annotations

import argparse
import copy
import time
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import nn

from engine.models.embedder import fast_bfloat16, load_embedder
from engine.models.verifier_network import (
    EvidenceNetwork,
    base_network,
    collate,
    encode,
)
from training.reranker_data import SETS, Ask, Ranking, first_stage, groups, hard_negatives, load_set
from training.verifier import Recipe, add_adapters, average, parameter_groups, save, trained

HIDDEN = 256  # units of the head before the logit
GROUPS = 8  # questions in a batch
NEGATIVES = 3
LIMIT = 160  # tokens of a training pair


def ranking_network() -> tuple[EvidenceNetwork, Any]:
    """The untrained network with one logit, and its tokenizer."""
    network, tokenizer = base_network()
    network.head[-1] = nn.Linear(HIDDEN, 1)
    return network, tokenizer


def training_sets(folder: Path) -> list[tuple[Ranking, list[Ask], list[list[int]]]]:
    """The training part of each set with the hard negatives of its questions."""
    embedder = load_embedder()
    found = []
    for name in SETS:
        data = load_set(folder, name)
        questions = [ask for ask in data.questions if not data.held_out(ask.gold)]
        found.append((data, questions, hard_negatives(data, questions, first_stage(data, questions, embedder))))
    return found


def train(network: EvidenceNetwork, tokenizer: Any, folder: Path, recipe: Recipe, out: Path) -> None:
    """Train for `recipe.minutes` of processor time and save the averaged weights to `out`."""
    add_adapters(network)
    averaged = copy.deepcopy(network)
    optimizer = torch.optim.AdamW(parameter_groups(network, recipe.rate), weight_decay=0.01, betas=(0.9, 0.98))
    stream = groups(training_sets(folder), Random(recipe.seed), NEGATIVES)
    start, step, mean = time.process_time(), 0, 1.4
    while (progress := (time.process_time() - start) / (60 * recipe.minutes)) < 1.0:
        drawn = [next(stream) for _ in range(GROUPS)]
        pairs = [(question, text) for question, texts in drawn for text in texts]
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * min(1.0, (step + 1) / 100) * (1.0 - progress)
        network.train()
        with torch.autocast("cpu", torch.bfloat16, enabled=fast_bfloat16()):
            logits = network(**collate(encode(tokenizer, pairs, LIMIT))).reshape(GROUPS, NEGATIVES + 1)
            loss = nn.functional.cross_entropy(logits, torch.zeros(GROUPS, dtype=torch.long))
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step, mean = step + 1, 0.98 * mean + 0.02 * float(loss.detach())
        average(averaged, network, min(recipe.average, step / (step + 10)))
        if step % 50 == 0:
            print(f"step {step} loss {mean:.3f} {(time.process_time() - start) / 60:.1f} min", flush=True)
        if step % 300 == 0:
            save(trained(averaged), out)
    save(trained(averaged), out)


def main() -> None:
    """Read the arguments, train, save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    parser.add_argument("--minutes", type=float, default=25.0, help="of processor time")
    parser.add_argument("--out", type=Path, required=True, help="folder that gets adapter and head")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(Recipe.seed)
    network, tokenizer = ranking_network()
    train(network, tokenizer, arguments.data, Recipe(minutes=arguments.minutes, rate=4e-4), arguments.out)


if __name__ == "__main__":
    main()
