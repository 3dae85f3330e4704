"""Teacher-forced log-probabilities of one answer after many prompts, exact row by row.

Rows are sorted by length and padded on the right: a causal model's position never sees what follows it, so this needs
neither a mask nor positions and is exact for every architecture. Only the answer's positions go through the output
layer. Rows that share a long beginning read its keys and values once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator, Sequence
from copy import copy, deepcopy
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from engine.core.errors import ModelError
from engine.core.progress import Watch, whole
from engine.models.hooks import cancellable, picked_positions
from engine.models.memory import free_memory, is_out_of_memory, row_bytes
from engine.models.offsets import common_length
from engine.models.protocols import Ids, LogProbs

CPU_TOKENS = 1024  # more at once gains nothing on a CPU (measured from 60 to 880 tokens a row) and delays cancelling
GPU_TOKENS = 65536
T = TypeVar("T")


def scores_by_batch(module: Any, rows: Sequence[Ids], answer: Ids, watch: Watch = Watch()) -> Iterator[LogProbs]:
    """log p(answer[t] | rows[i], answer[:t]) in nats, float64, shape (len(rows), len(answer)), after every batch.

    One array that fills, longest rows first; nan where a row is not reached yet. A batch that does not fit into memory
    is halved, and `watch` hears of it. Raises `ModelError` where a lone row does not fit, `Cancelled` where the watch
    says so.
    """
    scores = np.full((len(rows), len(answer)), np.nan)
    if not rows or not answer:
        yield scores
        return
    if any(not row for row in rows):
        raise ModelError("An empty prompt cannot predict the first token. Give at least one token.")
    pending = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    size = batch_size(module, len(rows[pending[0]]) + len(answer), len(answer))
    while pending:
        watch.step("scoring", len(rows) - len(pending), len(rows))
        batch = pending[:size]
        with cancellable(module, watch):
            done = if_it_fits(partial(score_batch, module, [rows[i] for i in batch], answer))
        if done is None:
            size = halved("scoring", len(batch), watch, len(rows) - len(pending), len(rows))
            continue
        scores[batch] = done
        pending = pending[size:]
        yield scores
    watch.report("scoring", len(rows), len(rows))


score_rows = whole(scores_by_batch)


def batch_size(module: Any, longest: int, answer: int) -> int:
    """Rows a batch of `longest` tokens each: what half of the free memory holds, capped by tokens; at least 1."""
    device = next(module.parameters()).device
    tokens = CPU_TOKENS if device.type == "cpu" else GPU_TOKENS
    room = free_memory(device.type) // 2 // row_bytes(module.config, longest, answer)
    return max(1, min(tokens // longest, room))


def halved(stage: str, rows: int, watch: Watch, done: int, total: int) -> int:
    """Half of the rows that did not fit into memory, said to `watch`; raise `ModelError` for one alone."""
    if rows == 1:
        raise ModelError(
            "A single prompt does not fit into memory. Use fewer or shorter passages, bfloat16, or a smaller model."
        )
    watch.report(f"{stage}: out of memory with {rows} prompts at once, continuing with {rows // 2}", done, total)
    return rows // 2


def if_it_fits(batch: Callable[[], T]) -> T | None:
    """The result of a batch; None if memory ran out."""
    try:
        return batch()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None


@torch.no_grad()
def score_batch(module: Any, rows: Sequence[Ids], answer: Ids) -> LogProbs:
    """One forward over right-padded rows + answer; shape (len(rows), len(answer))."""
    device = module.get_input_embeddings().weight.device
    starts = [len(row) - 1 for row in rows]  # the position that predicts answer[0]
    # The answer's last token predicts nothing that is asked for.
    ids = pad_sequence([torch.tensor([*row, *answer[:-1]]) for row in rows], batch_first=True)
    wanted = torch.tensor(starts, device=device)[:, None] + torch.arange(len(answer), device=device)
    logits = answer_logits(module, ids.to(device), wanted)
    return np.array([logprobs_of(answer, own).cpu().numpy() for own in logits], dtype=np.float64)


def logprobs_of(ids: Ids, logits: torch.Tensor) -> torch.Tensor:
    """Log-probabilities of tokens in nats, float32, shape (tokens,); `logits`: (tokens, vocabulary)."""
    target = torch.tensor(list(ids), device=logits.device)[:, None]
    return logits.float().log_softmax(-1).gather(-1, target)[:, 0]


class Beginning:
    """The beginning of prompts that was read last, with its cache."""

    def __init__(self) -> None:
        self._ids: Ids = ()
        self._cache: Any = None

    def read(self, module: Any, ids: Ids) -> Any:
        """The cache after `ids`, to be copied by who writes to it; None for a model without one."""
        if self._ids != ids:
            self._cache, self._ids = _ahead(module, ids, None)[1], ids
        return self._cache


@torch.no_grad()
def continuation_scores(
    module: Any, prompts: Sequence[Ids], continuations: Sequence[Ids], beginning: Beginning, head: int = 0
) -> LogProbs:
    """log p(continuation | prompt) in nats, shape (prompts, continuations); a cache lets shared text be read once.

    The first `head` ids, the same in all, are read in `beginning`, which keeps them for the next call. They are always
    read apart from the rest, kept or not: scores are the same to the bit, whatever was asked before.
    """
    shared = min(common_length(prompts[0], prompt[:-1]) for prompt in prompts) if len(prompts) > 1 else head
    begun = beginning.read(module, prompts[0][:head]) if head else None
    if shared > head:
        begun = _ahead(module, prompts[0][head if begun else 0 : shared], deepcopy(begun))[1]
    found = np.empty((len(prompts), len(continuations)))
    for row, prompt in zip(found, prompts, strict=True):
        first, cache = _ahead(module, prompt[shared:] if begun else prompt, deepcopy(begun))
        if cache is None:
            row[:] = [score_batch(module, [prompt], one).sum() for one in continuations]
        else:
            row[:] = [_continued(module, first, cache, one) for one in continuations]
    return found


@torch.no_grad()
def last_logits(module: Any, fed: torch.Tensor, cache: Any, **padding: torch.Tensor) -> tuple[torch.Tensor, Any]:
    """Float32 logits after the tokens fed, shape (rows, vocabulary), and the cache, None for a model without one."""
    out = module(input_ids=fed, past_key_values=cache, use_cache=True, **last_positions(module, 1), **padding)
    return out.logits[:, -1].float(), getattr(out, "past_key_values", None)


def row_of(module: Any, ids: Ids) -> torch.Tensor:
    """Token ids as one row, shape (1, tokens), where the module takes them."""
    return torch.tensor([list(ids)], device=module.get_input_embeddings().weight.device)


def _ahead(module: Any, ids: Ids, cache: Any) -> tuple[torch.Tensor, Any]:
    """Log-probabilities of the token after `ids`, and the cache."""
    logits, cache = last_logits(module, row_of(module, ids), cache)
    return logits[0].log_softmax(-1), cache


def _continued(module: Any, first: torch.Tensor, cache: Any, one: Ids) -> float:
    """The summed log-probabilities of a continuation; `cache` is left as it is."""
    total = float(first[one[0]])
    if len(one) > 1:
        logits = module(input_ids=row_of(module, one[:-1]), past_key_values=deepcopy(cache), use_cache=True).logits[0]
        total += float(logprobs_of(one[1:], logits).sum())
    return total


def answer_logits(module: Any, ids: torch.Tensor, wanted: torch.Tensor, **given: Any) -> torch.Tensor:
    """Logits at positions `wanted` (rows, tokens) of each row; shape (rows, tokens, vocabulary).

    The output layer is the dearest of a small model with a large vocabulary, and rows of unequal length need
    different positions: they are picked before it where the architecture lets a hook do so, else after.
    """
    first = int(wanted.min())
    keep = ids.shape[1] - first
    with picked_positions(module, wanted - first, keep):
        out = module(input_ids=ids, **{"use_cache": False} | given, **last_positions(module, keep))
    logits: torch.Tensor = out.logits
    if logits.shape[1] == wanted.shape[1]:
        return logits
    place = (wanted - first + logits.shape[1] - keep).to(logits.device)
    return torch.stack([row[positions] for row, positions in zip(logits, place, strict=True)])


def last_positions(module: Any, count: int) -> dict[str, int]:
    """The argument by which a forward skips the output layer before the last `count` positions, where it takes one."""
    return {"logits_to_keep": count} if "logits_to_keep" in inspect.signature(module.forward).parameters else {}


# Shared beginnings: a prompt without passage j equals the whole prompt up to j. Exact where every layer is attention,
# and for hybrids with short convolutions, whose cache records all inputs; layers with a running state take the plain
# path.

LEAST_TOKENS = 256  # under this length batching a few rows beats reading them one by one
LEAST_SAVING = 0.2  # share of all tokens that must not be read again


def shared(rows: Sequence[Ids]) -> list[int]:
    """The number of ids that each row shares with the first; a row's last is always read, to predict the answer."""
    return [0, *(min(common_length(rows[0], row), len(row) - 1) for row in rows[1:])]


