"""Calibration on a person's labelled pairs, by hand, by a known truth and against scikit-learn."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from engine.core.errors import InputError, ModelNotFound, RecordError
from engine.core.files import home
from engine.models.calibration import (
    LabelledPair,
    OwnVerifier,
    calibratable,
    calibrated,
    called,
    class_f1,
    deciding,
    expected_calibration_error,
    fit_moves,
    fit_thresholds,
    folds_of,
    keep,
    macro_f1,
    moved,
    own_calibrations,
    reliability,
)
from engine.models.verdicts import CLASSES, Thresholds, decide, softmax
from engine.models.verifier import WindowedVerifier, load_entailment


def drawn(count: int, seed: int = 0):
    """Probabilities twice as sharp as their labels, which also favour the second class."""
    rng = np.random.default_rng(seed)
    truth = softmax(rng.normal(0, 1, (count, 3)).astype(np.float32))
    labels = np.array([rng.choice(3, p=row / row.sum()) for row in truth.astype(np.float64)])
    return softmax(2 * np.log(truth) - np.array([0, 1, 0], np.float32)), labels


def overconfident(count: int):
    """A verifier that says the drawn probabilities of the pair whose claim is its number, and the labelled pairs."""
    rows, labels = drawn(count)
    verifier = WindowedVerifier(lambda pairs: np.stack([rows[int(claim)] for claim, _ in pairs]), "scripted")
    return verifier, [LabelledPair(str(i), "Evidence.", CLASSES[label]) for i, label in enumerate(labels)]


def test_scale_and_biases_are_found_again():
    scale, bias = fit_moves(*drawn(6000))
    assert scale == pytest.approx(0.5, abs=0.05)
    assert bias == pytest.approx((0.0, 0.5, 0.0), abs=0.1)


def test_no_change_leaves_the_probabilities_and_few_labels_change_little():
    rows, labels = drawn(500)
    np.testing.assert_allclose(moved(rows, 1.0, (0, 0, 0)), rows, atol=1e-5)
    few, _ = fit_moves(rows[:4], labels[:4])
    many, _ = fit_moves(rows, labels)
    assert abs(np.log(few)) < abs(np.log(many))


def test_a_calibration_mends_overconfidence_on_pairs_it_has_not_seen():
    verifier, pairs = overconfident(400)
    fitted = calibrated(pairs, verifier, "mine")
    assert fitted.after.calibration_error < 0.06 < 0.1 < fitted.before.calibration_error
    assert {row.measured_on for row in fitted.precisions} == {"your pairs of mine"}
    judged = OwnVerifier(verifier, fitted).judge([("0", "Evidence.")])[0]
    assert max(judged.scores.values()) < max(verifier.judge([("0", "Evidence.")])[0].scores.values())


def test_pairs_of_one_claim_are_in_one_fold_and_folds_are_even():
    folds = folds_of([f"Claim {n // 3}." for n in range(150)])
    assert [len(set(folds[i : i + 3])) for i in range(0, 150, 3)] == [1] * 50
    assert np.bincount(folds).tolist() == [30] * 5


def test_too_few_labels_or_one_class_alone_are_refused_with_the_counts():
    verifier, pairs = overconfident(49)
    with pytest.raises(InputError, match="These are 49: "):
        calibrated(pairs, verifier, "a")
    alike = [msgspec.structs.replace(pair, verdict="supportive") for pair in pairs * 2]
    with pytest.raises(InputError, match="98 supportive, 0 editing_required"):
        calibrated(alike, verifier, "a")
    with pytest.raises(InputError, match="not a name"):
        calibrated(pairs * 2, verifier, "../a")
    one_claim = [msgspec.structs.replace(pair, claim="0") for pair in pairs * 2]
    with pytest.raises(InputError, match="at least two claims"):
        calibrated(one_claim, verifier, "a")


def test_no_labels_at_all_are_too_few():
    with pytest.raises(InputError, match="These are 0: 0 supportive"):
        calibrated([], WindowedVerifier(lambda pairs: [], "none", Thresholds()), "empty")


def test_a_kept_calibration_is_a_verifier_by_name():
    base, _ = load_entailment(), home()
    claims = [(f"Box {n} holds {n} coins.", n % 2) for n in range(60)]
    pairs = [
        LabelledPair(claim, f"Box {n} holds {n + odd} coins.", "editing_required" if odd else "supportive")
        for n, (claim, odd) in enumerate(claims)
    ]
    fitted = calibrated(pairs, calibratable(), "boxes")
    keep(fitted)
    assert own_calibrations() == [fitted]
    mine = load_entailment("calibrated:boxes")
    asked = [(pair.claim, pair.evidence) for pair in pairs[:4]]
    expected = moved(np.array([list(one.scores.values()) for one in base.judge(asked)]), fitted.scale, fitted.bias)
    found = np.array([list(one.scores.values()) for one in mine.judge(asked)])
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert "your pairs of boxes" in mine.note(mine.judge(asked)[0])
    # A replay's floor compares both number formats of the base under the same calibration.
    other = mine.in_other_format()
    own = OwnVerifier(base.in_other_format(), fitted)
    assert other.entailment(asked) == pytest.approx(own.entailment(asked), abs=1e-6)


def test_a_name_without_a_calibration_and_one_that_cannot_be_calibrated_say_what_to_do():
    with pytest.raises(ModelNotFound, match="Run calibrate-verifier"):
        load_entailment("calibrated:absent")
    (home() / "verifiers").mkdir(exist_ok=True)
    (home() / "verifiers" / "torn.json").write_text("{")
    assert [fitted.name for fitted in own_calibrations()] == []
    with pytest.raises(ModelNotFound, match="Delete it and calibrate again"):
        load_entailment("calibrated:torn")


def test_a_label_that_is_no_verdict_is_a_bad_record():
    with pytest.raises(RecordError, match="verdict"):
        LabelledPair.from_dict({"claim": "A.", "evidence": "B.", "verdict": "true"})


def test_f1_agrees_with_scikit_learn():
    from sklearn.metrics import f1_score

    rng = np.random.default_rng(1)
    labels, mine = rng.integers(0, 3, 200), rng.integers(0, 3, 200)
    np.testing.assert_allclose(class_f1(labels, mine), f1_score(labels, mine, average=None))
    assert macro_f1(labels, mine) == pytest.approx(f1_score(labels, mine, average="macro"))


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


def test_the_window_that_speaks_most_decides():
    windows = np.array([[0.0, 1.0, 5.0], [2.0, -1.0, 0.0], [1.0, 1.5, 0.0]], np.float32)
    assert deciding(windows).tolist() == [2.0, -1.0, 0.0]
