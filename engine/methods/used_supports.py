"""Used x supports: for each clause and passage, what the model used next to what the passage supports.

`used` is the teacher-forced score of the source for the clause (nats; occlusion.py), `supports` the verifier's
probability that the source's text entails the clause. "Supported but not used" and "used but not supporting" are
what neither number shows alone. No paper's method. Left out: sources that no occlusion scored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from engine.answer.citations import without_markers
from engine.core.errors import AttributionError
from engine.core.metrics import ENTAILED
from engine.core.progress import Watch
from engine.core.values import Answer, Attribution, Value
from engine.methods.are.tools import of_sentences
from engine.models.protocols import Entailment

Quadrant = Literal["used and supporting", "used but not supporting", "supported but not used", "neither"]


class UseAndSupport(Value, frozen=True):
    """One clause and one source: score drop (nats), entailment probability, and the quadrant they fall into."""

    used: float
    supports: float
    quadrant: Quadrant


class UsedSupports(Value, frozen=True):
    """`cells[s][j]` for span s and source j; `floor` (nats) is what a score must exceed to count as used.

    `floor_kind` names it: "placebo", "numerical", or "zero" where neither was measured.
    """

    spans: tuple[tuple[int, int], ...]
    sources: tuple[tuple[int, ...], ...]
    cells: tuple[tuple[UseAndSupport, ...], ...]
    floor: tuple[float, ...]
    floor_kind: Literal["placebo", "numerical", "zero"]
    scorer: str
    verifier: str
    notes: tuple[str, ...] = ()


def quadrant(used: float, floor: float, supports: float) -> Quadrant:
    """Where a pair falls: used above the floor, supported above one half."""
    if supports > ENTAILED:
        return "used and supporting" if used > floor else "supported but not used"
    return "used but not supporting" if used > floor else "neither"


def used_supports(
    attribution: Attribution, answer: Answer, passages: Mapping[int, str], verifier: Entailment, watch: Watch = Watch()
) -> UsedSupports:
    """An occlusion by clause with the verifier's judgement of each pair; `AttributionError` for scores not in nats."""
    if attribution.unit != "nats":
        raise AttributionError("Used x supports needs teacher-forced scores in nats. Run occlusion first.")
    clauses = [without_markers(answer.text[start:end]) for start, end in attribution.spans]
    texts = ["\n".join(passages[number] for number in source) for source in attribution.sources]
    pairs = [(clause, text) for clause in clauses for text in texts]
    read = of_sentences(verifier, answer.text)
    judged = np.asarray(read.entailment(pairs, watch), dtype=float).reshape(len(clauses), len(texts))
    floor, kind = _floors(attribution)
    return UsedSupports(
        spans=attribution.spans,
        sources=attribution.sources,
        cells=tuple(
            tuple(
                UseAndSupport(used=used, supports=float(p), quadrant=quadrant(used, floor[s], float(p)))
                for used, p in zip(row, judged[s], strict=True)
            )
            for s, row in enumerate(attribution.scores)
        ),
        floor=tuple(floor),
        floor_kind=kind,
        scorer=attribution.model,
        verifier=verifier.name,
        notes=attribution.notes,
    )


def _floors(attribution: Attribution) -> tuple[Sequence[float], Literal["placebo", "numerical", "zero"]]:
    """The highest floor that was measured, one a span: placebo, numerical, else 0."""
    placebo, numerical = attribution.details.placebo_floor_by_span, attribution.details.numerical_floor_by_span
    if placebo:
        return [max(pair) for pair in zip(placebo, numerical or placebo, strict=True)], "placebo"
    if numerical:
        return numerical, "numerical"
    return [0.0] * len(attribution.spans), "zero"
