"""How well a decomposer does against gold clauses or facts (ARE, appendix D.5): n_c and d_correct.

n_c = share of records with as many predicted as gold; d_correct = facts that are paired one to one with a gold fact
that they entail and that entails them, over the number predicted. The pairing is the largest one, so that no
fact counts twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from engine.core.metrics import ENTAILED, Entails


def n_c(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> float:
    """Share of records whose predicted count is the gold count.

    >>> n_c([["a"], ["b", "c"]], [["x"], ["y"]])
    0.5
    """
    marks = [len(mine) == len(theirs) for mine, theirs in zip(predicted, gold, strict=True)]
    return sum(marks) / len(marks) if marks else 0.0


def d_correct(predicted: Sequence[str], gold: Sequence[str], entails: Entails) -> float:
    """Paired facts over predicted facts of one record, in [0, 1]; `entails` as in `engine.core.metrics`."""
    if not predicted or not gold:
        return 0.0
    forth = np.reshape(entails([(g, p) for p in predicted for g in gold]), (len(predicted), len(gold)))
    back = np.reshape(entails([(p, g) for p in predicted for g in gold]), (len(predicted), len(gold)))
    return paired((forth > ENTAILED) & (back > ENTAILED)) / len(predicted)


def paired(both: ArrayLike) -> int:
    """Size of the largest one-to-one pairing; `both`: (predicted, gold), true where each entails the other."""
    from scipy.optimize import linear_sum_assignment

    matrix = np.asarray(both, dtype=float)
    rows, columns = linear_sum_assignment(-matrix)
    return int(matrix[rows, columns].sum())
