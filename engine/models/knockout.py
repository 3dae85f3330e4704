"""Attention knockout: an answer's log-probabilities when nothing after the prompt's sources attends to one of them.

The prompt is read once; what follows the last source, and the answer, is read again for each source with its keys
masked (Geva et al., 2023, section 5, there for single edges between positions). Several sources share a forward pass:
their copies of that text stand side by side, each blind to the others. The sources keep the information that they took
from each other while the prompt was read, so this approximates leaving a source out, at a fraction of its cost.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from engine.core.progress import Watch
from engine.models import scoring
from engine.models.hooks import cancellable
from engine.models.protocols import Ids, LogProbs

Removed = Sequence[frozenset[int]]


def knockout_scores(module: Any, ids: Ids, removed: Removed, answer: Ids, watch: Watch = Watch()) -> LogProbs | None:
    """log p(answer) in nats: nothing masked, then the prompt positions `removed[j]`; shape (1 + len(removed), tokens).

    None where the model's attention takes no such mask, keeps no keys, or memory for it ran out, and where the prompt
    ends in a source: the answer's first token is then predicted inside it.
    """
    first = 1 + max(max(positions) for positions in removed)
    if first == len(ids) or not _takes_masks(module):
        return None
    with torch.no_grad(), cancellable(module, watch):
        return scoring.if_it_fits(partial(_scores, module, ids, first, removed, answer, watch))


def _scores(module: Any, ids: Ids, first: int, removed: Removed, answer: Ids, watch: Watch) -> LogProbs | None:
    """The same; `first` is the prompt's position after its last source. None where the model keeps no keys."""
    full, cache = scoring.read_whole(module, ids, answer)
    if cache is None:
        return None
    tail = [*ids[first:], *answer[:-1]]
    together = max(1, min(len(ids), scoring.CPU_TOKENS) // len(tail))
    rows: list[LogProbs] = []
    for done in range(0, len(removed), together):
        watch.step("knocking out", done, len(removed))
        rows += _masked(module, scoring.begin_at(cache, first), first, tail, removed[done : done + together], answer)
    watch.report("knocking out", len(rows), len(removed))
    return np.stack([full, *rows])


def _takes_masks(module: Any) -> bool:
    """Whether a mask of every query and key is used as it is, by every layer, at the positions given."""
    config = module.config.get_text_config()
    return (
        scoring.layer_kinds(module) <= {"full_attention"}
        and getattr(config, "sliding_window", None) is None
        and module.config._attn_implementation in {"sdpa", "eager"}
        and {"position_ids", "attention_mask"} <= set(inspect.signature(module.forward).parameters)
    )


def _masked(module: Any, cache: Any, first: int, tail: Ids, removed: Removed, answer: Ids) -> list[LogProbs]:
    """The answer's log-probabilities after one copy of the tail for each of `removed`, in one forward pass."""
    device, count, length = module.get_input_embeddings().weight.device, len(removed), len(tail)
    own = torch.eye(count, dtype=torch.bool)[:, None, :, None]
    earlier = torch.ones(length, length, dtype=torch.bool).tril()[None, :, None, :]
    before = torch.ones(count, first, dtype=torch.bool)
    for row, positions in zip(before, removed, strict=True):
        row[list(positions)] = False
    seen = torch.cat(
        [before.repeat_interleave(length, 0), (own & earlier).reshape(count * length, count * length)], dim=1
    )
    mask = torch.zeros(seen.shape, dtype=module.dtype).masked_fill(~seen, torch.finfo(module.dtype).min)
    ends = torch.arange(count * length).view(count, length)[:, -len(answer) :].reshape(1, -1)
    logits = scoring.answer_logits(
        module,
        scoring.row_of(module, [*tail] * count),
        ends.to(device),
        position_ids=torch.arange(first, first + length, device=device).repeat(count)[None],
        attention_mask=mask[None, None].to(device),
        past_key_values=cache,
        use_cache=True,
    )[0]
    return list(scoring.logprobs_of([*answer] * count, logits).view(count, len(answer)).cpu().double().numpy())
