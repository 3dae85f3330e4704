"""Calibrate a verifier on a person's own labelled pairs: a temperature and class biases (Guo et al. 2017).

A verifier's probabilities fit the texts on which its calibration was fitted. Fifty labelled pairs of another kind of
text make them fit that kind: p = softmax(scale * log p + bias) for each window, by likelihood with a normal prior on
(log scale, biases) around no change. The two thresholds move towards the best macro-F1 only as far as the labels pay
for it. Figures is cross-validated by claim, and so is the precision shown with each verdict. Any verifier that gives
the probabilities of windows can be calibrated. Kept in the data folder, it has the name `calibrated:NAME`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InputError, ModelNotFound
from engine.core.files import EMBEDDED, home, read_json, save_json
from engine.core.progress import Watch
from engine.core.values import Value
from engine.models.protocols import Floats, VerdictClass
from engine.models.verdicts import CLASSES, Precision, Thresholds, combine, softmax
from engine.models.verifier import CALIBRATED, EmbeddedVerifier, WindowedVerifier, load_entailment

Ints = NDArray[np.int64]

FEWEST = 50  # with twenty the verdicts of four public sets of seven get worse
_FEWEST_OF_CLASS = 5
_FOLDS = 5
_PRIOR = 2.0  # weight of the squared parameters against the summed log-likelihood
_PULL = 0.05  # macro-F1 that a threshold has to gain for each 1.0 that it moves
_LEAST = 1e-6
_BINS = 10  # of the top probability, equally wide
GRID = np.arange(0.26, 0.80, 0.02)


class Figures(Value, frozen=True):
    """Macro-F1 of the verdicts and expected calibration error of the probabilities, each in [0, 1]."""

    macro_f1: float
    calibration_error: float


class OwnCalibration(Value, frozen=True):
    """The change of the verifier `base` by labelled pairs; `before` and `after` on pairs left out of the fit."""

    name: str
    base: str
    scale: float
    bias: tuple[float, ...]
    thresholds: Thresholds
    pairs: int
    before: Figures
    after: Figures
    precisions: tuple[Precision, ...] = ()


class LabelledPair(Value, frozen=True, forbid_unknown_fields=False):
    """A claim and its evidence, with the verdict that a person gave."""

    claim: str
    evidence: str
    verdict: VerdictClass


class OwnVerifier(WindowedVerifier):
    """A verifier with its calibration on labelled pairs, behind the `Entailment` protocol."""

    def __init__(self, base: WindowedVerifier, fitted: OwnCalibration) -> None:
        super().__init__(
            lambda pairs: moved(base.classify(pairs), fitted.scale, fitted.bias),
            CALIBRATED + fitted.name,
            fitted.thresholds,
            base.batch_size,
            base.words,
            fitted.precisions,
        )
        self.base, self.fitted = base, fitted

    def in_other_format(self) -> OwnVerifier:
        """The same calibration on the base in its other number format; on the base itself where it has one only."""
        base = self.base.in_other_format() if isinstance(self.base, EmbeddedVerifier) else self.base
        return OwnVerifier(base, self.fitted)


def moved(rows: Floats, scale: float, bias: Sequence[float]) -> Floats:
    """Softmax of scale * log p + bias, shape (rows, 3)."""
    return softmax(np.log(rows + _LEAST) * np.float32(scale) + np.asarray(bias, np.float32))


def calibrated(
    pairs: Sequence[LabelledPair], base: WindowedVerifier, name: str, watch: Watch = Watch()
) -> OwnCalibration:
    """Fit `base` to labelled pairs of one kind of text; raise `InputError` where they are too few."""
    _file(name)  # a bad name is told now
    labels = np.array([CLASSES.index(pair.verdict) for pair in pairs], np.int64)
    _require_enough(labels)
    if len({pair.claim for pair in pairs}) < 2:
        raise InputError("All labelled pairs have the same claim. Label pairs of at least two claims.")
    looks = [rows for rows, _ in base.by_window([(pair.claim, pair.evidence) for pair in pairs], watch)]
    folds = folds_of([pair.claim for pair in pairs])
    scores, called_after = np.zeros((len(pairs), 3), np.float32), np.zeros(len(pairs), np.int64)
    for fold in np.unique(folds):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        found = fit([looks[i] for i in inside], labels[inside], base.thresholds)
        scores[outside], called_after[outside] = verdicts([looks[i] for i in outside], *found)
    before = verdicts(looks, 1.0, (0.0, 0.0, 0.0), base.thresholds)
    scale, bias, thresholds = fit(looks, labels, base.thresholds)
    return OwnCalibration(
        name=name,
        base=base.name,
        scale=scale,
        bias=bias,
        thresholds=thresholds,
        pairs=len(pairs),
        before=figures(*before, labels),
        after=figures(scores, called_after, labels),
        precisions=precisions_on(f"your pairs of {name}", labels, called_after),
    )


def folds_of(claims: Sequence[str]) -> Ints:
    """A number from 0 to 4 for each pair; the pairs of one claim are together."""
    each, claim_of = np.unique(claims, return_inverse=True)
    return np.random.default_rng(1337).permutation(len(each))[claim_of] % _FOLDS


def _require_enough(labels: Ints) -> None:
    counts = np.bincount(labels, minlength=len(CLASSES))
    if len(labels) < FEWEST or np.sum(counts >= _FEWEST_OF_CLASS) < 2:
        told = ", ".join(f"{count} {name}" for name, count in zip(CLASSES, counts, strict=True))
        raise InputError(
            f"A calibration needs {FEWEST} labelled pairs, and at least {_FEWEST_OF_CLASS} of two verdicts. "
            f"These are {len(labels)}: {told}. Label more."
        )


def fit(looks: Sequence[Floats], labels: Ints, start: Thresholds) -> tuple[float, tuple[float, ...], Thresholds]:
    """Scale, biases and thresholds; `looks` are the base's probabilities by pair, each of shape (windows, 3)."""
    scale, bias = fit_moves(np.stack([deciding(rows) for rows in looks]), labels)
    maxima = np.stack([moved(rows, scale, bias)[:, :2].max(axis=0) for rows in looks])
    supportive, editing = fit_thresholds([(maxima, labels)], start)
    return scale, bias, Thresholds(supportive=supportive, editing_required=editing)


