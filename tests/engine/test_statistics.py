"""Intervals and tests against closed forms and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import bootstrap, spearmanr

from engine.core import statistics as stats


def test_an_interval_is_near_the_normal_one_and_repeats():
    values = np.random.default_rng(0).normal(2.0, 1.0, 400)
    interval = stats.interval_or_none(values)
    half = 1.96 * values.std(ddof=1) / math.sqrt(400)
    assert interval.low == pytest.approx(values.mean() - half, abs=0.02)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.02)
    assert interval == stats.interval_or_none(values)


def test_no_interval_under_ten_cases():
    assert stats.interval_or_none([0.1] * 9) is None
    assert stats.interval_or_none([0.1] * 10) is not None


def test_paired_bootstrap_draws_a_questions_seeds_together():
    first, second = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0], [0.0] * 6
    loose = stats.paired_bootstrap(first, second)
    grouped = stats.paired_bootstrap(first, second, groups=["a"] * 3 + ["b"] * 3)
    assert (loose.n, grouped.n) == (6, 2)
    assert loose.mean == grouped.mean == 0.5
    assert (grouped.low, grouped.high) == (0.0, 1.0)
    assert grouped.high - grouped.low > loose.high - loose.low


def test_paired_bootstrap_of_a_constant_difference_is_exact():
    interval = stats.paired_bootstrap([3.0, 5.0, 9.0], [1.0, 3.0, 7.0])
    assert (interval.mean, interval.low, interval.high) == (2.0, 2.0, 2.0)


def test_binomial_by_hand():
    assert stats.binomial_test(5, 5) == pytest.approx(2 * 0.5**5)
    assert stats.binomial_test(0, 0) == 1.0
    assert stats.binomial_at_least(2, 3, 0.5) == pytest.approx(0.5)
    assert stats.binomial_at_least(0.3 * 10, 10, 0.2) == pytest.approx(stats.binomial_at_least(3, 10, 0.2))


def test_binomial_tail_agrees_with_scipy():
    from scipy.stats import binom

    for n in (5, 10, 15):
        assert stats.binomial_at_least(3, 10, 3 / n) == pytest.approx(binom.sf(2, 10, 3 / n))


def test_rank_correlation_and_its_undefined_cases():
    assert stats.rank_correlation([1, 2, 3], [2, 4, 9]) == pytest.approx(1.0)
    assert stats.rank_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1.0)
    assert stats.rank_correlation([1, 1], [1, 2]) is None
    assert stats.rank_correlation([1], [1]) is None


def test_the_interval_of_a_rank_correlation_holds_it_and_agrees_with_scipys_bootstrap():
    rng = np.random.default_rng(5)
    first = rng.normal(size=60)
    second = first + rng.normal(size=60)
    rho = stats.rank_correlation(first, second)
    low, high = stats.rank_correlation_interval(rho, 60)
    assert low < rho < high
    peer = bootstrap(
        (first, second),
        lambda a, b: spearmanr(a, b).statistic,
        paired=True,
        vectorized=False,
        n_resamples=999,
        method="percentile",
        rng=3,
    ).confidence_interval
    assert (low, high) == (pytest.approx(peer.low, abs=0.06), pytest.approx(peer.high, abs=0.06))
    assert stats.rank_correlation_interval(0.5, 9) is None and stats.rank_correlation_interval(None, 50) is None
    assert stats.rank_correlation_interval(1.0, 50) == (1.0, 1.0)


def test_sign_agreement_leaves_zeros_out():
    assert stats.sign_agreement([1, -1, 0, 2], [3, 1, 5, 1]) == pytest.approx(2 / 3)
    assert stats.sign_agreement([0, 0], [1, 1]) is None


def test_holm_by_hand_and_never_under_the_p_values():
    assert stats.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert stats.holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert stats.holm([]) == []


def test_effects_by_hand_and_where_they_are_not_defined():
    assert stats.cohens_dz([1.0, 3.0]) == pytest.approx(2 / math.sqrt(2))
    assert stats.cohens_dz([2.0, 2.0]) is None and stats.cohens_dz([1.0]) is None


def test_sign_test_of_zeros_and_ones_is_mcnemars_exact_test():
    found = stats.sign_test([1, 1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 1, 0])
    assert (found.higher, found.lower, found.ties) == (5, 1, 1)
    assert found.p == pytest.approx(stats.binomial_test(5, 6))
    assert stats.sign_test([1, 2], [1, 2]).p == 1.0
