"""Several answers at once by continuous batching: a forward writes a token of each row; rows come and go in between.

Each prompt is read alone, which costs no more and pads nothing; what it shares with one that was read before is not
read again. Its cache joins those of the rows that are being written, padded on the left so that all write at the same
column; the padding is masked, and positions count from a row's own first token. A batch adds up in another order than a
lone row, so that logits differ in the last bits: where a choice is so close that this could turn it, the row leaves the
batch, to be written alone.
"""

from __future__ import annotations

import inspect
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import torch

from engine.core.errors import ModelError
from engine.core.progress import Watch
from engine.models.hooks import cancellable
from engine.models.memory import CLOSE_OTHERS, cache_values, free_memory, is_out_of_memory, row_bytes
from engine.models.offsets import common_length
from engine.models.protocols import Ids, WritingRequest
from engine.models.scoring import begin_at, halved, if_it_fits, last_logits, row_of, turns_by_length
from engine.models.writing import Tokens, choose_clearly

# On a CPU 32 rows of 1.5 B parameters are written 19 times as fast as one after the other, 16 rows 12 times.
CPU_ROWS, GPU_ROWS = 32, 64
FLOOR = 1e-3  # nats, float32: over ten times what a batch moves a difference of two log-probabilities by
HALF_FLOOR = 0.5  # nats, bfloat16 and float16: hardly an answer is without a choice closer than this
ROOM = 64  # tokens more than a joined cache holds, before all of it is copied
KEPT = 8  # prompts whose cache is kept for others that begin alike
Take = Callable[[], WritingRequest | None]


def is_exact(module: Any) -> bool:
    """Whether a batch rounds so little that close choices are rare; not in half precision."""
    return module.dtype in (torch.float32, torch.float64)


@dataclass
class BatchRow:
    """An answer that is being written; `clear` until a choice was too close, `seconds` its share of the batch's."""

    asked: WritingRequest
    tokens: Tokens = field(default_factory=list)
    clear: bool = True
    ended: bool = False
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self._generator = torch.Generator().manual_seed(self.asked.decoding.seed)

    def take(self, logits: torch.Tensor, logprobs: torch.Tensor, stop: frozenset[int], floor: float) -> int:
        """Choose the next token."""
        token, self.clear = choose_clearly(logits, self.asked.decoding, self._generator, floor)
        self.tokens.append((token, float(logprobs[token])))
        self.ended = not self.clear or token in stop or len(self.tokens) == self.asked.limit
        return token


@dataclass(frozen=True)
class State:
    """Where rows are: logits of the next token, shape (rows, vocabulary), their cache, and the mask, 0 on padding."""

    logits: torch.Tensor
    cache: Any
    mask: torch.Tensor


def begun(module: Any, ids: Ids, cache: Any = None, before: int = 0) -> State:
    """The state after a prompt, whose first `before` ids are in `cache`."""
    logits, cache = last_logits(module, row_of(module, ids[before:]), cache)
    return State(logits, cache, torch.ones_like(row_of(module, ids)))


def joined(states: Sequence[State]) -> State:
    """All rows in one state; the first one's cache is changed.

    Keys and values are padded with zeros, which the mask must hide; a convolution's inputs and running states have one
    size for all. Raises `TypeError` for a cache, or a layer of one, that holds anything else.
    """
    from transformers import DynamicCache

    cache = states[0].cache
    if any(type(state.cache) is not DynamicCache for state in states):
        raise TypeError("Only dynamic caches can be joined.")
    for layers in zip(*(state.cache.layers for state in states), strict=True):
        _join(layers)
    cache.layers = [_with_room(layer) for layer in cache.layers]
    mask = _padded([state.mask for state in states], 0)
    return State(torch.cat([state.logits for state in states]), cache, mask)


def _join(layers: Sequence[Any]) -> None:
    """Put what all rows hold of a layer into the first one."""
    from transformers import cache_utils

    first = layers[0]
    if type(first) not in (
        cache_utils.DynamicLayer,
        _roomy_layer(),
        cache_utils.DynamicSlidingWindowLayer,
        cache_utils.LinearAttentionLayer,
        cache_utils.LinearAttentionAndFullAttentionLayer,
    ):
        raise TypeError(f"A {type(first).__name__} cannot be joined.")
    if isinstance(first, cache_utils.DynamicLayer):
        first.keys, first.values = (_padded([getattr(one, name) for one in layers], 1) for name in ("keys", "values"))
    if isinstance(first, cache_utils.DynamicSlidingWindowLayer):
        first.cumulative_length = max(one.cumulative_length for one in layers)
    for name in ("conv_states", "recurrent_states"):
        states = [getattr(one, name, {}) for one in layers]
        for place in states[0]:
            if states[0][place] is not None:
                states[0][place] = torch.cat([of[place] for of in states])


