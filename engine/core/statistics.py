"""Intervals, tests and correlations: thin, seeded and typed, with scipy behind where it has the formula."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000  # grounded refinement, sections 3.6 and 4.4.2
SEED = 1337  # of every resampling
LEVEL = 0.95  # of every interval
_BLOCK = 2_000_000  # draws of a unit that are held at a time, near 16 MB
FEWEST = 10  # under this many cases an interval would suggest more than the points show


@dataclass(frozen=True)
class Interval:
    """A mean with its percentile interval [low, high] and the number of independent units behind it."""

    mean: float
    low: float
    high: float
    n: int


def binned(values: Sequence[float], bins: int) -> list[int]:
    """How many of the values are in each of `bins` equal parts of [0, 1]; those beyond count in the first or last.

    >>> binned([0.1, 0.6, 0.9, 1.2], 2)
    [1, 3]
    """
    counts: list[int] = np.histogram(np.clip(values, 0, 1), bins, (0, 1))[0].tolist()
    return counts


def mean_or_none(values: Sequence[float]) -> float | None:
    """The mean, of marks the share that is true; None without any."""
    return sum(values) / len(values) if values else None


def interval_or_none(values: Sequence[float]) -> Interval | None:
    """Percentile bootstrap of the mean of independent cases; None under `FEWEST` of them: show the points instead."""
    return bootstrap_of_means([values], lambda means: means) if len(values) >= FEWEST else None


def paired_bootstrap(
    first: Sequence[float], second: Sequence[float], groups: Sequence[object] | None = None
) -> Interval:
    """Bootstrap of mean(first - second) over pairs; pairs of one group (a question's seeds) are drawn together.

    There is one pair at least. `n` of the result is the number of groups, or of pairs without groups.
    """
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    names = list(groups) if groups is not None else list(range(differences.size))
    index = {name: i for i, name in enumerate(dict.fromkeys(names))}
    where = np.array([index[name] for name in names])
    sums = np.bincount(where, weights=differences, minlength=len(index)).astype(np.float64)
    counts = np.bincount(where, minlength=len(index)).astype(np.float64)
    means = _resampled_means(sums, counts)
    return _interval(float(differences.mean()), means, len(index))


def bootstrap_of_means(columns: Sequence[Sequence[float]], of: Callable[..., NDArray[np.float64]]) -> Interval:
    """Percentile bootstrap of a function of several means (a harmonic mean, a ratio), resampled together.

    `columns[c][i]` is value c of case i, with one case at least; `of` takes one array of means a column, shape
    (RESAMPLES,), elementwise.
    """
    arrays = [np.asarray(column, dtype=np.float64) for column in columns]
    ones = np.ones_like(arrays[0])
    means = of(*(_resampled_means(array, ones) for array in arrays))
    return _interval(float(of(*(np.array([array.mean()]) for array in arrays))[0]), means, arrays[0].size)


def _resampled_means(sums: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means of `RESAMPLES` draws of units with replacement; a unit brings its sum and its count."""
    draws = _kept_draws(sums.size) if sums.size * RESAMPLES <= _BLOCK else _draws(sums.size)
    return np.concatenate([(times @ sums) / (times @ counts) for times in draws])


def _draws(size: int) -> Iterator[NDArray[np.float64]]:
    """How often each of `size` units is in each of `RESAMPLES` draws, shape (draws, size), some draws at a time."""
    rng = np.random.default_rng(SEED)
    rows = max(1, _BLOCK // size)
    for start in range(0, RESAMPLES, rows):
        draw = rng.integers(0, size, size=(min(rows, RESAMPLES - start), size))
        places = draw + size * np.arange(len(draw))[:, None]
        yield np.bincount(places.ravel(), minlength=draw.size).reshape(draw.shape).astype(np.float64)


@lru_cache(maxsize=2)  # the measures of a table have the same questions
def _kept_draws(size: int) -> tuple[NDArray[np.float64], ...]:
    return tuple(_draws(size))


def _interval(mean: float, means: NDArray[np.float64], n: int) -> Interval:
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(mean, float(low), float(high), n)


def binomial_test(successes: int, trials: int) -> float:
    """Two-sided exact p-value in [0, 1] of so many successes under a fair coin; 1 without trials."""
    from scipy.stats import binomtest

    return float(binomtest(successes, trials).pvalue) if trials else 1.0


def binomial_at_least(successes: float, trials: int, probability: float) -> float:
    """P(Binomial(trials, probability) >= successes); `successes` may be a fraction of a count (0.3 K)."""
    needed = math.ceil(successes - 1e-9)  # 0.3 * 10 is 3.0000000000000004 in some orders of evaluation
    return sum(
        math.comb(trials, k) * probability**k * (1 - probability) ** (trials - k) for k in range(needed, trials + 1)
    )


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's rho in [-1, 1], ties averaged; None where it is not defined (one value, or all equal)."""
    if len(first) < 2 or len(set(first)) < 2 or len(set(second)) < 2:
        return None
    from scipy.stats import spearmanr

    return float(spearmanr(first, second).statistic)


def rank_correlation_interval(rho: float | None, n: int) -> tuple[float, float] | None:
    """95% interval of Spearman's rho of n pairs (Bonett and Wright 2000); None under `FEWEST` or without a rho.

    By Fisher's z. A bootstrap is far too narrow where nearly all values of one side are tied.

    >>> [round(end, 2) for end in rank_correlation_interval(0.5, 50)]
    [0.24, 0.69]
    """
    if rho is None or n < FEWEST:
        return None
    if abs(rho) == 1.0:
        return rho, rho
    half = 1.96 * math.sqrt((1 + rho**2 / 2) / (n - 3))
    return math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half)


def sign_agreement(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Share of positions where both are not 0 and their signs agree, of those where both are not 0."""
    return mean_or_none([(a > 0) == (b > 0) for a, b in zip(first, second, strict=True) if a and b])


# Comparisons of two methods on the same questions


@dataclass(frozen=True)
class SignTest:
    """How often the first was higher, lower, equal, and the two-sided exact binomial p-value without the ties."""

    higher: int
    lower: int
    ties: int
    p: float


def sign_test(first: Sequence[float], second: Sequence[float]) -> SignTest:
    """Pairs in which the first differs from the second; of 0 and 1 it is McNemar's exact test.

    >>> sign_test([1, 1, 0, 1], [0, 0, 0, 1])
    SignTest(higher=2, lower=0, ties=2, p=0.5)
    """
    pairs = list(zip(first, second, strict=True))
    higher, lower = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
    return SignTest(higher, lower, len(pairs) - higher - lower, binomial_test(higher, higher + lower))


def cohens_dz(differences: Sequence[float]) -> float | None:
    """Effect size of paired differences: mean over sample standard deviation (Cohen 1988).

    About 0.2 small, 0.5 medium, 0.8 large. None for fewer than two, or where all are equal.
    """
    array = np.asarray(differences, dtype=np.float64)
    deviation = float(array.std(ddof=1)) if array.size > 1 else 0.0
    return float(array.mean()) / deviation if deviation > 1e-12 else None


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values of a family of tests, in their order (Holm 1979): the chance of any false one stays under p.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values, order = np.asarray(p_values, dtype=np.float64), np.argsort(p_values, kind="stable")
    adjusted = np.empty_like(values)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, np.arange(values.size, 0, -1) * values[order]))
    return [float(p) for p in adjusted]
