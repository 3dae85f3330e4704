"""Gain by quartile of S3: by hand, in both directions, against scipy's bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import bootstrap

from engine.core.errors import InputError
from engine.methods.refinement.advisor import Point, gain_by_quartile


def points(gains):
    """Question i has S3 = i / n."""
    n = len(gains)
    return [Point(question=f"q{i}", s3=i / n, gain=g) for i, g in enumerate(gains)]


def test_four_parts_by_hand():
    found = gain_by_quartile(points([0.4, 0.2, 0.1, 0.1, 0.0, 0.1, 0.0, 0.0]))
    assert [round(q.gain, 3) for q in found.quartiles] == [0.3, 0.1, 0.05, 0.0]
    assert [(q.s3_low, q.s3_high) for q in found.quartiles] == [(0, 0.125), (0.25, 0.375), (0.5, 0.625), (0.75, 0.875)]
    assert all(q.low is None for q in found.quartiles)
    assert found.rho < 0
    assert len(found.readings) == 2


def test_the_readings_are_those_of_the_data():
    elsewhere = gain_by_quartile(points([-0.5, -0.5, -0.5, 1.0]))
    assert elsewhere.rho > 0 and elsewhere.readings[0].startswith("D gains most in: highest S3 (+1.000).")
    flat = gain_by_quartile(points([0.0] * 4))
    assert flat.readings[0].startswith("D gains most in: lowest S3, second, third, highest S3 (+0.000).")
    assert len(gain_by_quartile(points([-0.1, -0.2, -0.3, -0.4])).readings) == 1  # no gain at all
    assert "fires where the gain is" in gain_by_quartile(points([0.4, 0.1, 0.1, 0.0])).readings[1]


def test_the_order_in_which_questions_come_does_not_matter():
    given = points([0.4, 0.2, 0.1, 0.1, 0.0, 0.1, 0.0, 0.0])
    assert gain_by_quartile(given[::-1]) == gain_by_quartile(given)


def test_the_seeds_of_a_question_stay_together_and_its_mean_s3_places_it():
    given = [p for p in points([0.4, 0.3, 0.2, 0.1]) for _ in range(3)]
    split = [Point(question="q0", s3=s, gain=1.0) for s in (0.0, 0.9)]  # mean 0.45
    found = gain_by_quartile([*split, *given[3:]])
    assert [q.questions for q in found.quartiles] == [1, 1, 1, 1]
    assert [round(q.gain, 2) for q in found.quartiles] == [0.3, 1.0, 0.2, 0.1]


def test_the_interval_agrees_with_scipy():
    rng = np.random.default_rng(5)
    gains = rng.normal(0.1, 0.2, 120)
    found = gain_by_quartile(points(list(gains)))
    for part, quartile in zip(np.array_split(gains, 4), found.quartiles, strict=True):
        interval = bootstrap((part,), np.mean, method="percentile", n_resamples=10_000, rng=1).confidence_interval
        assert quartile.gain == pytest.approx(part.mean())
        assert (quartile.low, quartile.high) == pytest.approx((interval.low, interval.high), abs=0.01)


def test_too_few_questions_are_refused():
    with pytest.raises(InputError, match="at least 4"):
        gain_by_quartile(points([0.1, 0.2, 0.3]))


def test_a_cut_between_equal_values_gives_no_quartiles():
    tied = [Point(question=f"q{i}", s3=0.5, gain=i / 10) for i in range(8)]
    found = gain_by_quartile(tied)
    assert found.quartiles == () and found.rho is None
    assert found.readings[0].startswith("No quartiles: a cut falls between questions of equal S3 (0.500)")
    # Seeds in another order: the means are equal, and floats added one by one would differ.
    seeds = {"a": (1, 1 / 3, 3 / 4), "b": (1, 3 / 4, 1 / 3)}
    rows = [Point(question=q, s3=s, gain=0) for q, values in seeds.items() for s in values]
    rows += [Point(question=q, s3=s, gain=0) for q, s in (("c", 0.8), ("d", 0.9))]
    assert gain_by_quartile(rows).quartiles == ()
