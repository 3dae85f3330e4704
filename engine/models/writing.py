"""Writing token by token, one answer or several at once: greedy, or nucleus sampling (Holtzman et al. 2020, 3.1).

A loop of our own, with one Generator a call, because `transformers.generate` draws from the global random state: two
sessions would disturb each other's seeds. Drawing is done in float64 on the CPU, so a seed means the same on every
device.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from engine.core.errors import ModelError
from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.models.hooks import cancellable
from engine.models.memory import CLOSE_OTHERS, cache_values, free_memory, is_out_of_memory, row_bytes
from engine.models.protocols import Ids
from engine.models.scoring import halved, if_it_fits, last_logits, row_of


def nucleus(probabilities: torch.Tensor, top_p: float) -> torch.Tensor:
    """The smallest set of most probable tokens whose mass reaches `top_p`, renormalised; shape (vocabulary,).

    >>> nucleus(torch.tensor([0.5, 0.3, 0.2]), 0.7).tolist()
    [0.625, 0.375, 0.0]
    """
    ordered, order = probabilities.sort(descending=True, stable=True)
    before = ordered.cumsum(-1) - ordered
    kept = torch.where(before < top_p, ordered, torch.zeros_like(ordered))
    kept[0] = ordered[0]
    return torch.zeros_like(probabilities).scatter(-1, order, kept / kept.sum())


def choose(logits: torch.Tensor, decoding: Decoding, generator: torch.Generator) -> int:
    """The next token's id from logits of shape (vocabulary,); temperature 0 is greedy."""
    return choose_clearly(logits, decoding, generator, 0.0)[0]


def choose_clearly(
    logits: torch.Tensor, decoding: Decoding, generator: torch.Generator, floor: float
) -> tuple[int, bool]:
    """The next token's id, and whether logits that are up to `floor` nats apart from these would give it too.

    A draw is a race, as torch.multinomial runs it: argmax of p / Exp(1), one exponential a token (the same numbers
    from the same generator). `floor` is a bound on the change of a difference of two log-probabilities.
    """
    if decoding.temperature <= 0:
        best = int(logits.argmax())
        return best, not floor or _ahead(logits, best) > floor
    probabilities = (logits.double().cpu() / decoding.temperature).softmax(-1)
    waits = torch.empty_like(probabilities).exponential_(1, generator=generator)
    drawn = int((nucleus(probabilities, decoding.top_p) / waits).argmax())
    return drawn, not floor or _drawn_clearly(probabilities, waits, drawn, decoding.top_p, floor / decoding.temperature)


def _drawn_clearly(probabilities: torch.Tensor, waits: torch.Tensor, drawn: int, top_p: float, floor: float) -> bool:
    """Whether the token drawn stays in the nucleus, and ahead of all that may come into it, with logits `floor` off."""
    slack = math.exp(floor)
    ordered = probabilities.sort(descending=True).values
    inside = probabilities[drawn] > slack * torch.minimum(_edge(ordered, top_p / slack**2), ordered[1])
    racing = probabilities >= _edge(ordered, top_p * slack**2) / slack
    return bool(inside) and _ahead((probabilities / waits).log().masked_fill(~racing, -math.inf), drawn) > floor


def _edge(ordered: torch.Tensor, mass: float) -> torch.Tensor:
    """The least probable token of the nucleus of `mass`."""
    before = ordered.cumsum(-1) - ordered
    return ordered[max(int((before < mass).sum()), 1) - 1]


def _ahead(values: torch.Tensor, place: int) -> float:
    """How far the value at `place` is above the greatest of the others.

    >>> _ahead(torch.tensor([1.0, 4.0, 2.5]), 1)
    1.5
    """
    best, second = (float(value) for value in values.topk(2).values)
    own = float(values[place])
    return own - (second if own == best else best)


def write_tokens(
    module: Any, ids: Ids, pick: Callable[[torch.Tensor], int], limit: int, watch: Watch
) -> Iterator[tuple[int, float]]:
    """Yield up to `limit` (token id, log-probability in nats) after the prompt `ids`, one at a time from the cache.

    `pick` gives the id from logits of shape (vocabulary,). The log-probability is the model's own, before temperature
    and top-p: what `score` gives for the token.
    """
    fed, cache = row_of(module, ids), None
    for written in range(limit):
        watch.step("writing", written, limit)
        with cancellable(module, watch):
            logits, cache = last_logits(module, fed, cache)  # without a cache everything is fed again
        token = pick(logits[0])
        yield token, float(logits[0].log_softmax(-1)[token])
        new = row_of(module, [token])
        fed = new if cache is not None else torch.cat([fed, new], dim=1)


