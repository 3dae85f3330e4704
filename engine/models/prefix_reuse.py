"""Scoring rows that share a long beginning: the first row's keys and values are computed once and read again.

A prompt without passage j equals the whole prompt up to that passage; a row then costs what follows the passage.
Exact for models whose every layer is attention, since a position's keys depend on what stands before it alone, and
for hybrids with short convolutions (Lfm2), whose cache can record the inputs of all positions. Layers with a running
state (state spaces) have no such cache and take the plain path.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from engine.errors import Cancelled
from engine.models.hooks import cancellable
from engine.models.memory import is_out_of_memory
from engine.models.offsets import common_length
from engine.models.scoring import takes_logits_to_keep
from engine.progress import Watch

Floats = NDArray[np.float64]
LEAST_TOKENS = 256  # under this length batching a few rows beats reading them one by one
LEAST_SAVING = 0.2  # share of all tokens that must not be read again


def shared(rows: Sequence[Sequence[int]]) -> list[int]:
    """Ids of each row that need not be read again, the first row being the one that is kept.

    A row's last id is always read: the answer's first token is predicted there.
    """
    return [0, *(min(common_length(rows[0], row), len(row) - 1) for row in rows[1:])]


def keeps_keys(module: Any) -> bool:
    """Whether every layer is attention over keys that depend on earlier positions alone, or a short convolution."""
    kinds = _kinds(module)
    if "conv" in kinds:
        return kinds <= {"full_attention", "conv"}
    return kinds <= {"full_attention", "sliding_attention"} and not getattr(module, "_is_stateful", False)


def _kinds(module: Any) -> set[str]:
    return set(getattr(module.config.get_text_config(), "layer_types", None) or ())


def _empty_cache(module: Any) -> Any:
    """A cache that keeps every position: keys also where a layer's window is shorter, inputs of convolutions."""
    from transformers import DynamicCache

    if "conv" not in _kinds(module):
        return DynamicCache()
    cache = DynamicCache(config=module.config)
    if hasattr(cache, "activate_past_recording"):  # absent from the first releases of transformers 5
        cache.activate_past_recording()  # type: ignore[no-untyped-call]
    return cache


def worth_reusing(module: Any, rows: Sequence[Sequence[int]]) -> bool:
    """Whether the shared beginnings save enough to read rows one by one; on a CPU only, where batching gains little."""
    if len(rows) < 2 or len(rows[0]) < LEAST_TOKENS or next(module.parameters()).device.type != "cpu":
        return False
    return sum(shared(rows)) >= LEAST_SAVING * sum(map(len, rows))


@torch.no_grad()
def score_from_prefix(
    module: Any, rows: Sequence[Sequence[int]], answer: Sequence[int], watch: Watch | None = None
) -> Floats | None:
    """As `score_rows`, every row after the first from the first row's cache.

    None where the model has no such cache, or memory for it ran out: score the rows whole then.

    A cancelled run raises `Cancelled` whose `partial` are the scores so far, nan where a row was not reached.
    """
    if not keeps_keys(module):
        return None
    scores = np.full((len(rows), len(answer)), np.nan)
    watch = watch or Watch()
    try:
        with cancellable(module, watch):
            watch.step("scoring", 0, len(rows))
            scores[0], cache = _read(module, rows[0], answer, _empty_cache(module))
            if not _whole(cache, len(rows[0]) + len(answer) - 1):
                return None
            for i, length in enumerate(shared(rows)[1:], start=1):
                watch.step("scoring", i, len(rows))
                start = _beginning(cache, length) if length else _empty_cache(module)
                scores[i], _ = _read(module, rows[i][length:], answer, start)
    except Cancelled as stopped:
        raise Cancelled(str(stopped), scores) from stopped
    except (RuntimeError, MemoryError) as error:
        if is_out_of_memory(error):
            return None  # the plain path keeps no cache, halves its batches and says so
        raise
    watch.report("scoring", len(rows), len(rows))
    return scores


def _read(module: Any, ids: Sequence[int], answer: Sequence[int], cache: Any) -> tuple[Floats, Any]:
    """Log-probabilities of the answer after cache + ids, and the cache afterwards."""
    keep = {"logits_to_keep": len(answer)} if takes_logits_to_keep(module) else {}
    row = torch.tensor([[*ids, *answer[:-1]]], device=module.get_input_embeddings().weight.device)
    out = module(input_ids=row, past_key_values=cache, use_cache=True, **keep)
    logits = out.logits[0, -len(answer) :].float().log_softmax(-1)
    target = torch.tensor(list(answer), device=logits.device)[:, None]
    return logits.gather(-1, target)[:, 0].cpu().numpy(), getattr(out, "past_key_values", None)


def _whole(cache: Any, length: int) -> bool:
    """Whether every layer kept what it read of all positions."""
    from transformers import DynamicCache

    layers = cache.layers if isinstance(cache, DynamicCache) else []
    return bool(layers) and all(_kept(layer) == length for layer in layers)


def _kept(layer: Any) -> int:
    """Positions of which a layer of the cache holds keys and values, or a convolution's inputs; 0 for other layers."""
    from transformers.cache_utils import DynamicLayer

    if type(layer) is DynamicLayer:
        return int(layer.get_seq_length())
    states = getattr(layer, "conv_states", None)
    return int(states[0].shape[-1]) if states and states[0] is not None else 0


def _beginning(cache: Any, length: int) -> Any:
    """A cache of the first `length` positions; views, so that the kept one stays as it is."""
    start = copy(cache)
    start.layers = [_cut(layer, length) for layer in cache.layers]
    return start


def _cut(layer: Any, length: int) -> Any:
    cut = copy(layer)
    if getattr(layer, "conv_states", None):
        sizes = layer.conv_kernel_size
        cut.conv_states = {i: s[..., max(0, length - sizes[i]) : length] for i, s in layer.conv_states.items()}
    else:
        cut.keys, cut.values = layer.keys[..., :length, :], layer.values[..., :length, :]
    return cut
