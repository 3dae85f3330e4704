"""Questions of mixed relevance, balanced over how much of what they were given is relevant (grounded refinement, 3.3).

Only questions with a relevant and an irrelevant passage stay. The paper names the strata low, medium and high and gives
no bounds: ours are the thirds of the share. They are interleaved, so that any beginning of the list is balanced.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from engine.evaluate.example import Example

STRATA = ("low", "medium", "high")


def share_relevant(example: Example) -> float | None:
    """Relevant over labelled passages, in [0, 1]; None without labels."""
    labels = [passage.relevant for passage in example.passages if passage.relevant is not None]
    return sum(labels) / len(labels) if labels else None


def stratum(example: Example) -> str | None:
    """The third of the share, None for a question that is not of mixed relevance."""
    share = share_relevant(example)
    return None if share is None or share in (0, 1) else STRATA[min(int(share * 3), 2)]


def stratified(examples: Sequence[Example], each: int, seed: int) -> Iterator[Example]:
    """At most `each` of every stratum, drawn by the seed: low, medium, high, low, ..."""
    draw = random.Random(seed)
    rows = []
    for name in STRATA:
        inside = [example for example in examples if stratum(example) == name]
        rows.append(draw.sample(inside, min(each, len(inside))))
    for place in range(max(map(len, rows))):
        yield from (row[place] for row in rows if place < len(row))
