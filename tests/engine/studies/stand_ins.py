"""Models that follow a script, as a config's tools: whole studies in a second, with nothing loaded."""

from __future__ import annotations

import numpy as np

from engine.analyses.kind import Loaders
from engine.core.errors import InputError
from engine.core.metrics import terms
from engine.models.protocols import Judged
from engine.models.scripted import ScriptedScorer, ScriptedWriter
from engine.studies.tools import StudyTools


class SharedWords:
    """Entails if the evidence contains every word of the claim."""

    name = "shared words"

    def entailment(self, pairs, watch=None):
        return np.array([float(set(terms(claim)) <= set(terms(evidence))) for claim, evidence in pairs], np.float32)

    def judge(self, pairs, watch=None):
        return [Judged("supportive" if p else "irrelevant", {"supportive": float(p)}) for p in self.entailment(pairs)]


class Letters:
    """Unit vectors of letter counts."""

    name, dimensions = "letters", 26

    def embed(self, texts, watch=None):
        counts = np.array([[text.casefold().count(chr(97 + i)) + 0.01 for i in range(26)] for text in texts])
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


class InOrder:
    """A re-ranker that keeps the order."""

    name = "in order"

    def rank_scores(self, question, texts):
        return -np.arange(len(texts), dtype=np.float32)


class StandIns(StudyTools):
    """Tools whose writer says what `reply` says of a prompt's text; `refuses` makes it fail on some prompts."""

    def __init__(self, config, reply, judge=None, refuses=lambda text: False):
        loaders = Loaders(
            embedder=lambda name: Letters(), reranker=lambda name: InOrder(), verifier=lambda name: SharedWords()
        )
        super().__init__(config, loaders)

        def said(text):
            if refuses(text):
                raise InputError("It will not.")
            return reply(text)

        self.writer = ScriptedScorer(lambda passages, words, t: -1.0 / (1 + len(passages)), said, "scripted")
        self.scorer = self.writer
        self.judge = ScriptedWriter(judge, "judge") if judge else None
