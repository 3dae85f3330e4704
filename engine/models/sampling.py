"""Writing token by token: greedy or nucleus sampling (Holtzman et al. 2020, section 3.1), one Generator a call.

A loop of our own, because `transformers.generate` draws from the global random state: two sessions would
disturb each other's seeds. Drawing is done in float64 on the CPU, so a seed means the same on every device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from engine.models.hooks import cancellable
from engine.models.scoring import takes_logits_to_keep
from engine.progress import Watch
from engine.settings import Decoding


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
    if decoding.temperature <= 0:
        return int(logits.argmax())
    probabilities = (logits.double().cpu() / decoding.temperature).softmax(-1)
    return int(torch.multinomial(nucleus(probabilities, decoding.top_p), 1, generator=generator))


def write_tokens(
    module: Any, ids: Sequence[int], decoding: Decoding, limit: int, watch: Watch | None = None
) -> Iterator[tuple[int, float]]:
    """Yield up to `limit` (token id, log-probability in nats) after the prompt `ids`.

    The log-probability is the model's own, before temperature and top-p: what `score` gives for the token.
    """
    generator = torch.Generator().manual_seed(decoding.seed)
    watch = watch or Watch()
    device = module.get_input_embeddings().weight.device
    fed, cache = torch.tensor([list(ids)], device=device), None
    for written in range(limit):
        watch.step("writing", written, limit)
        with cancellable(module, watch):
            logits, cache = next_logits(module, fed, cache)
        token = choose(logits, decoding, generator)
        yield token, float(logits.log_softmax(-1)[token])
        new = torch.tensor([[token]], device=device)
        fed = new if cache is not None else torch.cat([fed, new], dim=1)


@torch.no_grad()
def next_logits(module: Any, fed: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
    """Float32 logits after the tokens fed, shape (vocabulary,), and the cache (None: feed everything again)."""
    extra = {"logits_to_keep": 1} if takes_logits_to_keep(module) else {}
    out = module(input_ids=fed, past_key_values=cache, use_cache=True, **extra)
    return out.logits[0, -1].float(), getattr(out, "past_key_values", None)
