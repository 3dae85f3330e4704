"""Three kinds of effects of a second pass, read from its scores; the bundled cases show them.

Each is a rule on figures in the report; nobody chose a case by eye. All three depend on the verifier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from engine.core.metrics import Entails, statements, supported
from engine.core.values import Answer, Passage
from engine.methods.refinement.run import RefinementReport
from engine.methods.signals import pair_key


def supported_sentences(answer: Answer, passages: Sequence[Passage], entails: Entails) -> tuple[str, ...]:
    """The sentences of an answer that their cited passages, joined, support."""
    texts = {number: passage.text for number, passage in enumerate(passages, start=1)}
    cited = statements(answer)
    return tuple(s.text for s, holds in zip(cited, supported(cited, texts, entails), strict=True) if holds)


def self_refine_adds_unsupported(report: RefinementReport, passages: Sequence[Passage]) -> bool:
    """E has a sentence that is not in A and that its cited passages do not support."""
    a, e = _answer(report, "A"), _answer(report, "E")
    if a is None or e is None:
        return False
    known = {s.text for s in statements(a)}
    good = set(supported_sentences(e, passages, stored(report)))
    return any(s.text not in known and s.text not in good for s in statements(e))


def overlap_heuristic_prunes(report: RefinementReport, passages: Sequence[Passage]) -> bool:
    """D fired and has fewer supported sentences than A."""
    a, d = _answer(report, "A"), _answer(report, "D")
    if a is None or d is None or not report.refinement.variants["D"].triggered:
        return False
    ask = stored(report)
    return len(supported_sentences(d, passages, ask)) < len(supported_sentences(a, passages, ask))


def rewrite_keeps_grounded(report: RefinementReport, passages: Sequence[Passage]) -> bool:
    """v2c fired on a fully supported answer, and its rewrite is fully supported and as long."""
    a, rewrite = _answer(report, "A"), _answer(report, "v2c")
    if a is None or rewrite is None or not report.refinement.variants["v2c"].triggered:
        return False
    ask = stored(report)
    before, after = supported_sentences(a, passages, ask), supported_sentences(rewrite, passages, ask)
    whole = len(before) == len(statements(a)) > 0 and len(after) == len(statements(rewrite))
    return whole and len(after) >= len(before)


KINDS: Mapping[str, Callable[[RefinementReport, Sequence[Passage]], bool]] = {
    "Self-Refine adds an unsupported claim": self_refine_adds_unsupported,
    "The overlap heuristic removes supported sentences": overlap_heuristic_prunes,
    "The attribution-triggered rewrite keeps a grounded answer": rewrite_keeps_grounded,
}


def stored(report: RefinementReport) -> Entails:
    """The verifier's probabilities as stored in the report. A pair without one counts as not entailed."""
    return lambda pairs: [report.entailments.get(pair_key(*pair), 0.0) for pair in pairs]


def _answer(report: RefinementReport, name: str) -> Answer | None:
    variant = report.refinement.variants.get(name)
    return variant.answer if variant is not None else None
