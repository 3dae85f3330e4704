"""Calibrate the embedded verifier on a few pairs of each public set: python -m bench.calibration --data DIR [--write].

What `calibrate-verifier` brings on a kind of text: 50, 100 and 200 pairs of a set's fitted part calibrate, its other
part is judged. Macro-F1 of the verdicts and expected calibration error, as means of ten draws. COVID-Fact's scores and
verdicts are between its two classes, as in `bench.verifier`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.results import DATA, arguments, conditions, publish, table
from engine.models.calibration import Figures, Ints, calibratable, figures, fit, verdicts
from engine.models.protocols import Floats
from engine.models.verdicts import Thresholds
from engine.models.verifier import WindowedVerifier
from training.verifier_data import IRRELEVANT
from training.verifier_domains import every_set
from training.verifier_held_out import HeldOut

SIZES = (50, 100, 200)
DRAWS = 10
TOLD = (
    "The shipped verifier calibrated by `calibrate-verifier` on a few labelled pairs of the same set, and measured on "
    "pairs that share neither claim nor page with these. Each cell: macro-F1, expected calibration error; means of ten "
    "draws of the labelled pairs, largest error of a draw in brackets."
)


def measured(
    looks: Sequence[Floats], labels: Ints, two: bool, scale: float, bias: Sequence[float], thresholds: Thresholds
) -> Figures:
    """The figures of a calibration on pairs, from the base's probabilities by window."""
    scores, found = verdicts(looks, scale, bias, thresholds)
    if two:
        scores[:, IRRELEVANT] = 0.0
        scores /= np.maximum(scores.sum(axis=1, keepdims=True), 1e-9)
        found = scores.argmax(axis=1)
    return figures(scores, found, labels)


def cells(data: HeldOut, verifier: WindowedVerifier) -> list[str]:
    """The figures of one set: as shipped, and after each number of labelled pairs."""
    labels = np.array([label for _, _, label in data.pairs])
    looks = [rows for rows, _ in verifier.by_window([(claim, evidence) for claim, evidence, _ in data.pairs])]
    inside, outside = np.array(data.half(fitted=True)), np.array(data.half(fitted=False))
    rest = [looks[i] for i in outside]
    shipped = measured(rest, labels[outside], data.two, 1.0, (0.0, 0.0, 0.0), verifier.thresholds)
    row = [data.name, str(len(outside)), f"{shipped.macro_f1:.3f}, {shipped.calibration_error:.3f}"]
    for size in SIZES:
        rng = np.random.default_rng(size)
        draws = [rng.choice(inside, min(size, len(inside)), replace=False) for _ in range(DRAWS)]
        fits = (fit([looks[i] for i in drawn], labels[drawn], verifier.thresholds) for drawn in draws)
        found = [measured(rest, labels[outside], data.two, *fitted) for fitted in fits]
        errors = [one.calibration_error for one in found]
        row.append(f"{np.mean([one.macro_f1 for one in found]):.3f}, {np.mean(errors):.3f} ({max(errors):.3f})")
    return row


def main() -> None:
    """Print the table; with --write, store it."""
    asked = arguments(__doc__, data=DATA, size=(400, "most pairs per part of a set"))
    heads, verifier = " | ".join(f"{size} labelled" for size in SIZES), calibratable()
    rows = (cells(data, verifier) for data in every_set(asked.data, asked.size))
    lines = table(f"set | pairs | as shipped | {heads}", rows)
    publish(asked, "calibration", "A verifier calibrated on labelled pairs", f"{TOLD}\n\n{conditions()}", lines)


if __name__ == "__main__":
    main()