def keeps_keys(module: Any) -> bool:
    """Whether every layer is attention over keys that depend on earlier positions alone, or a short convolution."""
    if turns_by_length(module):
        return False
    kinds = layer_kinds(module)
    if "conv" in kinds:
        return kinds <= {"full_attention", "conv"}
    return kinds <= {"full_attention", "sliding_attention"} and not getattr(module, "_is_stateful", False)


def turns_by_length(module: Any) -> bool:
    """Whether rotary embeddings turn keys by the length of the whole text, as those of long contexts may."""
    rope = getattr(module.config.get_text_config(), "rope_parameters", None) or {}
    kinds = rope.values() if all(isinstance(kind, dict) for kind in rope.values()) else [rope]
    return any(kind.get("rope_type") in ("dynamic", "longrope") for kind in kinds)


def layer_kinds(module: Any) -> set[str]:
    """The kinds of the model's layers, as its config names them; empty where it names none."""
    return set(getattr(module.config.get_text_config(), "layer_types", None) or ())


def _empty_cache(module: Any) -> Any:
    """A cache that keeps every position: keys also where a layer's window is shorter, inputs of convolutions."""
    from transformers import DynamicCache

    if "conv" not in layer_kinds(module):
        return DynamicCache()
    cache = DynamicCache(config=module.config)
    if hasattr(cache, "activate_past_recording"):  # absent from the first releases of transformers 5
        cache.activate_past_recording()  # type: ignore[no-untyped-call]
    return cache


