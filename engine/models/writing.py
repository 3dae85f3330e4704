"""Writing token by token: greedy, or nucleus sampling (Holtzman et al. 2020, 3.1).

A loop of our own, with one Generator a call, because `transformers.generate` draws from the global random state: two
sessions would disturb each other's seeds. Drawing is done in float64 on the CPU, so a seed means the same on every
device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.models.hooks import cancellable
from engine.models.protocols import Ids, WritingRequest
from engine.models.scoring import last_logits, row_of


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


Tokens = list[tuple[int, float]]  # ids with log-probabilities in nats, the end token included where it came


def write_alone(module: Any, asked: WritingRequest, stop: frozenset[int], watch: Watch) -> Iterator[tuple[int, float]]:
    """The tokens of one answer up to its end token or its limit."""
    generator = torch.Generator().manual_seed(asked.decoding.seed)
    pick = partial(choose, decoding=asked.decoding, generator=generator)
    for token, logprob in write_tokens(module, asked.ids, pick, asked.limit, watch):
        yield token, logprob
        if token in stop:
            return
