"""An entailment model that follows a table, for tests of code that reads verdicts."""

from __future__ import annotations

import re

import numpy as np

from engine.core.progress import Watch
from engine.models.protocols import Judged

SCORES = {"supportive": (0.9, 0.05, 0.05), "editing_required": (0.05, 0.9, 0.05), "irrelevant": (0.1, 0.1, 0.8)}


def judged(verdict: str) -> Judged:
    return Judged(verdict, dict(zip(SCORES, SCORES[verdict], strict=True)))


class WordVerifier:
    """Supports a claim whose words are all in the evidence; irrelevant under half of them; else contradicted."""

    name = "word table"

    def __init__(self):
        self.pairs = []

    def judge(self, pairs, watch=Watch()):
        if watch:
            watch.step("verify", 0, len(pairs))
        self.pairs.extend(pairs)
        return [judged(self._verdict(*pair)) for pair in pairs]

    def entailment(self, pairs, watch=Watch()):
        return np.array([j.scores["supportive"] for j in self.judge(pairs, watch)], np.float32)

    def _verdict(self, claim, evidence):
        words = set(re.findall(r"\w+", claim.lower()))
        shared = words & set(re.findall(r"\w+", evidence.lower()))
        if words <= shared:
            return "supportive"
        return "editing_required" if len(shared) * 2 >= len(words) else "irrelevant"
