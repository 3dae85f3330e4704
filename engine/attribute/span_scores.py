"""Any stretch of the answer from token scores that are already there: a click on a word asks no model.

A clause takes the tokens inside it; an atomic fact takes its words' tokens inside its clause, else the clause.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from engine.attribute.spans import Span, content_mask, fact_spans, spans_mask
from engine.errors import AttributionError
from engine.types import Answer, Attribution


def span_scores(attribution: Attribution, answer: Answer, stretches: Sequence[Sequence[Span]]) -> Attribution:
    """The attribution for `stretches`, each one or more spans of the answer whose tokens count together.

    `spans[s]` of the result is the hull of stretch s. Floors stay those of the whole attribution. Raises
    `AttributionError` where there is no row for every token of the answer.
    """
    if len(attribution.per_token) != len(answer.tokens):
        raise AttributionError("This attribution has no score for each token. Run it again for these spans.")
    content = content_mask(answer)
    masks = np.stack([spans_mask(answer, stretch) & content for stretch in stretches])
    scores = masks.astype(np.float64) @ np.asarray(attribution.per_token, dtype=np.float64)  # (stretches, sources)
    return replace(
        attribution,
        spans=tuple((min(s for s, _ in stretch), max(e for _, e in stretch)) for stretch in stretches),
        scores=tuple(tuple(row) for row in scores.tolist()),
        details={"content_tokens": masks.sum(axis=1).tolist()},
    )


def fact_scores(attribution: Attribution, answer: Answer, facts: Sequence[tuple[Span, str]]) -> Attribution:
    """Scores of atomic facts, each given as (span of its clause in the answer, the fact's text)."""
    return span_scores(attribution, answer, [fact_spans(answer, clause, fact) for clause, fact in facts])
