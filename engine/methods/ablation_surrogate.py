"""A sparse linear surrogate over random ablations: for more sources than can be left out one by one.

ContextCite (Cohen-Wang et al., 2024), sections 3 and 4: sources are kept or dropped at random, a LASSO from the kept
sources to the answer's log-probability is fitted, and its weights are the scores. Here the target is the
log-probability of each span (nats), not its logit, so that weights compare with exact leave-one-out, and the fit is
judged on ablations that it never saw. Left out: few sources; up to about 60, n + 1 exact passes cost less and are
right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import AttributionError
from engine.core.statistics import rank_correlation
from engine.methods.spans import Floats, drop_positions
from engine.models.protocols import TokenPrompt

ABLATIONS = 64  # ContextCite's default
HELD_OUT = 16  # more ablations, on which the fit is judged
PENALTY = 0.01  # ContextCite's default for the LASSO, on a standardised target


@dataclass(frozen=True)
class Fit:
    """Weights in nats (spans, sources); rank correlation on held-out ablations a span (None if not defined)."""

    weights: Floats
    correlation: list[float | None]
    ablations: int
    note: str


def surrogate_scores(
    score: Callable[[Sequence[TokenPrompt]], Floats],
    prompt: TokenPrompt,
    removed: Sequence[frozenset[int]],
    masks: NDArray[np.bool_],
    seed: int,
) -> Fit:
    """Fit one sparse linear model a span. `score` gives (rows, tokens) nats; `removed[j]` are source j's positions."""
    rng = np.random.default_rng(seed)
    kept = rng.random((ABLATIONS + HELD_OUT, len(removed))) < 0.5
    rows = [
        drop_positions(prompt, frozenset().union(*(r for r, k in zip(removed, row, strict=True) if not k)))
        for row in kept
    ]
    targets = score(rows) @ masks.T.astype(np.float64)  # (rows, spans)
    usable = np.isfinite(targets).all(axis=1)
    if usable.sum() < 2 * HELD_OUT:
        raise AttributionError("Too few ablations gave finite probabilities to fit the surrogate. Use fewer sources.")
    kept, targets = kept[usable], targets[usable]
    weights, predicted = _fit(kept[:-HELD_OUT].astype(float), targets[:-HELD_OUT], kept[-HELD_OUT:].astype(float))
    correlation = [
        rank_correlation(predicted[:, s].tolist(), targets[-HELD_OUT:, s].tolist()) for s in range(len(masks))
    ]
    shown = "not defined" if correlation[0] is None else f"{correlation[0]:.2f}"
    note = (
        f"Approximate: a sparse linear fit over {len(kept) - HELD_OUT} random ablations of {len(removed)} sources; "
        f"rank correlation with {HELD_OUT} held-out ablations: {shown}."
    )
    return Fit(weights=weights, correlation=correlation, ablations=len(rows), note=note)


def _fit(kept: Floats, targets: Floats, unseen: Floats) -> tuple[Floats, Floats]:
    """LASSO weights in the target's unit, (spans, sources), and predictions for `unseen`, (rows, spans)."""
    from sklearn.linear_model import Lasso

    weights, predicted = [], []
    for target in targets.T:
        scale = float(target.std()) or 1.0
        model = Lasso(alpha=PENALTY, max_iter=10_000).fit(kept, (target - target.mean()) / scale)
        weights.append(model.coef_ * scale)
        predicted.append(model.predict(unseen) * scale + target.mean())
    return np.array(weights), np.array(predicted).T
