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
HALF_FLOOR = 0.5  # nats, bfloat16 and float16: so far rounding alone may move a log-probability
ROOM = 64  # tokens more than a joined cache holds, before all of it is copied
KEPT = 8  # prompts whose cache is kept for others that begin alike
Take = Callable[[], WritingRequest | None]


def is_exact(module: Any) -> bool:
    """Whether a batch rounds so little that close choices are rare; not in half precision."""
    return module.dtype in (torch.float32, torch.float64)


@dataclass(eq=False)
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
    """Rows that were read: their cache, and the mask, shape (rows, columns), 0 on padding."""

    cache: Any
    mask: torch.Tensor


def begun(module: Any, ids: Ids, cache: Any = None, before: int = 0) -> tuple[torch.Tensor, State]:
    """Logits after a prompt, shape (1, vocabulary), and its state; its first `before` ids are in `cache`."""
    logits, cache = last_logits(module, row_of(module, ids[before:]), cache)
    return logits, State(cache, torch.ones_like(row_of(module, ids)))


def stepped(module: Any, state: State, tokens: Sequence[int]) -> tuple[torch.Tensor, State]:
    """Logits after one more token of each row, shape (rows, vocabulary), and the state, whose cache is changed."""
    new = torch.tensor(tokens, device=state.mask.device)[:, None]
    mask = torch.cat([state.mask, torch.ones_like(new)], dim=1)
    known = {"attention_mask": mask}
    if "position_ids" in inspect.signature(module.forward).parameters:
        known["position_ids"] = mask.sum(-1, keepdim=True) - 1
    logits, cache = last_logits(module, new, state.cache, **known)
    return logits, State(cache, mask)


def arranged(held: State, new: Sequence[State], order: Sequence[int]) -> State:
    """The rows of `order`, numbered through held and new ones, in one state; the caches are changed.

    All write at the same column: the shorter ones are padded on the left, which the mask hides. Columns that only rows
    that left had filled are dropped. A convolution's inputs and running states have one size for all. Raises
    `TypeError` for a cache, or a layer of one, that holds anything else.
    """
    from transformers import DynamicCache

    if any(type(state.cache) is not DynamicCache for state in (held, *new)):
        raise TypeError("Only dynamic caches can be joined.")
    mask = _chosen([state.mask for state in (held, *new)], order, 0)
    empty = int(mask.any(0).int().argmax())
    layers = zip(held.cache.layers, *(state.cache.layers for state in new), strict=True)
    held.cache.layers = [_arranged_layer(of, order, empty) for of in layers]
    return State(held.cache, mask[:, empty:])


def _arranged_layer(layers: Sequence[Any], order: Sequence[int], empty: int) -> Any:
    """One layer of all rows; `empty` columns are dropped. A layer with a window may have forgotten them before."""
    from transformers import cache_utils

    first, *new = layers
    if type(first) in (cache_utils.DynamicLayer, roomy_layer()):
        roomy = first if type(first) is roomy_layer() else roomy_layer()(first)
        roomy.arrange(order, new)
        roomy.drop(empty)
        return roomy
    if type(first) not in (
        cache_utils.DynamicSlidingWindowLayer,
        cache_utils.LinearAttentionLayer,
        cache_utils.LinearAttentionAndFullAttentionLayer,
    ):
        raise TypeError(f"A {type(first).__name__} cannot be joined.")
    if isinstance(first, cache_utils.DynamicLayer):
        total = max(one.get_seq_length() for one in layers) - empty
        for name in ("keys", "values"):
            setattr(first, name, _chosen([getattr(one, name) for one in layers], order, 1)[..., -total:, :])
        if hasattr(first, "cumulative_length"):
            first.cumulative_length = total
    for name in ("conv_states", "recurrent_states"):
        states = [getattr(one, name, {}) for one in layers]
        for place in states[0]:
            if states[0][place] is not None:
                both = torch.cat([of[place] for of in states])
                states[0][place] = both[torch.tensor(order, device=both.device)]
    return first


