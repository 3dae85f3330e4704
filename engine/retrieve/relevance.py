"""Which texts bear on a claim, for or against it: a weighted mean of named parts, for ranking evidence.

No paper's method (ARE ranks by similarity alone). The parts are the cosine of claim and text, the share of the claim's
content words that the text has (rare ones weigh more), and, where a verifier read the pair, what it leaves to
supportive and editing required together: a text that contradicts a claim bears on it too. The weights were chosen on
claims with known evidence sentences (bench/evidence.py has the sets, the figures and what each part reaches alone).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.core.text import covered, sentences, stems, word_weights
from engine.models.protocols import Embedder

WEIGHTS = {"cosine": 1.0, "words": 1.0, "verdict": 0.75}


def relevance(
    claim: str, texts: Sequence[str], embedder: Embedder, verdicts: Sequence[float] | None = None
) -> list[float]:
    """The relevance of each text to the claim in [0, 1], in order.

    `verdicts`: for each text 1 less what a verifier gives to irrelevant. A text's words are weighed against the others.
    """
    if not texts:
        return []
    vectors = embedder.embed([claim, *texts])
    return relevance_of((vectors[1:] @ vectors[0]).tolist(), word_shares(claim, texts), verdicts)


def word_shares(claim: str, texts: Sequence[str]) -> list[float]:
    """The share in [0, 1] of the claim's content words that each text has; those rare among the texts weigh more."""
    held = [stems(text) for text in texts]
    weights = word_weights(claim, held)
    return [covered(weights, found) for found in held]


def relevance_of(
    cosines: Sequence[float], words: Sequence[float], verdicts: Sequence[float] | None = None
) -> list[float]:
    """The relevance of texts whose parts are known, in order."""
    parts = {"cosine": cosines, "words": words} | ({} if verdicts is None else {"verdict": verdicts})
    return [combined(dict(zip(parts, each, strict=True))) for each in zip(*parts.values(), strict=True)]


def evidence_relevance(claim: str, evidence: str, embedder: Embedder, scores: Mapping[str, float]) -> float:
    """The relevance in [0, 1] of the evidence's best sentence, 0 without one; `scores`: of a verdict on it, if any."""
    texts = [evidence[start:end] for start, end in sentences(evidence)]
    verdicts = [1 - scores["irrelevant"]] * len(texts) if scores else None
    return round(max(relevance(claim, texts, embedder, verdicts), default=0.0), 4)


def combined(parts: dict[str, float]) -> float:
    """The weighted mean of some parts, each in [0, 1]; a cosine under 0 counts as 0."""
    total = sum(WEIGHTS[name] * max(0.0, float(value)) for name, value in parts.items())
    return total / sum(WEIGHTS[name] for name in parts)
