"""How far a replayed number may move by rounding alone, measured on the models that compute it.

Each floor is twice the largest difference between a value computed in one way and in another, among others and alone
or with its sums in another order: the stored and the replayed number may each be off by it, in opposite directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.models.eager import summed_otherwise
from engine.models.protocols import Embedder, Entailment, LanguageModel, TokenPrompt

T = TypeVar("T")
STEP = float(np.finfo(np.float32).eps)  # a cosine near 1 moves by no less, whatever a few texts show
FLOOR_TEXTS = 40  # texts that the embedder's rounding is measured on
FLOOR_PAIRS = 12  # pairs that the verifier's rounding is measured on
FLOOR_ROWS = 12  # rows that a language model's rounding is measured on


def embedding_floor(embedder: Embedder, question: str, texts: Sequence[str]) -> float:
    """Of the cosine of a question and a text, in [0, 2]."""
    ordered = sorted(set(texts), key=len)
    sample = _spread(ordered, FLOOR_TEXTS)
    if not sample:
        return 0.0
    query = embedder.embed([question])[0]
    together = embedder.embed(ordered)[[ordered.index(text) for text in sample]]
    # With a space at its end a text has the same tokens and is none that the embedder remembers.
    apart = np.concatenate([embedder.embed([f"{text} "]) for text in sample])
    return 2 * max(STEP, float(np.abs(together @ query - apart @ query).max()))


def entailment_floor(verifier: Entailment, pairs: Sequence[tuple[str, str]]) -> float:
    """Of the verifier's probability of a (claim, evidence) pair, in [0, 1]."""
    sample = _spread(list(dict.fromkeys(pairs)), FLOOR_PAIRS)
    if not sample:
        return 0.0
    # A few pairs of like length would be computed together as they are apart: longer ones beside them pad them.
    longer = [(claim, f"{evidence} {evidence}") for claim, evidence in sample[-1:]]
    longer += [(f"{claim} {claim}", evidence) for claim, evidence in sample[:1]]
    together = np.asarray(verifier.entailment([*sample, *longer]), dtype=float)[: len(sample)]
    apart = np.concatenate([np.asarray(verifier.entailment([pair]), dtype=float) for pair in sample])
    return 2 * float(np.abs(together - apart).max())


def token_floor(model: LanguageModel, rows: Sequence[tuple[TokenPrompt, Sequence[int]]]) -> float:
    """Of the log-probability (nats) of one token: with its sums in another order, and token by token as in writing."""
    largest = 0.0
    for coded, ids in _spread(list(rows), FLOOR_ROWS):
        once = model.score([coded], ids)[0]
        with summed_otherwise(model, len(coded.ids) + len(ids)):
            others = [model.score([coded], ids)[0]]
        others += [_as_written(model, coded, ids)] if hasattr(model, "module") else []
        largest = max(largest, *(float(np.abs(once - other).max(initial=0.0)) for other in others))
    return 2 * largest


def _as_written(model: Any, coded: TokenPrompt, ids: Sequence[int]) -> NDArray[np.float64]:
    """The tokens' log-probabilities as writing computes them: one at a time, on what the cache holds."""
    import torch

    from engine.models.sampling import next_logits

    found: list[float] = []
    with model.hold() as module:
        device = module.get_input_embeddings().weight.device
        fed, cache = torch.tensor([list(coded.ids)], device=device), None
        for token in ids:
            logits, cache = next_logits(module, fed, cache)
            found.append(float(logits.log_softmax(-1)[token]))
            new = torch.tensor([[token]], device=device)
            fed = new if cache is not None else torch.cat([fed, new], dim=1)
    return np.asarray(found)


def _spread(values: list[T], most: int) -> list[T]:
    """At most about `most` of the values, spread evenly."""
    return values[:: max(1, -(-len(values) // most))]