def _chosen(rows: Sequence[torch.Tensor], order: Sequence[int], axes: int) -> torch.Tensor:
    """Rows of tensors of shape (rows, ..., positions, and `axes` more), zeros before the shorter ones."""
    axis = -1 - axes
    longest = max(row.shape[axis] for row in rows)
    padded = [torch.nn.functional.pad(row, (0, 0) * axes + (longest - row.shape[axis], 0)) for row in rows]
    return torch.cat(padded)[torch.tensor(order, device=rows[0].device)]


@lru_cache
def roomy_layer() -> Any:
    """The class of a cache's layer with room for tokens to come, in which a row takes the place of one that left.

    transformers copies all keys and values for each token, which is half of a step on a CPU, and would for each row.
    """
    from transformers.cache_utils import DynamicLayer

    class RoomyLayer(DynamicLayer):  # type: ignore[no-untyped-call]
        def __init__(self, layer: Any) -> None:
            vars(self).update(vars(layer))
            self.room = (layer.keys, layer.values)
            self.start, self.end, self.own = 0, layer.keys.shape[-2], False  # others may share the tensors

        def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[torch.Tensor, torch.Tensor]:
            end, rows = self.end + key_states.shape[-2], len(key_states)
            if end > self.room[0].shape[-2]:
                self._rebuild(range(rows), self.end - self.start)
                end = self.end + key_states.shape[-2]
            for room, new in zip(self.room, (key_states, value_states), strict=True):
                room[..., self.end : end, :] = new
            self.end = end
            return self._shown()

        def arrange(self, order: Sequence[int], new: Sequence[Any]) -> None:
            count, held = len(self.room[0]), self.end - self.start
            longest = max([held, *(one.get_seq_length() for one in new)])
            stay = len(order) == count and all(of >= count or of == place for place, of in enumerate(order))
            if not self.own or not stay or longest > held:
                self._rebuild([of if of < count else None for of in order], longest)
            for place, of in enumerate(order):
                if of >= count:
                    for room, own in zip(self.room, (new[of - count].keys, new[of - count].values), strict=True):
                        room[place, :, self.end - own.shape[-2] : self.end] = own[0]
            self._shown()

        def drop(self, columns: int) -> None:
            self.start += columns
            self._shown()

        def _rebuild(self, order: Sequence[int | None], columns: int) -> None:
            """Make room for `columns` and more, with these rows, or None for a new one, right-aligned."""
            held, places = self.end - self.start, [place for place, of in enumerate(order) if of is not None]
            kept = [of for of in order if of is not None]
            fresh = []
            for room in self.room:
                made = room.new_zeros((len(order), room.shape[1], columns + ROOM, room.shape[3]))
                made[places, :, columns - held : columns] = room[kept, :, self.start : self.end]
                fresh.append(made)
            self.room, self.start, self.end, self.own = tuple(fresh), 0, columns, True

        def _shown(self) -> tuple[torch.Tensor, torch.Tensor]:
            self.keys, self.values = (room[..., self.start : self.end, :] for room in self.room)
            return self.keys, self.values

    return RoomyLayer


