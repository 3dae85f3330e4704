"""Whatever classifies a claim against one window of evidence, as a verifier of evidence of any length."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from engine.models.protocols import Floats, Judged
from engine.models.verdicts import EVEN, Threshold, combine, windows
from engine.progress import Watch

Pairs = Sequence[tuple[str, str]]
Classify = Callable[[Pairs], Floats]


def in_batches(classify: Classify, pairs: Pairs, size: int, watch: Watch | None = None) -> Floats:
    """Rows of three numbers for each pair, in order; longest pairs first, so that little padding is computed."""
    result = np.zeros((len(pairs), 3), dtype=np.float32)
    order = sorted(range(len(pairs)), key=lambda i: -len(pairs[i][0]) - len(pairs[i][1]))
    for first in range(0, len(order), size):
        if watch:
            watch.step("verify", first, len(order))
        rows = order[first : first + size]
        result[rows] = classify([pairs[i] for i in rows])
    return result


class WindowedVerifier:
    """A classifier of (claim, window) pairs behind the `Entailment` protocol.

    `classify` gives class probabilities of shape (pairs, 3) in the order supportive, editing required, irrelevant.
    """

    def __init__(
        self, classify: Classify, name: str, thresholds: Sequence[Threshold] = EVEN, batch_size: int = 16
    ) -> None:
        """Wrap `classify`, which is called with at most `batch_size` pairs at a time."""
        self._classify, self._thresholds, self._batch_size = classify, thresholds, batch_size
        self.name = name

    def judge(self, pairs: Pairs, watch: Watch | None = None) -> list[Judged]:
        """Judge (claim, evidence) pairs in order; each result is a `Verdict`."""
        return [combine(rows, spans, self._thresholds) for rows, spans in self._by_window(pairs, watch)]

    def entailment(self, pairs: Pairs, watch: Watch | None = None) -> Floats:
        """Probability in [0, 1] that the evidence bears out the claim: the maximum over its windows."""
        return np.array([rows[:, 0].max() for rows, _ in self._by_window(pairs, watch)], dtype=np.float32)

    def _by_window(self, pairs: Pairs, watch: Watch | None) -> list[tuple[Floats, list[tuple[int, int]]]]:
        """For each pair, the class probabilities of its windows, shape (windows, 3), and their spans."""
        spans = [windows(evidence) for _, evidence in pairs]
        flat = [(c, e[a:b]) for (c, e), found in zip(pairs, spans, strict=True) for a, b in found]
        probabilities = in_batches(self._classify, flat, self._batch_size, watch)
        ends = np.cumsum([len(found) for found in spans])
        parts = np.split(probabilities, ends[:-1]) if pairs else []
        return list(zip(parts, spans, strict=True))