# Several answers at once: one forward pass per token for all rows, with the same texts as one by one. Each prompt is
# read alone, which costs no more and pads nothing. Then the rows' caches are joined, padded on the left so that all
# write at the same column; the padding is masked, and positions count from a row's own first token. A batch adds up in
# another order than a lone row, so that logits differ in the last bits: where a choice is so close that this could turn
# it, the row leaves the batch and is written again alone.


def joined(caches: Sequence[Any]) -> Any:
    """One cache of all rows, made of one a row; the first is changed and returned.

    Keys and values are padded with zeros, which the mask must hide; a convolution's inputs and running states have one
    size for all. Raises `TypeError` for a cache, or a layer of one, that holds anything else.
    """
    from transformers import DynamicCache

    if any(type(cache) is not DynamicCache for cache in caches):
        raise TypeError("Only dynamic caches can be joined.")
    for layers in zip(*(cache.layers for cache in caches), strict=True):
        _join(layers)
    return caches[0]


def _join(layers: Sequence[Any]) -> None:
    """Put what all rows hold of a layer into the first row's."""
    from transformers import cache_utils

    first = layers[0]
    if type(first) not in (
        cache_utils.DynamicLayer,
        cache_utils.DynamicSlidingWindowLayer,
        cache_utils.LinearAttentionLayer,
        cache_utils.LinearAttentionAndFullAttentionLayer,
    ):
        raise TypeError(f"A {type(first).__name__} cannot be joined.")
    if isinstance(first, cache_utils.DynamicLayer):
        first.keys, first.values = (_padded([getattr(one, name) for one in layers]) for name in ("keys", "values"))
    if isinstance(first, cache_utils.DynamicSlidingWindowLayer):
        first.cumulative_length = max(one.cumulative_length for one in layers)
    for name in ("conv_states", "recurrent_states"):
        states = [getattr(one, name, {}) for one in layers]
        for place in states[0]:
            if states[0][place] is not None:
                states[0][place] = torch.cat([of[place] for of in states])


def _padded(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """Tensors of shape (1, heads, positions, width) as one batch, zeros before the shorter ones."""
    longest = max(row.shape[-2] for row in rows)
    return torch.cat([torch.nn.functional.pad(row, (0, 0, longest - row.shape[-2], 0)) for row in rows])


CPU_ROWS, GPU_ROWS = 16, 64  # on a CPU 16 rows write 6 times as fast as one after the other, 4 rows 3 times (measured)
FLOOR = 1e-3  # nats, float32: over ten times what a batch moves a difference of two log-probabilities by
HALF_FLOOR = 0.5  # nats, bfloat16 and float16
Tokens = list[tuple[int, float]]  # ids with log-probabilities in nats, the end token included where it came


@dataclass(frozen=True)
class WritingRequest:
    """An answer to be written: the prompt's ids, the most tokens, and how to choose them."""

    ids: Ids
    limit: int
    decoding: Decoding


@dataclass
class _Row:
    """An answer that is being written; `clear` until a choice was too close."""

    asked: WritingRequest
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
    module: Any, asked: Sequence[WritingRequest], stop: frozenset[int], watch: Watch = Watch(), rows: int = GPU_ROWS
) -> list[Tokens]:
    """The results of `write_alone` for each of `asked`: the same ids, log-probabilities within `floor_of`.

    `rows` caps the rows of a batch. One that does not fit into memory is halved; `watch` hears of that, and of how many
    answers were written again alone. Raises `Cancelled` between two layers, `ModelError` where one row is too big.
    """
    written: dict[int, Tokens] = {i: [] for i, one in enumerate(asked) if not one.limit}
    pending = sorted((i for i in range(len(asked)) if i not in written), key=lambda i: -len(asked[i].ids))
    close: list[int] = []
    while pending:
        size = min(rows, len(pending))
        if size > 1:
            size = min(size, rows_at_once(module, asked[pending[0]]))
        batch = [asked[i] for i in pending[:size]]
        found = if_it_fits(partial(write_batch, module, batch, stop, watch.part(len(written), len(asked))))
        if found is None:
            rows = halved("writing", size, watch, len(written), len(asked))
            continue
        close += [i for i, tokens in zip(pending, found, strict=False) if tokens is None]
        written |= {i: tokens for i, tokens in zip(pending, found, strict=False) if tokens is not None}
        pending = pending[size:]
    for i in close:
        watch.step(f"rewriting {len(close)} answers alone, because a choice was too close", len(written), len(asked))
        written[i] = list(write_alone(module, asked[i], stop, Watch(cancel=watch.cancel)))
    return [written[i] for i in range(len(asked))]