@lru_cache
def _roomy_layer() -> type:
    """A layer of a cache with room for tokens to come; transformers copies all keys for each token (half of a step)."""
    from transformers.cache_utils import DynamicLayer

    class RoomyLayer(DynamicLayer):  # type: ignore[no-untyped-call]
        room: dict[str, torch.Tensor]

        def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[torch.Tensor, torch.Tensor]:
            self.keys, self.values = self._grown("keys", key_states), self._grown("values", value_states)
            return self.keys, self.values

        def _grown(self, name: str, new: torch.Tensor) -> torch.Tensor:
            held, room = getattr(self, name), self.room.get(name)
            rows, heads, count, width = held.shape
            end = count + new.shape[-2]
            if room is None or room.data_ptr() != held.data_ptr() or room.shape[-2] < end:
                room = self.room[name] = new.new_empty((rows, heads, end + ROOM, width))
                room[..., :count, :] = held
            room[..., count:end, :] = new
            return room[..., :end, :]

    return RoomyLayer


def _with_room(layer: Any) -> Any:
    """The layer as one with room; another kind of layer as it is."""
    from transformers.cache_utils import DynamicLayer

    if type(layer) is not DynamicLayer:
        return layer
    roomy = _roomy_layer()()
    vars(roomy).update(vars(layer), room={})
    return roomy


def _padded(rows: Sequence[torch.Tensor], axes: int) -> torch.Tensor:
    """Tensors of shape (rows, ..., positions, and `axes` more) as one, zeros before the shorter ones."""
    axis = -1 - axes
    longest = max(row.shape[axis] for row in rows)
    return torch.cat([torch.nn.functional.pad(row, (0, 0) * axes + (longest - row.shape[axis], 0)) for row in rows])


def stepped(module: Any, state: State, tokens: Sequence[int], rows: Sequence[int]) -> State:
    """The state after one more token of each of `rows`; the others leave, with the columns that they alone filled."""
    cache, mask = state.cache, state.mask
    new = torch.tensor(tokens, device=mask.device)[:, None]
    if len(rows) < len(mask):
        index = torch.tensor(rows, device=mask.device)
        cache.reorder_cache(index)
        mask = mask[index]
        empty = int(mask.any(0).int().argmax())
        _drop(cache, empty)
        mask = mask[:, empty:]
    mask = torch.cat([mask, torch.ones_like(new)], dim=1)
    known = {"attention_mask": mask}
    if "position_ids" in inspect.signature(module.forward).parameters:
        known["position_ids"] = mask.sum(-1, keepdim=True) - 1
    return State(*last_logits(module, new, cache, **known), mask)


def _drop(cache: Any, columns: int) -> None:
    """Forget the first positions of a cache; a layer with a window may have forgotten them before."""
    from transformers.cache_utils import DynamicLayer

    for layer in cache.layers if columns else ():
        if isinstance(layer, DynamicLayer):
            left = layer.get_seq_length() - columns
            for name in ("keys", "values"):
                setattr(layer, name, getattr(layer, name)[..., -left:, :])
            if hasattr(layer, "cumulative_length"):
                layer.cumulative_length = left


