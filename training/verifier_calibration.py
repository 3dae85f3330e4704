"""Calibrate the embedded verifier on dev halves: `python -m training.verifier_calibration --data DIR`.

Fits, on the first halves of the held-out sets, every set and class weighing the same: a scale and bias for each class
(vector scaling, Guo et al. 2017), and both thresholds for 1, 2 to 3, and more windows. Precision by class is counted
on the other halves. Writes thresholds.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec
import numpy as np
from numpy.typing import NDArray

from engine.models.protocols import Floats
from engine.models.verdicts import (
    CLASSES,
    Precision,
    WindowThreshold,
    decide,
)
from engine.models.verifier import FOLDER, Calibration, EmbeddedVerifier
from training.verifier_data import overlap
from training.verifier_held_out import HeldOut, held_out_sets

Ints = NDArray[np.int64]
WINDOWS = (1, 3, 6)
GRID = np.arange(0.30, 0.86, 0.02)
EVERY = 9  # one fitted pair in so many is given extra windows


@dataclass(frozen=True)
class Seen:
    """What the network said on pairs: logits (pairs, 3), labels, weight of each pair."""

    logits: Floats
    labels: Ints
    weights: Floats


def balanced(groups: Sequence[Ints]) -> Floats:
    """Weights that give each set, inside it each class that it has, and then each class overall the same say; mean 1.

    Without the last step a set that lacks a class (FeverSymmetric has no irrelevant pairs) would argue against it.
    """
    parts = []
    for labels in groups:
        counts = np.bincount(labels, minlength=3).astype(np.float64)
        parts.append((1.0 / np.maximum(counts, 1.0))[labels] / (counts > 0).sum())
    weights, every = np.concatenate(parts), np.concatenate(groups)
    totals = np.bincount(every, weights=weights, minlength=3)
    weights = weights / np.maximum(totals, 1e-9)[every]
    result: Floats = (weights / weights.mean()).astype(np.float32)
    return result


def fit_scale(seen: Seen) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Scale and bias of each class by weighted log-likelihood."""
    from scipy.optimize import minimize

    def loss(values: Floats) -> float:
        moved = seen.logits * values[:3] + values[3:]
        top = moved.max(axis=1, keepdims=True)
        logs = moved - top - np.log(np.exp(moved - top).sum(axis=1, keepdims=True))
        return float(-(seen.weights * logs[np.arange(len(logs)), seen.labels]).mean() + 1e-3 * (values[3:] ** 2).sum())

    found = minimize(loss, np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]), method="L-BFGS-B").x
    return tuple(map(float, found[:3])), tuple(map(float, found[3:]))


def macro_f1(labels: Ints, called: Ints, weights: Floats | None = None) -> float:
    """Mean F1 of the classes that occur among `labels`."""
    return float(np.mean([f for f in class_f1(labels, called, weights) if not np.isnan(f)]))


def class_f1(labels: Ints, called: Ints, weights: Floats | None = None) -> list[float]:
    """F1 of each class; NaN for a class that `labels` lacks."""
    weight = np.ones(len(labels)) if weights is None else weights
    scores = []
    for index in range(len(CLASSES)):
        true, mine = labels == index, called == index
        both = (weight * (true & mine)).sum()
        scores.append(float(2 * both / ((weight * true).sum() + (weight * mine).sum())) if true.any() else float("nan"))
    return scores


def expected_calibration_error(probabilities: Floats, labels: Ints, bins: int = 10) -> float:
    """Mean |confidence - accuracy| over equal-width bins of the top probability, weighted by their pairs."""
    return sum(n * abs(c - a) for _, n, c, a in reliability(probabilities, labels, bins)) / max(1, len(labels))


def reliability(probabilities: Floats, labels: Ints, bins: int = 10) -> list[tuple[float, int, float, float]]:
    """(lower edge, pairs, mean confidence, accuracy) of each bin of the top probability that holds pairs."""
    top, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    places = np.minimum((top * bins).astype(int), bins - 1)
    rows = []
    for place in np.unique(places):
        inside = places == place
        rows.append((place / bins, int(inside.sum()), float(top[inside].mean()), float(right[inside].mean())))
    return rows


def fit_thresholds(windows: dict[int, tuple[Floats, Ints, Floats]]) -> tuple[WindowThreshold, ...]:
    """The two thresholds with the best macro-F1 for each number of windows; maxima (pairs, 2), labels, weights."""
    result = []
    for count, (maxima, labels, weights) in windows.items():
        best, at = -1.0, (0.5, 0.5)
        for supportive in GRID:
            for editing in GRID:
                score = macro_f1(labels, called(maxima, float(supportive), float(editing)), weights)
                score -= 0.01 * (abs(supportive - 0.5) + abs(editing - 0.5))
                if score > best:
                    best, at = score, (float(supportive), float(editing))
        result.append(WindowThreshold(windows=count, supportive=round(at[0], 2), editing_required=round(at[1], 2)))
    return (*result[:-1], msgspec.structs.replace(result[-1], windows=1_000_000))