def rows_at_once(module: Any, longest: WritingRequest) -> int:
    """Rows of a batch: their caches fit into half of the free memory with one row's activations; at least 1."""
    device = module.get_input_embeddings().weight.device
    tokens, config = len(longest.ids), module.config
    cache = (tokens + longest.limit) * cache_values(config) * module.dtype.itemsize
    room = (free_memory(device.type) // 2 - row_bytes(config, tokens, 1)) // int(2 * cache)  # twice: while it is joined
    return max(1, min(CPU_ROWS if device.type == "cpu" else GPU_ROWS, room))


def write_alone(module: Any, asked: WritingRequest, stop: frozenset[int], watch: Watch) -> Iterator[tuple[int, float]]:
    """The tokens of one answer up to its end token or its limit."""
    generator = torch.Generator().manual_seed(asked.decoding.seed)
    pick = partial(choose, decoding=asked.decoding, generator=generator)
    for token, logprob in write_tokens(module, asked.ids, pick, asked.limit, watch):
        yield token, logprob
        if token in stop:
            return


def write_batch(
    module: Any, asked: Sequence[WritingRequest], stop: frozenset[int], watch: Watch, floor: float | None = None
) -> list[Tokens | None]:
    """One batch; None for a row with a choice closer than `floor` (else `floor_of`). A lone row is written alone."""
    if len(asked) == 1:
        return [list(write_alone(module, asked[0], stop, Watch(cancel=watch.cancel)))]
    rows = [_Row(one) for one in asked]
    going, floor = rows, floor_of(module.dtype) if floor is None else floor
    logits, cache, mask = read(module, [one.ids for one in asked], watch)
    while True:
        logprobs = logits.log_softmax(-1)
        new = [row.take(*of, stop, floor) for row, of in zip(going, zip(logits, logprobs, strict=True), strict=True)]
        left = [i for i, row in enumerate(going) if not row.ended]
        if not left:
            return [row.tokens if row.clear else None for row in rows]
        going = [going[i] for i in left]
        watch.step("writing", len(rows) - len(going), len(rows))
        with cancellable(module, watch):
            logits, cache, mask = step(module, [new[i] for i in left], cache, mask, left)


def read(module: Any, rows: Sequence[Ids], watch: Watch) -> tuple[torch.Tensor, Any, torch.Tensor]:
    """Logits after each prompt, shape (rows, vocabulary), the joined cache, and the mask that is 0 on its padding."""
    found = []
    for ids in rows:
        watch.step("writing", 0, len(rows))
        with cancellable(module, watch):
            found.append(last_logits(module, row_of(module, ids), None))
    lengths = row_of(module, [len(ids) for ids in rows]).T
    mask = (torch.arange(int(lengths.max()), device=lengths.device) >= lengths.max() - lengths).long()
    return torch.cat([logits for logits, _ in found]), joined([cache for _, cache in found]), mask


def step(
    module: Any, tokens: Sequence[int], cache: Any, mask: torch.Tensor, rows: Sequence[int]
) -> tuple[torch.Tensor, Any, torch.Tensor]:
    """The same after one more token of each of `rows`; the others leave the cache."""
    new = torch.tensor(tokens, device=mask.device)[:, None]
    if len(rows) < len(mask):
        index = torch.tensor(rows, device=mask.device)
        cache.reorder_cache(index)
        mask = mask[index]
    mask = torch.cat([mask, torch.ones_like(new)], dim=1)
    known = {"attention_mask": mask}
    if "position_ids" in inspect.signature(module.forward).parameters:
        known["position_ids"] = mask.sum(-1, keepdim=True) - 1
    return *last_logits(module, new, cache, **known), mask


def pads_exactly(module: Any) -> bool:
    """Whether log-probabilities of rows in a joined cache are those of lone rows, measured on three short ones.

    Also after a row has left. A model that takes no mask, or whose cache cannot be joined, writes one by one. Raises
    `ModelError` where these do not fit into memory, which says nothing of the model.
    """
    vocabulary = module.config.get_text_config().vocab_size
    rows = [[(7 * i + 3 * n) % vocabulary for i in range(n)] for n in (9, 4, 6)]
    try:
        _, cache, mask = read(module, rows, Watch())
        first, cache, mask = step(module, [5, 6, 7], cache, mask, [0, 1, 2])
        second, _, _ = step(module, [8, 9], cache, mask, [1, 2])
    except (RuntimeError, TypeError, ValueError, AttributeError, IndexError, KeyError) as error:
        if is_out_of_memory(error):
            raise ModelError(f"The device is out of memory for three short prompts at once. {CLOSE_OTHERS}") from error
        return False
    whole = [[*rows[0], 5], [*rows[1], 6], [*rows[2], 7], [*rows[1], 6, 8], [*rows[2], 7, 9]]
    alone = torch.cat([last_logits(module, row_of(module, row), None)[0] for row in whole])
    alone, together = alone.log_softmax(-1), torch.cat([first, second]).log_softmax(-1)
    likely = alone.topk(min(10, vocabulary)).indices
    return bool((alone.gather(-1, likely) - together.gather(-1, likely)).abs().max() <= floor_of(module.dtype))
