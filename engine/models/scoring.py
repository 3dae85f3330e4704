"""Teacher-forced log-probabilities of one answer after many prompts, exact row by row.

Rows are sorted by length and padded on the right. A causal model's position never sees what follows it, so
right padding needs neither a mask nor positions and is exact for every architecture: attention, sliding
windows, short convolutions. Only the answer's positions go through the output layer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from engine.errors import Cancelled, ModelError
from engine.models.hooks import cancellable, picked_positions
from engine.models.memory import free_memory, is_out_of_memory, row_bytes
from engine.progress import Watch

CPU_TOKENS = 1024  # more at once gains nothing on a CPU (measured from 60 to 880 tokens a row) and delays cancelling
GPU_TOKENS = 65536
Floats = NDArray[np.float64]
T = TypeVar("T")


def score_rows(
    module: Any,
    rows: Sequence[Sequence[int]],
    answer: Sequence[int],
    watch: Watch | None = None,
    limit: int | None = None,
) -> Floats:
    """log p(answer[t] | rows[i], answer[:t]) in nats, float64, shape (len(rows), len(answer)).

    `limit` caps the rows of a batch. A batch that does not fit into memory is halved, and `watch` hears of it.
    Raises `ModelError` where a lone row does not fit, `Cancelled` where the watch says so;
    its `partial` are the scores so far, longest rows first, nan where a row was not reached.
    """
    scores = np.full((len(rows), len(answer)), np.nan)
    if not rows or not answer:
        return scores
    if any(not row for row in rows):
        raise ModelError("An empty prompt gives the first token nothing to follow. Give at least one token.")
    pending = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    size = min(limit or len(rows), batch_size(module, len(rows[pending[0]]) + len(answer), len(answer)))
    watch = watch or Watch()
    try:
        with cancellable(module, watch):
            while pending:
                watch.step("scoring", len(rows) - len(pending), len(rows))
                batch = pending[:size]
                done = if_it_fits(partial(score_batch, module, [rows[i] for i in batch], answer))
                if done is None:
                    size = halved("scoring", len(batch), watch, len(rows) - len(pending), len(rows))
                    continue
                scores[batch] = done
                pending = pending[size:]
    except Cancelled as stopped:
        raise Cancelled(str(stopped), scores) from stopped
    watch.report("scoring", len(rows), len(rows))
    return scores


def batch_size(module: Any, longest: int, answer: int) -> int:
    """Rows a batch of `longest` tokens each: what half of the free memory holds, capped by tokens; at least 1."""
    device = next(module.parameters()).device
    tokens = CPU_TOKENS if device.type == "cpu" else GPU_TOKENS
    room = free_memory(device.type) // 2 // max(row_bytes(module.config, longest, answer), 1)
    return max(1, min(tokens // longest, room))


def halved(stage: str, rows: int, watch: Watch, done: int, total: int) -> int:
    """Half of the rows that did not fit into memory, said to `watch`; raise `ModelError` for one alone."""
    if rows == 1:
        raise ModelError(
            "One prompt alone does not fit into memory. Use fewer or shorter passages, bfloat16, or a smaller model."
        )
    watch.report(f"{stage}: out of memory with {rows} prompts at once, going on with {rows // 2}", done, total)
    return rows // 2


def if_it_fits(batch: Callable[[], T]) -> T | None:
    """What a batch gives; None where memory ran out."""
    try:
        return batch()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None


@torch.no_grad()
def score_batch(module: Any, rows: Sequence[Sequence[int]], answer: Sequence[int]) -> Floats:
    """One forward over right-padded rows + answer; shape (len(rows), len(answer))."""
    device = module.get_input_embeddings().weight.device
    starts = [len(row) - 1 for row in rows]  # the position that predicts answer[0]
    longest = max(starts) + len(answer)  # the answer's last token predicts nothing that is asked for
    ids = torch.zeros((len(rows), longest), dtype=torch.long)
    for i, row in enumerate(rows):
        full = [*row, *answer[:-1]]
        ids[i, : len(full)] = torch.tensor(full)
    wanted = torch.tensor(starts, device=device)[:, None] + torch.arange(len(answer), device=device)
    logits = answer_logits(module, ids.to(device), wanted)
    target = torch.tensor(list(answer), device=logits.device)[:, None]
    scores = np.empty((len(rows), len(answer)))
    for i in range(len(rows)):
        own = logits[i].float().log_softmax(-1)
        scores[i] = own.gather(-1, target)[:, 0].cpu().numpy()
    return scores


@torch.no_grad()
def continuation_scores(module: Any, ids: Sequence[int], continuations: Sequence[Sequence[int]]) -> Floats:
    """log p(continuation | ids) in nats, shape (len(continuations),); with a cache the prompt is read once."""
    device = module.get_input_embeddings().weight.device
    extra = {"logits_to_keep": 1} if takes_logits_to_keep(module) else {}
    out = module(input_ids=torch.tensor([list(ids)], device=device), use_cache=True, **extra)
    first, cache = out.logits[0, -1].float().log_softmax(-1), getattr(out, "past_key_values", None)
    if cache is None:
        return np.array([score_batch(module, [ids], one).sum() for one in continuations])
    sums = []
    for one in continuations:
        total = float(first[one[0]])
        if len(one) > 1:
            fed = torch.tensor([list(one[:-1])], device=device)
            logits = module(input_ids=fed, past_key_values=deepcopy(cache), use_cache=True).logits[0].float()
            total += float(logits.log_softmax(-1).gather(-1, torch.tensor(one[1:], device=device)[:, None]).sum())
        sums.append(total)
    return np.array(sums)


def answer_logits(module: Any, ids: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Logits at positions `wanted` (rows, tokens) of each row; shape (rows, tokens, vocabulary).

    The output layer is the dearest of a small model with a large vocabulary, and rows of unequal length need
    different positions: they are picked before it where the architecture lets a hook do so, else after.
    """
    first = int(wanted.min())
    keep = ids.shape[1] - first
    extra = {"logits_to_keep": keep} if takes_logits_to_keep(module) else {}
    with picked_positions(module, wanted - first, keep):
        logits: torch.Tensor = module(input_ids=ids, use_cache=False, **extra).logits
    if logits.shape[1] == wanted.shape[1]:
        return logits
    place = (wanted - first + logits.shape[1] - keep).to(logits.device)
    return torch.stack([row[positions] for row, positions in zip(logits, place, strict=True)])


def takes_logits_to_keep(module: Any) -> bool:
    """Whether the model's forward can leave out the output layer where nobody asks."""
    return "logits_to_keep" in inspect.signature(module.forward).parameters