def worth_reusing(module: Any, rows: Sequence[Ids]) -> bool:
    """Whether the shared beginnings save enough to read rows one by one; on a CPU only, where batching gains little."""
    if len(rows) < 2 or len(rows[0]) < LEAST_TOKENS or next(module.parameters()).device.type != "cpu":
        return False
    return sum(shared(rows)) >= LEAST_SAVING * sum(map(len, rows))


def scores_from_prefix(
    module: Any, rows: Sequence[Ids], answer: Ids, watch: Watch = Watch()
) -> Generator[LogProbs, None, bool]:
    """As `scores_by_batch`, every row after the first from the first row's cache, one row at a time.

    Returns False where the model has no such cache, or memory for it ran out: score the rows whole then.
    """
    if not keeps_keys(module):
        return False
    scores = np.full((len(rows), len(answer)), np.nan)
    watch.step("scoring", 0, len(rows))
    with torch.no_grad(), cancellable(module, watch):
        found = if_it_fits(partial(read_whole, module, rows[0], answer))
    if found is None or found[1] is None:
        return False  # the plain path keeps no cache, halves its batches and says so
    scores[0], cache = found
    yield scores
    for i, length in enumerate(shared(rows)[1:], start=1):
        watch.step("scoring", i, len(rows))
        start = begin_at(cache, length) if length else _empty_cache(module)
        with torch.no_grad(), cancellable(module, watch):
            found = if_it_fits(partial(_read, module, rows[i][length:], answer, start))
        if found is None:
            return False
        scores[i] = found[0]
        yield scores
    watch.report("scoring", len(rows), len(rows))
    return True


def read_whole(module: Any, ids: Ids, answer: Ids) -> tuple[LogProbs, Any]:
    """Log-probabilities of the answer after `ids`, and the cache; None where it does not keep every position."""
    from transformers import DynamicCache

    scores, cache = _read(module, ids, answer, _empty_cache(module))
    layers, length = cache.layers if isinstance(cache, DynamicCache) else [], len(ids) + len(answer) - 1
    return scores, cache if layers and all(_kept(layer) == length for layer in layers) else None


def _read(module: Any, ids: Ids, answer: Ids, cache: Any) -> tuple[LogProbs, Any]:
    """Log-probabilities of the answer after cache + ids, and the cache afterwards."""
    row = row_of(module, [*ids, *answer[:-1]])
    out = module(input_ids=row, past_key_values=cache, use_cache=True, **last_positions(module, len(answer)))
    scores = logprobs_of(answer, out.logits[0, -len(answer) :])
    return scores.cpu().numpy(), getattr(out, "past_key_values", None)


def _kept(layer: Any) -> int:
    """Positions of which a layer of the cache holds keys and values, or a convolution's inputs; 0 for other layers."""
    from transformers.cache_utils import DynamicLayer

    if type(layer) is DynamicLayer:
        return int(layer.get_seq_length())
    states = getattr(layer, "conv_states", None)
    return int(states[0].shape[-1]) if states and states[0] is not None else 0


def begin_at(cache: Any, length: int) -> Any:
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
