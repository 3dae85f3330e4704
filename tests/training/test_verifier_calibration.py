"""Calibration against hand-worked figures, known truths and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from engine.models.verdicts import CLASSES, Thresholds, decide, softmax
from engine.models.verifier import Calibration
from training.verifier_calibration import (
    Seen,
    called,
    class_f1,
    deciding,
    even,
    expected_calibration_error,
    fit_scale,
    fit_thresholds,
    macro_f1,
    reliability,
)


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


def test_f1_agrees_with_scikit_learn():
    from sklearn.metrics import f1_score

    rng = np.random.default_rng(1)
    labels, mine, weights = rng.integers(0, 3, 200), rng.integers(0, 3, 200), rng.random(200)
    np.testing.assert_allclose(class_f1(labels, mine), f1_score(labels, mine, average=None))
    expected = f1_score(labels, mine, average="macro", sample_weight=weights)
    assert macro_f1(labels, mine, weights) == pytest.approx(expected)


def test_a_class_without_labels_is_left_out():
    assert np.isnan(class_f1(np.array([0, 1]), np.array([0, 2]))[2])
    assert macro_f1(np.array([0, 1]), np.array([0, 2])) == pytest.approx(0.5)


def test_calibration_error_by_hand():
    probabilities = np.array([[0.95, 0.05, 0], [0.95, 0.05, 0], [0.65, 0.35, 0], [0.65, 0.35, 0]], np.float32)
    labels = np.array([0, 0, 0, 1])
    assert reliability(probabilities, labels) == [
        (0.6, 2, pytest.approx(0.65), 0.5),
        (0.9, 2, pytest.approx(0.95), 1.0),
    ]
    assert expected_calibration_error(probabilities, labels) == pytest.approx((2 * 0.15 + 2 * 0.05) / 4)


def test_called_agrees_with_decide():
    rng = np.random.default_rng(2)
    maxima = rng.random((300, 2)).astype(np.float32)
    limits = Thresholds(supportive=0.45, editing_required=0.7)
    one_by_one = [CLASSES.index(decide(float(s), float(e), limits)) for s, e in maxima]
    assert called(maxima, 0.45, 0.7).tolist() == one_by_one


def test_thresholds_split_what_can_be_split():
    maxima = np.array([[0.7, 0.1], [0.72, 0.2], [0.1, 0.5], [0.2, 0.52], [0.6, 0.4], [0.62, 0.3]], np.float32)
    labels = np.array([0, 0, 1, 1, 2, 2])
    assert called(maxima, *fit_thresholds([(maxima, labels)])).tolist() == labels.tolist()


def test_every_set_has_the_same_say():
    weights = even([np.array([0, 0, 0, 1]), np.array([2, 2])])
    assert weights[:4].sum() == pytest.approx(weights[4:].sum())
    assert weights.mean() == pytest.approx(1.0)


def test_the_window_that_speaks_most_decides():
    windows = np.array([[0.0, 1.0, 5.0], [2.0, -1.0, 0.0], [1.0, 1.5, 0.0]], np.float32)
    assert deciding(windows).tolist() == [2.0, -1.0, 0.0]
