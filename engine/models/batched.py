"""Writing several answers at once: one forward a token for all rows, and every answer as if it were written alone.

Rows are padded on the left, so that all write at the same column; the padding is masked, and positions count from a
row's own first token. A batch adds up in another order than a lone row, so that logits differ in the last bits: where
a choice is so close that this could turn it, the row leaves the batch and is written again alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from engine.models.hooks import cancellable
from engine.models.memory import cache_values, free_memory, row_bytes
from engine.models.sampling import choose_clearly, last_logits, write_tokens
from engine.models.scoring import halved, if_it_fits
from engine.progress import Watch
from engine.settings import Decoding

CPU_ROWS, GPU_ROWS = 16, 64  # on a CPU 16 rows write 6 times as fast as one after the other, 4 rows 3 times (measured)
FLOOR = 1e-3  # nats, float32: over ten times what a batch moves a difference of two log-probabilities by
HALF_FLOOR = 0.5  # nats, bfloat16 and float16
Tokens = list[tuple[int, float]]  # ids with log-probabilities in nats, the end token included where it came


@dataclass(frozen=True)
class Asked:
    """An answer to be written: the prompt's ids, the most tokens, and how to choose them."""

    ids: Sequence[int]
    limit: int
    decoding: Decoding


@dataclass
class _Row:
    """An answer that is being written; `clear` until a choice was too close."""

    asked: Asked
    tokens: Tokens = field(default_factory=list)
    clear: bool = True
    ended: bool = False

    def __post_init__(self) -> None:
        self._generator = torch.Generator().manual_seed(self.asked.decoding.seed)

    def take(self, logits: torch.Tensor, logprobs: torch.Tensor, stop: frozenset[int], floor: float) -> int:
        """Choose the next token."""
        token, self.clear = choose_clearly(logits, self.asked.decoding, self._generator, floor)
        self.tokens.append((token, float(logprobs[token])))
        self.ended = not self.clear or token in stop or len(self.tokens) == self.asked.limit
        return token


def floor_of(dtype: torch.dtype) -> float:
    """The least distance in nats at which a choice made in a batch is taken for the one made alone."""
    return FLOOR if dtype in (torch.float32, torch.float64) else HALF_FLOOR


def write_rows(
    module: Any, asked: Sequence[Asked], stop: frozenset[int], watch: Watch | None = None, rows: int = GPU_ROWS
) -> list[Tokens]:
    """What `write_alone` gives for each of `asked`: the same ids, log-probabilities within `floor_of`.

    `rows` caps the rows of a batch. One that does not fit into memory is halved; `watch` hears of that, and of how many
    answers were written again alone. Raises `Cancelled` between two layers, `ModelError` where one row is too big.
    """
    watch = watch or Watch()
    written: dict[int, Tokens] = {i: [] for i, one in enumerate(asked) if not one.limit}
    pending = sorted((i for i in range(len(asked)) if i not in written), key=lambda i: -len(asked[i].ids))
    close: list[int] = []
    while pending:
        size = min(rows, rows_at_once(module, asked[pending[0]]), len(pending))
        batch = [asked[i] for i in pending[:size]]
        found = if_it_fits(partial(write_batch, module, batch, stop, _part(watch, len(written), len(asked))))
        if found is None:
            rows = halved("writing", size, watch, len(written), len(asked))
            continue
        close += [i for i, tokens in zip(pending, found, strict=False) if tokens is None]
        written |= {i: tokens for i, tokens in zip(pending, found, strict=False) if tokens is not None}
        pending = pending[size:]
    for i in close:
        watch.step(f"writing {len(close)} answers again, alone, for a choice too close", len(written), len(asked))
        written[i] = write_alone(module, asked[i], stop, Watch(cancel=watch.cancel))
    return [written[i] for i in range(len(asked))]


def rows_at_once(module: Any, longest: Asked) -> int:
    """Rows of a batch: those whose activations and cache half of the free memory holds, capped; at least 1."""
    device = module.get_input_embeddings().weight.device
    tokens, config = len(longest.ids), module.config
    cache = (tokens + longest.limit) * cache_values(config) * module.dtype.itemsize
    room = free_memory(device.type) // 2 // int(row_bytes(config, tokens, 1) + cache)
    return max(1, min(CPU_ROWS if device.type == "cpu" else GPU_ROWS, room))