def fit_moves(rows: Floats, labels: Ints) -> tuple[float, tuple[float, ...]]:
    """Scale and biases (of irrelevant: 0) with the largest posterior for one row of probabilities a pair."""
    from scipy.optimize import minimize

    logs = np.log(rows + _LEAST).astype(np.float64)

    def loss(values: NDArray[np.float64]) -> float:
        shifted = logs * np.exp(values[0]) + np.array([values[1], values[2], 0.0])
        shifted -= np.logaddexp.reduce(shifted, axis=1, keepdims=True)
        return float(_PRIOR * (values**2).sum() - shifted[np.arange(len(labels)), labels].sum())

    found = minimize(loss, np.zeros(3), method="L-BFGS-B").x
    return float(np.exp(found[0])), (float(found[1]), float(found[2]), 0.0)


def verdicts(
    looks: Sequence[Floats], scale: float, bias: Sequence[float], thresholds: Thresholds
) -> tuple[Floats, Ints]:
    """Class probabilities of pairs, shape (pairs, 3), and their verdicts as indices of `CLASSES`."""
    judged = [combine(moved(rows, scale, bias), [(0, 0)] * len(rows), thresholds) for rows in looks]
    scores = np.array([[one.scores[c] for c in CLASSES] for one in judged], np.float32)
    return scores, np.array([CLASSES.index(one.verdict) for one in judged])


def deciding(rows: Floats) -> Floats:
    """The row of the window that speaks most for or against, shape (3,)."""
    row: Floats = rows[rows[:, :2].max(axis=1).argmax()]
    return row


def figures(scores: Floats, verdict: Ints, labels: Ints) -> Figures:
    """Both figures, to three digits."""
    return Figures(
        macro_f1=round(macro_f1(labels, verdict), 3),
        calibration_error=round(expected_calibration_error(scores, labels), 3),
    )


def precisions_on(name: str, labels: Ints, verdict: Ints) -> tuple[Precision, ...]:
    """Precision of each class that was called and that occurs among the labels of a set."""
    rows = []
    for index, each in enumerate(CLASSES):
        chosen = labels[verdict == index]
        if len(chosen) and (labels == index).any():
            share = round(float((chosen == index).mean()), 3)
            rows.append(Precision(verdict=each, measured_on=name, share=share, called=len(chosen)))
    return tuple(rows)


# Measures and thresholds, which the training of the shipped verifiers shares.


