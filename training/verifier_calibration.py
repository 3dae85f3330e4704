"""Calibrate the embedded verifier: `python -m training.verifier_calibration --data DIR`.

Fits, on the first parts of the held-out sets and of the sets of other domains, every set weighing the same: a scale and
bias for each class (vector scaling, Guo et al. 2017), and both thresholds, by the mean of the sets' macro-F1 on
evidence of one window. Pairs made by code are not fitted on. Precision by class is counted on the other parts. Writes
thresholds.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from engine.models.calibration import Ints, deciding, fit_thresholds, precisions_on
from engine.models.protocols import Floats
from engine.models.verdicts import CLASSES, Precision, Thresholds, combine, windows
from engine.models.verifier import FOLDER, Calibration, EmbeddedVerifier
from training.verifier_data import Pair
from training.verifier_domains import SIZE, every_set
from training.verifier_held_out import MADE, HeldOut


@dataclass(frozen=True)
class Seen:
    """The network's output on pairs: logits (pairs, 3), labels, and the weight of each pair."""

    logits: Floats
    labels: Ints
    weights: Floats


def even(groups: Sequence[Ints]) -> Floats:
    """Weights that let each set of labels count alike; mean 1."""
    weights = np.concatenate([np.full(len(labels), 1.0 / len(labels)) for labels in groups])
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


def precisions(sets: Sequence[HeldOut], verdicts: Sequence[Ints]) -> tuple[Precision, ...]:
    """Precision of each class by set, on the halves that nothing was fitted on."""
    halves = [np.array(data.half(fitted=False)) for data in sets]
    every = zip(sets, verdicts, halves, strict=True)
    return tuple(
        row for data, mine, half in every for row in precisions_on(data.name, labels_of(data)[half], mine[half])
    )


def calibrate(verifier: EmbeddedVerifier, sets: Sequence[HeldOut]) -> Calibration:
    """Fit scale, bias and thresholds on the fitted parts of the sets that people made; count precision on the rest."""
    looks = [window_logits(verifier, data.pairs) for data in sets]
    fitting = [
        (data, look, data.half(fitted=True)) for data, look in zip(sets, looks, strict=True) if data.name != MADE
    ]
    groups = [labels_of(data)[half] for data, _, half in fitting]
    tops = [deciding(look[i]) for _, look, half in fitting for i in half]
    scale, bias = fit_scale(Seen(np.stack(tops), np.concatenate(groups), even(groups)))
    fitted = Calibration(scale=scale, bias=bias)
    one_window = [(data, look, [i for i in half if len(look[i]) == 1]) for data, look, half in fitting if not data.two]
    supportive, editing = fit_thresholds(
        [
            (fitted.probabilities(np.concatenate([look[i] for i in places]))[:, :2], labels_of(data)[places])
            for data, look, places in one_window
        ]
    )
    thresholds = Thresholds(supportive=supportive, editing_required=editing)
    fitted = msgspec.structs.replace(fitted, thresholds=thresholds)
    verdicts = [np.array([_call(fitted, logits) for logits in look]) for look in looks]
    return msgspec.structs.replace(fitted, precisions=precisions(sets, verdicts))


def labels_of(data: HeldOut) -> Ints:
    """The labels of a set's pairs."""
    return np.array([label for _, _, label in data.pairs])


def window_logits(verifier: EmbeddedVerifier, pairs: Sequence[Pair]) -> list[Floats]:
    """For each pair the logits of the windows of its evidence, shape (windows, 3)."""
    spans = [windows(evidence) for _, evidence, _ in pairs]
    flat = [(c, e[a:b]) for (c, e, _), found in zip(pairs, spans, strict=True) for a, b in found]
    return np.split(verifier.logits(flat), np.cumsum([len(found) for found in spans])[:-1])


def _call(fitted: Calibration, logits: Floats) -> int:
    spans = [(0, 0)] * len(logits)
    return CLASSES.index(combine(fitted.probabilities(logits), spans, fitted.thresholds).verdict)


def calibrate_folder(data: Path, weights: Path, size: int = SIZE) -> None:
    """Calibrate the weights in a folder on at most `size` pairs of each part of a set; write its thresholds.json."""
    from engine.models.verifier_network import load_network

    verifier = EmbeddedVerifier(*load_network(weights), Calibration())
    fitted = calibrate(verifier, every_set(data, size))
    text = msgspec.json.format(msgspec.json.encode(fitted), indent=1)
    (weights / "thresholds.json").write_bytes(text + b"\n")


def main() -> None:
    """Read the arguments and calibrate."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--weights", type=Path, default=FOLDER)
    parser.add_argument("--size", type=int, default=SIZE, help="most pairs per part of a set")
    parser.add_argument("--threads", type=int, default=1, help="more than 1 only on idle cores")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    calibrate_folder(arguments.data, arguments.weights, arguments.size)


if __name__ == "__main__":
    main()
