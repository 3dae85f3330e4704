"""From window probabilities to a verdict: pure functions that every verifier shares (ARE, section 4.3).

Long evidence is read in windows of whole sentences. p(supportive) and p(editing required) are each the maximum over
the windows; each has a threshold; with neither reached the verdict is irrelevant. Every probability is a verifier's
opinion: `verdict_note` gives the words shown with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np

from engine.core.text import sentences
from engine.core.values import Value
from engine.models.protocols import Floats, Judged, VerdictClass

CLASSES: tuple[VerdictClass, ...] = get_args(VerdictClass)
UNSURE = 0.6  # a verdict with a lower probability is shown as "unsure"
WINDOW_WORDS = 80
_LONG_SENTENCE = 110  # words over which a sentence is cut: about what the network reads


class Thresholds(Value, frozen=True):
    """The least p(supportive) and p(editing required) of a verdict."""

    supportive: float = 0.5
    editing_required: float = 0.5


class Precision(Value, frozen=True):
    """Of `called` pairs of the set `measured_on` that were called `verdict`, the share that is."""

    verdict: VerdictClass
    measured_on: str
    share: float
    called: int


EVEN = Thresholds()


def windows(evidence: str, words: int = WINDOW_WORDS) -> list[tuple[int, int]]:
    """One or more spans that cover `evidence`: whole sentences up to `words` words, neighbours sharing a short one."""
    spans = [piece for span in sentences(evidence) for piece in _cut(evidence, *span)]
    sizes = [len(evidence[start:end].split()) for start, end in spans]
    result: list[tuple[int, int]] = []
    first = 0
    while first < len(spans):
        last = first
        while last + 1 < len(spans) and sum(sizes[first : last + 2]) <= words:
            last += 1
        result.append((spans[first][0], spans[last][1]))
        if last + 1 == len(spans):
            break
        shares = last > first and sizes[last] + sizes[last + 1] <= words
        first = last if shares else last + 1
    return result or [(0, len(evidence))]


def _cut(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The span, or the pieces of one over 110 words, split at blanks."""
    if len(text[start:end].split()) <= _LONG_SENTENCE:
        return [(start, end)]
    blanks = [i for i in range(start, end) if text[i] == " " and text[i - 1] != " "]
    cuts = blanks[WINDOW_WORDS - 1 :: WINDOW_WORDS]
    return [(a, b) for a, b in zip([start, *cuts], [*cuts, end], strict=True) if text[a:b].strip()]


def decide(
    supportive: float, editing: float, thresholds: Thresholds = EVEN, *, can_be_irrelevant: bool = True
) -> VerdictClass:
    """The verdict for the two maxima over the windows; where both reach, the one further above its threshold.

    >>> decide(0.7, 0.2), decide(0.4, 0.3), decide(0.4, 0.3, can_be_irrelevant=False)
    ('supportive', 'irrelevant', 'supportive')
    """
    ratios: dict[VerdictClass, float] = {
        "supportive": supportive / thresholds.supportive,
        "editing_required": editing / thresholds.editing_required,
    }
    best = max(ratios, key=ratios.__getitem__)
    return best if ratios[best] >= 1.0 or not can_be_irrelevant else "irrelevant"


def combine(probabilities: Floats, spans: Sequence[tuple[int, int]], thresholds: Thresholds = EVEN) -> Judged:
    """One verdict from the class probabilities of each window, shape (windows, 3)."""
    tops = probabilities.argmax(axis=0)
    supportive, editing = float(probabilities[tops[0], 0]), float(probabilities[tops[1], 1])
    verdict = decide(supportive, editing, thresholds)
    at = int(tops[1] if verdict == "editing_required" else tops[0])
    total = max(1.0, supportive + editing)  # maxima of two windows may pass 1 together
    rest = max(0.0, 1.0 - supportive - editing)
    scores = {"supportive": supportive / total, "editing_required": editing / total, "irrelevant": rest}
    return Judged(verdict=verdict, scores=scores, window=spans[at], windows=len(spans))


def softmax(logits: Floats) -> Floats:
    """Rows of probabilities from rows of logits."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    result: Floats = (shifted / shifted.sum(axis=-1, keepdims=True)).astype(np.float32)
    return result


def verdict_note(judged: Judged, name: str, precisions: Sequence[Precision] = ()) -> str:
    """The words shown with a verdict: the verifier, how often it is right by test set, and "unsure" below 0.6.

    >>> verdict_note(Judged("supportive", {"supportive": 0.5, "editing_required": 0.2, "irrelevant": 0.3}), "V")
    'supportive by V, not measured; unsure'
    """
    known = [p for p in precisions if p.verdict == judged.verdict]
    called = judged.verdict.replace("_", " ")
    right = f"{_measured(known)} of its {called} verdicts are right" if known else "not measured"
    unsure = "; unsure" if judged.scores[judged.verdict] < UNSURE else ""
    return f"{called} by {name}, {right}{unsure}"


def _measured(known: Sequence[Precision]) -> str:
    """The share on the one test set, or the range over several: the verifier's card names each."""
    if len(known) == 1:
        return f"{known[0].share:.0%} ({known[0].measured_on}, n = {known[0].called})"
    shares = sorted(p.share for p in known)
    return f"{shares[0]:.0%} to {shares[-1]:.0%} (by test set, {len(known)} sets)"