class Batch:
    """Up to `rows` answers that are being written.

    With `exact` a row whose choice was too close ends, and is not `clear`. Without, it is left as it is.
    """

    def __init__(self, module: Any, stop: frozenset[int], rows: int, exact: bool) -> None:
        self.module, self.stop, self._floor = module, stop, FLOOR if exact else 0.0
        self.rows: list[BatchRow] = []
        self._cap = min(rows, CPU_ROWS if self._device.type == "cpu" else GPU_ROWS)
        self._most = self._cap  # less after memory ran out
        self._placed: list[BatchRow] = []  # whose rows the state has; those that have ended are still there
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
            self.rows, self._placed, self._state, self._known = [], [], None, []
        ended, self._ended = self._ended, []
        self._most = min(self._cap, self._most + len(ended))
        return ended

    def _advance(self, take: Take, watch: Watch) -> bool:
        self._place(self._admitted(take, watch))
        start = time.perf_counter()
        if self._state is None:
            return True
        watch.step("writing", *self._progress)
        with cancellable(self.module, watch):
            logits, self._state = stepped(self.module, self._state, [row.tokens[-1][0] for row in self.rows])
        self._choose(self.rows, logits)
        for row in self._placed:
            row.seconds += (time.perf_counter() - start) / len(self._placed)
        return True

    def _admitted(self, take: Take, watch: Watch) -> list[tuple[BatchRow, State]]:
        """New rows that were read as long as there are any, and room; the first token is chosen."""
        found = []
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
            watch.step("writing", *self._progress)
            with cancellable(self.module, watch):
                read = if_it_fits(partial(self._begun, asked.ids))
            if read is None and self.rows:  # it comes when others have left
                self._again.appendleft(asked)
                self._known = []
                break
            self.rows = [*self.rows, row]
            logits, state = read or self._begun(asked.ids)
            self._choose([row], logits)
            row.seconds = time.perf_counter() - start
            if not row.ended:
                found.append((row, state))
        return found

    def _choose(self, rows: Sequence[BatchRow], logits: torch.Tensor) -> None:
        """Choose the next token of each row; those that ended leave."""
        for row, own, logprobs in zip(rows, logits, logits.log_softmax(-1), strict=True):
            row.take(own, logprobs, self.stop, self._floor)
        self._end([row for row in rows if row.ended])
        self.rows = [row for row in self.rows if not row.ended]

    def _end(self, rows: Sequence[BatchRow]) -> None:
        self._ended += rows
        self._done += len(rows)

    def _place(self, new: Sequence[tuple[BatchRow, State]]) -> None:
        """Put new rows where others left; where none does, the others close up."""
        if not self.rows:
            self._placed, self._state = [], None
            return
        states = [state for _, state in new]
        held = self._placed or [row for row, _ in new[:1]]
        first, states = (self._state, states) if self._state is not None else (states[0], states[1:])
        every = [*held, *(row for row, _ in new if row not in held)]
        free = deque(range(len(held), len(every)))
        order = [place if not row.ended else free.popleft() if free else -1 for place, row in enumerate(held)]
        order = [of for of in (*order, *free) if of >= 0]
        if order != list(range(len(held))):
            first = arranged(first, states, order)
        self._state, self._placed = first, [every[of] for of in order]
        self.rows = list(self._placed)

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

    def _begun(self, ids: Ids) -> tuple[torch.Tensor, State]:
        """Logits and state after a prompt; at least half of it may be known from another."""
        shared = [min(common_length(other, ids), len(ids) - 1) for other, _ in self._known]
        best = max(range(len(shared)), key=shared.__getitem__, default=0)
        if shared and 2 * shared[best] >= len(ids):
            known = self._known.pop(best)
            self._known.insert(0, known)
            return begun(self.module, ids, begin_at(known[1], shared[best]), shared[best])
        logits, state = begun(self.module, ids)
        if _keeps_all(state.cache):
            self._known = [(ids, begin_at(state.cache, len(ids))), *self._known][:KEPT]
        return logits, state


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
        begin = [begun(module, ids)[1] for ids in (one, two, three)]
        first, state = stepped(module, arranged(begin[0], begin[1:2], [0, 1]), [5, 6])
        second, state = stepped(module, arranged(state, begin[2:], [2, 1]), [7, 6])
        third, _ = stepped(module, arranged(state, [], [0]), [9])
    except (RuntimeError, TypeError, ValueError, AttributeError, IndexError, KeyError) as error:
        if is_out_of_memory(error):
            raise ModelError(f"The device is out of memory for three short prompts at once. {CLOSE_OTHERS}") from error
        return False
    whole = [[*one, 5], [*two, 6], [*three, 7], [*two, 6, 6], [*three, 7, 9]]
    alone = torch.cat([last_logits(module, row_of(module, row), None)[0] for row in whole]).log_softmax(-1)
    together = torch.cat([first, second, third]).log_softmax(-1)
    likely = alone.topk(min(10, vocabulary)).indices
    moved = (alone.gather(-1, likely) - together.gather(-1, likely)).abs().max()
    return bool(moved <= (FLOOR if is_exact(module) else HALF_FLOOR))