def called(maxima: Floats, supportive: float, editing: float) -> Ints:
    """Class called for each row of (p supportive, p editing required): `decide` for arrays."""
    ratios = maxima / np.array([supportive, editing], dtype=np.float32)
    result: Ints = np.where(ratios.max(axis=1) >= 1.0, ratios.argmax(axis=1), 2)
    return result


def distractors(data: HeldOut, index: int, count: int, rng: Random) -> list[str]:
    """Evidence of other pairs of the set that has little to do with the claim: half of it close by, half anywhere."""
    claim = data.pairs[index][0]
    near = [data.pairs[i][1] for i in range(max(0, index - 12), min(len(data.pairs), index + 12))]
    away = [rng.choice(data.pairs)[1] for _ in range(4 * count)]
    found = [e for e in dict.fromkeys(rng.sample(near, len(near))) if overlap(claim, e) < 0.35][: count // 2]
    found += [e for e in away if overlap(claim, e) < 0.35]
    return found[:count]


def precisions(sets: Sequence[HeldOut], verdicts: Sequence[Ints]) -> tuple[Precision, ...]:
    """Share right of what is called each class, by set, on the halves that nothing was fitted on."""
    rows = []
    for data, mine in zip(sets, verdicts, strict=True):
        labels = np.array([label for _, _, label in data.pairs])
        half = np.array(data.half(fitted=False))
        for index, name in enumerate(CLASSES):
            chosen = half[mine[half] == index]
            if len(chosen) and (labels == index).any():
                share = float((labels[chosen] == index).mean())
                rows.append(Precision(verdict=name, measured_on=data.name, share=round(share, 3), called=len(chosen)))
    return tuple(rows)


def calibrate(verifier: EmbeddedVerifier, sets: Sequence[HeldOut]) -> Calibration:
    """Fit everything on the fitted halves; count precision on the others."""
    looks = [verifier.logits([(c, e) for c, e, _ in data.pairs]) for data in sets]
    halves = [data.half(fitted=True) for data in sets]
    groups = [np.array([data.pairs[i][2] for i in half]) for data, half in zip(sets, halves, strict=True)]
    seen = Seen(
        logits=np.concatenate([logits[half] for logits, half in zip(looks, halves, strict=True)]),
        labels=np.concatenate(groups),
        weights=balanced(groups),
    )
    scale, bias = fit_scale(seen)
    fitted = Calibration(scale=scale, bias=bias)
    extra, rows = _extra_windows(verifier, sets, halves)
    maxima = _maxima(fitted.probabilities(seen.logits), fitted.probabilities(extra), rows, seen)
    fitted = msgspec.structs.replace(fitted, thresholds=fit_thresholds(maxima))
    verdicts = [_calls(fitted.probabilities(logits), fitted.thresholds) for logits in looks]
    return msgspec.structs.replace(fitted, precisions=precisions(sets, verdicts))


def _calls(probabilities: Floats, thresholds: Sequence[WindowThreshold]) -> Ints:
    names = [decide(float(row[0]), float(row[1]), 1, thresholds) for row in probabilities]
    return np.array([CLASSES.index(name) for name in names])


def _extra_windows(
    verifier: EmbeddedVerifier, sets: Sequence[HeldOut], halves: Sequence[list[int]]
) -> tuple[Floats, Ints]:
    """Logits of distractor windows, and the row (of all fitted pairs) that each belongs to."""
    rng = Random(3)
    pairs: list[tuple[str, str]] = []
    rows: list[int] = []
    places = [(data, index) for data, half in zip(sets, halves, strict=True) for index in half]
    for row, (data, index) in enumerate(places):
        if row % EVERY == 0:
            found = distractors(data, index, WINDOWS[-1] - 1, rng)
            pairs += [(data.pairs[index][0], evidence) for evidence in found]
            rows += [row] * len(found)
    return verifier.logits(pairs), np.array(rows)


def _maxima(own: Floats, others: Floats, rows: Ints, seen: Seen) -> dict[int, tuple[Floats, Ints, Floats]]:
    """For each number of windows: maxima (pairs, 2) of the pairs that have so many, their labels and weights."""
    result = {}
    for count in WINDOWS:
        maxima, taken = own[:, :2].copy(), np.zeros(len(own), dtype=int)
        for row, probabilities in zip(rows, others, strict=True):
            if taken[row] < count - 1:
                taken[row] += 1
                maxima[row] = np.maximum(maxima[row], probabilities[:2])
        full = taken == count - 1
        result[count] = (maxima[full], seen.labels[full], seen.weights[full])
    return result


def calibrate_folder(data: Path, weights: Path) -> None:
    """Calibrate the weights in a folder and write its thresholds.json."""
    from engine.models.verifier_network import load_network

    verifier = EmbeddedVerifier(*load_network(weights), Calibration())
    fitted = calibrate(verifier, held_out_sets(data))
    text = msgspec.json.format(msgspec.json.encode(fitted), indent=1)
    (weights / "thresholds.json").write_bytes(text + b"\n")


def main() -> None:
    """Read the arguments and calibrate."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--weights", type=Path, default=FOLDER)
    parser.add_argument("--threads", type=int, default=1, help="more only on cores with nothing else to do")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    calibrate_folder(arguments.data, arguments.weights)


if __name__ == "__main__":
    main()