def macro_f1(labels: Ints, called: Ints) -> float:
    """Mean F1 of the classes that occur among `labels`."""
    return float(np.mean([f for f in class_f1(labels, called) if not np.isnan(f)]))


def class_f1(labels: Ints, called: Ints) -> list[float]:
    """F1 of each class; NaN for a class that `labels` lacks."""
    scores = []
    for index in range(len(CLASSES)):
        true, mine = labels == index, called == index
        both, held = (true & mine).sum(), true.sum() + mine.sum()
        scores.append(float(2 * both / held) if true.any() else float("nan"))
    return scores


def expected_calibration_error(probabilities: Floats, labels: Ints) -> float:
    """Mean |confidence - accuracy| over equal-width bins of the top probability, weighted by their pairs."""
    return sum(n * abs(c - a) for _, n, c, a in reliability(probabilities, labels)) / max(1, len(labels))


def reliability(probabilities: Floats, labels: Ints) -> list[tuple[float, int, float, float]]:
    """(lower edge, pairs, mean confidence, accuracy) of each bin of the top probability that holds pairs."""
    top, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    places = np.minimum((top * _BINS).astype(int), _BINS - 1)
    rows = []
    for place in np.unique(places):
        inside = places == place
        rows.append((place / _BINS, int(inside.sum()), float(top[inside].mean()), float(right[inside].mean())))
    return rows


def fit_thresholds(sets: Sequence[tuple[Floats, Ints]], start: Thresholds | None = None) -> tuple[float, float]:
    """The two thresholds with the best mean macro-F1, less a price for their distance from `start`.

    A set is an array of (p(supportive), p(editing required)) per pair, and the labels.
    """
    best, at = -1.0, (0.5, 0.5)
    for limits in product(GRID.tolist(), repeat=2):
        score = float(np.mean([macro_f1(labels, called(found, *limits)) for found, labels in sets]))
        if start:
            score -= _PULL * (abs(limits[0] - start.supportive) + abs(limits[1] - start.editing_required))
        if score > best:
            best, at = score, limits
    return round(at[0], 2), round(at[1], 2)


def called(maxima: Floats, supportive: float, editing: float) -> Ints:
    """The class of each row of (p supportive, p editing required): `decide` for arrays."""
    ratios = maxima / np.array([supportive, editing], dtype=np.float32)
    return np.where(ratios.max(axis=1) >= 1.0, ratios.argmax(axis=1), 2)


# In the data folder.


def keep(fitted: OwnCalibration) -> Path:
    """Save a calibration under its name, in place of an earlier one of that name."""
    path = _file(fitted.name)
    save_json(path, fitted, "The calibration")
    return path


def drop(name: str) -> None:
    """Delete a calibration; one that is gone already is fine."""
    _file(name).unlink(missing_ok=True)


def own_calibrations() -> list[OwnCalibration]:
    """The calibrations of the data folder that can be read, by name."""
    found = (_read(path)[0] for path in sorted((home() / "verifiers").glob("*.json")))
    return [fitted for fitted in found if fitted]


def load_calibrated(name: str) -> OwnVerifier:
    """The verifier `calibrated:NAME`; raise `ModelNotFound` with the way out."""
    fitted, problem = _read(_file(name.removeprefix(CALIBRATED)))
    if fitted is None:
        raise ModelNotFound(
            problem
            or f"The data folder has no verifier {name}. Run calibrate-verifier with that name, or use embedded."
        )
    return OwnVerifier(calibratable(fitted.base), fitted)


def calibratable(name: str = EMBEDDED) -> WindowedVerifier:
    """A verifier by name that gives probabilities of windows; raise `InputError` for any other."""
    found = load_entailment(name)
    if not isinstance(found, WindowedVerifier) or isinstance(found, OwnVerifier):
        raise InputError(f"{name} cannot be calibrated. Choose embedded, medium, large, or an NLI model.")
    return found


def _file(name: str) -> Path:
    if not re.fullmatch(r"\w[\w.-]{0,63}", name):
        raise InputError(f"{name!r} is not a name for a calibration. Use letters, digits, hyphens and dots.")
    return home() / "verifiers" / f"{name}.json"


def _read(path: Path) -> tuple[OwnCalibration | None, str]:
    return read_json(path, OwnCalibration, None, "The calibration", ". Delete it and calibrate again.")
