"""How far methods agree about the same sources: rank correlation and sign, for every pair of methods."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from engine.errors import AttributionError
from engine.statistics import rank_correlation, sign_agreement
from engine.types import Attribution, Value


class Pair(Value, frozen=True):
    """Two methods on the answer: Spearman's rho of the scores in [-1, 1], share of equal signs, same first source.

    None where it is not defined (fewer than two sources, or equal scores everywhere). With few sources rho is
    coarse: `sources` says how many there are.
    """

    first: str
    second: str
    rho: float | None
    signs: float | None
    same_top: bool
    sources: int


def agreement(methods: Mapping[str, Attribution]) -> tuple[Pair, ...]:
    """All pairs of `methods` on their first span, the whole answer. Raises `AttributionError` on unlike sources."""
    sources = {attribution.sources for attribution in methods.values()}
    if len(sources) > 1:
        raise AttributionError("The methods were run on different sources. Run them on the same passages.")
    rows = {name: attribution.scores[0] for name, attribution in methods.items()}
    return tuple(
        Pair(
            first=a,
            second=b,
            rho=rank_correlation(rows[a], rows[b]),
            signs=sign_agreement(rows[a], rows[b]),
            same_top=_top(rows[a]) == _top(rows[b]),
            sources=len(rows[a]),
        )
        for a, b in combinations(rows, 2)
    )


def _top(row: tuple[float, ...]) -> int:
    return max(range(len(row)), key=lambda j: row[j])