class Batch:
    """Up to `rows` answers that are being written.

    With `exact` a row whose choice was too close ends, and is not `clear`. Without, it is left as it is.
    """

    def __init__(self, module: Any, stop: frozenset[int], rows: int, exact: bool) -> None:
        self.module, self.stop, self._floor = module, stop, FLOOR if exact else 0.0
        self.rows: list[BatchRow] = []
        self._cap = min(rows, CPU_ROWS if self._device.type == "cpu" else GPU_ROWS)
        self._most = self._cap  # less after memory ran out
        self._state: State | None = None
        self._ended: list[BatchRow] = []
        self._done = 0  # rows that have ended
        self._again: deque[WritingRequest] = deque()  # taken before, and not begun, or begun and out of memory
        self._known: list[tuple[Ids, Any]] = []

    @property
    def is_empty(self) -> bool:
        """Whether nothing is being written, or waits for that."""
        return not self.rows and not self._again

    @property
    def _device(self) -> torch.device:
        device: torch.device = self.module.get_input_embeddings().weight.device
        return device

    @property
    def _progress(self) -> tuple[int, int]:
        return self._done, self._done + len(self.rows)

    def advance(self, take: Take, watch: Watch) -> list[BatchRow]:
        """Read what there is room for, then write a token of each row; the rows that ended.

        Rows that do not fit into memory begin anew, half of them at once, and one more with each that ends; `watch`
        hears of that. Raises `Cancelled` between two layers, `ModelError` where one row is too big.
        """
        if if_it_fits(partial(self._advance, take, watch)) is None:
            self._most = halved("writing", len(self.rows), watch, *self._progress)
            self._again.extendleft(row.asked for row in reversed(self.rows))
            self.rows, self._state, self._known = [], None, []
        ended, self._ended = self._ended, []
        self._most = min(self._cap, self._most + len(ended))
        return ended

    def _advance(self, take: Take, watch: Watch) -> bool:
        self._admit(take, watch)
        start, going = time.perf_counter(), self.rows
        if self._state is None:
            return True
        logits = self._state.logits
        chosen = zip(going, logits, logits.log_softmax(-1), strict=True)
        new = [row.take(own, logprobs, self.stop, self._floor) for row, own, logprobs in chosen]
        left = [i for i, row in enumerate(going) if not row.ended]
        self._end([row for row in going if row.ended])
        self.rows = [going[i] for i in left]
        if not left:
            self._state = None
            return True
        watch.step("writing", *self._progress)
        with cancellable(self.module, watch):
            self._state = stepped(self.module, self._state, [new[i] for i in left], left)
        for row in self.rows:
            row.seconds += (time.perf_counter() - start) / len(self.rows)
        return True

    def _end(self, rows: Sequence[BatchRow]) -> None:
        self._ended += rows
        self._done += len(rows)

    def _admit(self, take: Take, watch: Watch) -> None:
        """Read prompts as long as there are any, and room."""
        states = [self._state] if self._state is not None else []
        while len(self.rows) < self._most:
            asked = self._again.popleft() if self._again else take()
            if asked is None:
                break
            if self.rows and not self._fits(asked):
                self._again.appendleft(asked)
                break
            row, start = BatchRow(asked), time.perf_counter()
            if not asked.limit:
                self._end([row])
                continue
            self.rows = [*self.rows, row]
            watch.step("writing", *self._progress)
            with cancellable(self.module, watch):
                states.append(self._begun(asked.ids))
            row.seconds = time.perf_counter() - start
        if states:
            self._state = joined(states) if len(states) > 1 else states[0]

    def _fits(self, asked: WritingRequest) -> bool:
        """Whether the caches of one row more fit into half of the free memory with a row's activations."""
        rows, config = [asked, *(row.asked for row in self.rows)], self.module.config
        position = cache_values(config) * self.module.dtype.itemsize
        longest = max(len(one.ids) + one.limit for one in rows)
        held = self._state.mask.numel() * position if self._state is not None else 0
        room = (free_memory(self._device.type) + held) // 2 - row_bytes(config, longest, 1)
        fits: bool = 2 * len(rows) * longest * position <= room  # twice: while they are joined
        if not fits and self._known:
            self._known = []
            return self._fits(asked)
        return fits

    def _begun(self, ids: Ids) -> State:
        """The state after a prompt; at least half of it may be known from another."""
        shared = [min(common_length(other, ids), len(ids) - 1) for other, _ in self._known]
        best = max(range(len(shared)), key=shared.__getitem__, default=0)
        if shared and 2 * shared[best] >= len(ids):
            known = self._known.pop(best)
            self._known.insert(0, known)
            return begun(self.module, ids, begin_at(known[1], shared[best]), shared[best])
        state = begun(self.module, ids)
        if _keeps_all(state.cache):
            self._known = [(ids, begin_at(state.cache, len(ids))), *self._known][:KEPT]
        return state


def _keeps_all(cache: Any) -> bool:
    """Whether a cache can be cut at any position."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer

    return type(cache) is DynamicCache and all(type(layer) is DynamicLayer for layer in cache.layers)


def pads_exactly(module: Any) -> bool:
    """Whether log-probabilities of rows in a joined cache are those of lone rows, measured on three short ones.

    Also after a row has come, and left. A model that takes no mask, whose cache cannot be joined, or whose keys depend
    on the length of the whole text, writes one by one. Raises `ModelError` where these do not fit into memory, which
    says nothing of the model.
    """
    if turns_by_length(module):
        return False
    vocabulary = module.config.get_text_config().vocab_size
    one, two, three = ([(7 * i + 3 * n) % vocabulary for i in range(n)] for n in (9, 4, 6))
    try:
        first = stepped(module, joined([begun(module, one), begun(module, two)]), [5, 6], [0, 1])
        second = stepped(module, joined([first, begun(module, three)]), [5, 6, 7], [0, 1, 2])
        third = stepped(module, second, [8, 9], [1, 2])
    except (RuntimeError, TypeError, ValueError, AttributeError, IndexError, KeyError) as error:
        if is_out_of_memory(error):
            raise ModelError(f"The device is out of memory for three short prompts at once. {CLOSE_OTHERS}") from error
        return False
    whole = [[*one, 5], [*two, 6], [*one, 5, 5], [*two, 6, 6], [*three, 7], [*two, 6, 6, 8], [*three, 7, 9]]
    alone = torch.cat([last_logits(module, row_of(module, row), None)[0] for row in whole]).log_softmax(-1)
    together = torch.cat([first.logits, second.logits, third.logits]).log_softmax(-1)
    likely = alone.topk(min(10, vocabulary)).indices
    moved = (alone.gather(-1, likely) - together.gather(-1, likely)).abs().max()
    return bool(moved <= (FLOOR if is_exact(module) else HALF_FLOOR))