def write_alone(module: Any, asked: Asked, stop: frozenset[int], watch: Watch | None = None) -> Tokens:
    """One answer up to its end token or its limit."""
    tokens: Tokens = []
    for pair in write_tokens(module, asked.ids, asked.decoding, asked.limit, watch):
        tokens.append(pair)
        if pair[0] in stop:
            break
    return tokens


def write_batch(module: Any, asked: Sequence[Asked], stop: frozenset[int], watch: Watch) -> list[Tokens | None]:
    """One batch; None for a row with a choice closer than the floor. A lone row is written as it is alone."""
    if len(asked) == 1:
        return [write_alone(module, asked[0], stop, Watch(cancel=watch.cancel))]
    rows = [_Row(one) for one in asked]
    fed, mask = padded([one.ids for one in asked], module.get_input_embeddings().weight.device)
    cache, going, floor = None, rows, floor_of(module.dtype)
    while going:
        watch.step("writing", len(rows) - len(going), len(rows))
        with cancellable(module, watch):
            logits, cache = last_logits(module, fed, cache, **positions(module, mask, fed.shape[1]))
        logprobs = logits.log_softmax(-1)
        new = [row.take(*of, stop, floor) for row, of in zip(going, zip(logits, logprobs, strict=True), strict=True)]
        left = [i for i, row in enumerate(going) if not row.ended]
        fed, mask, cache = _grown(fed, mask, cache, torch.tensor(new, device=fed.device)[:, None], left)
        going = [going[i] for i in left]
    return [row.tokens if row.clear else None for row in rows]


def padded(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids padded on the left, and the mask that is 0 on the padding; both of shape (rows, longest)."""
    longest = max(map(len, rows))
    ids = torch.zeros((len(rows), longest), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, longest - len(row) :] = torch.tensor(list(row))
        mask[i, longest - len(row) :] = 1
    return ids.to(device), mask.to(device)


def positions(module: Any, mask: torch.Tensor, fed: int) -> dict[str, torch.Tensor]:
    """What a forward over the last `fed` columns has to know of the padding."""
    known = {"attention_mask": mask}
    if "position_ids" in inspect.signature(module.forward).parameters:
        known["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)[:, -fed:]
    return known


def _grown(
    fed: torch.Tensor, mask: torch.Tensor, cache: Any, new: torch.Tensor, left: Sequence[int]
) -> tuple[torch.Tensor, torch.Tensor, Any]:
    """What is fed next, its mask and cache, without the rows that ended; everything is fed again without a cache."""
    mask = torch.cat([mask, torch.ones_like(new)], dim=1)
    fed = new if cache is not None else torch.cat([fed, new], dim=1)
    if len(left) == len(fed):
        return fed, mask, cache
    index = torch.tensor(left, dtype=torch.long, device=fed.device)
    if cache is not None and left:
        cache.reorder_cache(index)
    return fed[index], mask[index], cache


def _part(watch: Watch, done: int, total: int) -> Watch:
    """The watch of a batch, whose rows are a part of all."""
    return Watch(report=lambda stage, ended, _: watch.report(stage, done + ended, total), cancel=watch.cancel)


def pads_exactly(module: Any) -> bool:
    """Whether a padded row's log-probabilities are those of the lone row, measured on three short rows.

    Also after a row has left the batch. A model that does not take a mask, or reads its padding all the same, writes
    one answer after the other.
    """
    vocabulary, device = module.config.get_text_config().vocab_size, module.get_input_embeddings().weight.device
    rows = [[(7 * i + 3 * n) % vocabulary for i in range(n)] for n in (9, 4, 6)]
    new, left = torch.tensor([[5 % vocabulary]] * len(rows), device=device), [1, 2]
    try:
        fed, mask = padded(rows, device)
        first, cache = last_logits(module, fed, None, **positions(module, mask, fed.shape[1]))
        fed, mask, cache = _grown(fed, mask, cache, new, left)
        second, _ = last_logits(module, fed, cache, **positions(module, mask, fed.shape[1]))
    except (RuntimeError, TypeError, ValueError, AttributeError, IndexError, KeyError):
        return False
    whole = [*rows, *([*rows[i], int(new[i])] for i in left)]
    alone = torch.cat([last_logits(module, torch.tensor([row], device=device), None)[0] for row in whole])
    alone, together = alone.log_softmax(-1), torch.cat([first, second]).log_softmax(-1)
    likely = alone.topk(min(10, vocabulary)).indices
    return bool((alone.gather(-1, likely) - together.gather(-1, likely)).abs().max() <= floor_of(module.dtype))
