"""The shipped calibration: a known truth is found again, and sets count alike."""

from __future__ import annotations

import numpy as np
import pytest

from engine.models.calibration import expected_calibration_error
from engine.models.verdicts import softmax
from engine.models.verifier import Calibration
from training.verifier_calibration import Seen, even, fit_scale


def drawn(count: int = 4000, seed: int = 0):
    """Logits and labels drawn from softmax(2 * logits + (0, 0, 1)): over-cautious logits with a known mend."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (count, 3)).astype(np.float32)
    truth = softmax(2 * logits + np.array([0, 0, 1], np.float32))
    labels = np.array([rng.choice(3, p=row / row.sum()) for row in truth.astype(np.float64)])
    return logits, labels


def test_the_scale_is_found_again_and_the_error_falls():
    logits, labels = drawn()
    seen = Seen(logits, labels, np.ones(len(labels), np.float32))
    scale, bias = fit_scale(seen)
    assert scale == pytest.approx((2, 2, 2), abs=0.25)
    assert bias[2] - bias[0] == pytest.approx(1.0, abs=0.25)
    fitted = Calibration(scale=scale, bias=bias)
    before = expected_calibration_error(softmax(logits), labels)
    assert expected_calibration_error(fitted.probabilities(logits), labels) < 0.03 < before


def test_every_set_has_the_same_say():
    weights = even([np.array([0, 0, 0, 1]), np.array([2, 2])])
    assert weights[:4].sum() == pytest.approx(weights[4:].sum())
    assert weights.mean() == pytest.approx(1.0)
