"""Adaptive chunk selection (Attr-RAG, section IV-B-d): votes, expansion, cap.

The six metrics are correlated: "three agree" is not three witnesses. Left open by the paper and fixed in METHODS
section 1: a regeneration floor under which no metric chooses, a cap on the share of sets, and two readings of
the expansion (`chain`, `neighbour`). Sets are given in re-rank order, which breaks every tie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from engine.settings import Selection
from engine.types import Value

_ROUNDING = 1e-9  # 0.90 - 0.85 is 0.05000000000000004


class Selected(Value, frozen=True):
    """What was chosen and why; indices count the sets from 0 in re-rank order.

    `votes[j]` = metrics that score set j highest, `chosen_by[j]` = metrics whose expansion takes set j,
    `primary` = S* (None if no set is above the floor), `chosen` ascending, `limit` = most sets that may be kept.
    """

    primary: int | None
    chosen: tuple[int, ...]
    votes: tuple[int, ...]
    chosen_by: tuple[tuple[str, ...], ...]
    limit: int
    capped: bool
    notes: tuple[str, ...] = ()


def votes(alphas: Mapping[str, Sequence[float]], floors: Mapping[str, float]) -> tuple[int, ...]:
    """Metrics whose largest alpha is set j's; a tie votes for each; a metric under its floor does not vote."""
    count = len(next(iter(alphas.values())))
    totals = [0] * count
    for metric, values in alphas.items():
        top = max(values)
        for j, value in enumerate(values):
            totals[j] += value == top and value > floors.get(metric, 0.0)
    return tuple(totals)


def chain(values: Sequence[float], threshold: float) -> frozenset[int]:
    """Sets reached from the top while each step down is at most `threshold`.

    >>> sorted(chain([0.50, 0.10, 0.46, 0.42], 0.05))
    [0, 2, 3]
    """
    order = _descending(values)
    reached = order[:1]
    for above, below in pairwise(order):
        if values[above] - values[below] > threshold + _ROUNDING:
            break
        reached.append(below)
    return frozenset(reached)


def neighbour(values: Sequence[float], threshold: float) -> frozenset[int]:
    """Sets that exceed the next lower one by at most `threshold`, wherever they stand; the last has no next.

    >>> sorted(neighbour([0.50, 0.10, 0.46, 0.12], 0.05))
    [0, 3]
    """
    order = _descending(values)
    pairs = pairwise(order)
    return frozenset(a for a, b in pairs if values[a] - values[b] <= threshold + _ROUNDING)


EXPANSIONS = {"chain": chain, "neighbour": neighbour}


def _descending(values: Sequence[float]) -> list[int]:
    return sorted(range(len(values)), key=lambda j: (-values[j], j))


def select(
    alphas: Mapping[str, Sequence[float]], floors: Mapping[str, float], settings: Selection | None = None
) -> Selected:
    """Choose chunk sets from alpha_M (each metric one value a set, in [0, 1]) and the floors of regeneration."""
    settings = settings or Selection()
    count = len(next(iter(alphas.values())))
    limit = max(1, int(settings.max_share * count + _ROUNDING))
    tally = votes(alphas, floors)
    chosen_by = _chosen_by(alphas, floors, settings)
    if not any(tally):
        note = f"No set changed the answer; the first {limit} of {count} in re-rank order are kept."
        return Selected(
            primary=None,
            chosen=tuple(range(limit)),
            votes=tally,
            chosen_by=chosen_by,
            limit=limit,
            capped=False,
            notes=(note,),
        )
    means = np.mean([list(values) for values in alphas.values()], axis=0)
    primary = min(range(count), key=lambda j: (-tally[j], -means[j], j))
    others = [j for j in range(count) if j != primary and len(chosen_by[j]) >= settings.min_metrics]
    wanted = [primary, *sorted(others, key=lambda j: (-len(chosen_by[j]), -means[j], j))]
    capped = len(wanted) > limit
    notes = (f"The cap of {limit} of {count} sets binds: {len(wanted) - limit} more would join.",) if capped else ()
    return Selected(
        primary=primary,
        chosen=tuple(sorted(wanted[:limit])),
        votes=tally,
        chosen_by=chosen_by,
        limit=limit,
        capped=capped,
        notes=notes,
    )


def _chosen_by(
    alphas: Mapping[str, Sequence[float]], floors: Mapping[str, float], settings: Selection
) -> tuple[tuple[str, ...], ...]:
    """For each set the metrics whose expansion takes it and leaves it above the floor."""
    expand = EXPANSIONS[settings.expansion]
    taken = {metric: expand(values, settings.neighbour_threshold) for metric, values in alphas.items()}
    count = len(next(iter(alphas.values())))
    return tuple(
        tuple(m for m, values in alphas.items() if j in taken[m] and values[j] > floors.get(m, 0.0))
        for j in range(count)
    )
