"""Measure a verifier: python -m bench.verifier --data DIR [--weights FOLDER | --verifier NAME] [--size 800].

Measured on sets of other domains, public held-out sets (the part that nothing was fitted on; all of VitaminC dev), and
the bank investigation's drafts with planted errors: macro-F1 with its interval and two floors, F1 and precision of each
class, expected calibration error, pairs per second. A missing set is skipped with a message.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from bench.results import arguments, conditions, publish, read_lines, table
from engine.core.errors import FileError
from engine.core.files import ASSETS
from engine.core.text import sentences
from engine.models.calibration import Ints, class_f1, expected_calibration_error, macro_f1, reliability
from engine.models.protocols import Entailment, Floats
from engine.models.verdicts import CLASSES
from engine.models.verifier import FOLDER, load_embedded, load_entailment
from training.verifier_data import EDITING, IRRELEVANT, SUPPORTIVE, Pair, overlap
from training.verifier_domains import SIZE, every_set
from training.verifier_held_out import VITAMINC, HeldOut, held_out_sets

DRAFTS = ASSETS / "corpora" / "bank_investigation"
WHOLE = "VitaminC dev, whole"
DRAFTED = "bank investigation, drafts"
TOLD = (
    "HealthVer, COVID-Fact and CLIMATE-FEVER are other domains, which no training pair comes from. Of CLIMATE-FEVER "
    "those pairs are taken on which all votes agree. COVID-Fact has two classes, and the verifier is asked which of "
    "them. Calibration and thresholds were fitted on other pairs of these sets (not of CLAP NQ or the drafts), which "
    "VitaminC dev whole contains. A pair of the drafts has two to three windows. Floors, in macro-F1: word overlap is "
    "the share of the claim's longer words that the evidence has, with its two cuts and their classes chosen on the "
    "fitted part; majority is the fitted part's most frequent class. Intervals: 95%, pairs drawn anew 1,000 times."
)
HEADS = (
    "set | pairs | macro-F1 (interval) | word overlap / majority | F1 supportive / editing / irrelevant "
    "| precision of the same | ECE | pairs/s"
)


def drafts(folder: Path = DRAFTS) -> list[Pair]:
    """Pairs of the drafts' sentences with the passages they cite and the evidence of their errors.

    A planted error needs editing, an unsupported claim is irrelevant, the corrected sentence and every other one is
    supportive.
    """
    questions = read_lines(folder / "questions.jsonl")
    passages = {record["id"]: [p["quote"] for p in record["passages"]] for record in questions}
    pairs: list[Pair] = []
    for record in read_lines(folder / "drafts.jsonl"):
        for start, end in sentences(record["draft"]):
            pairs += sentence_pairs(record["draft"][start:end], record["errors"], passages[record["question_id"]])
    return pairs


def sentence_pairs(sentence: str, errors: list[dict[str, Any]], passages: list[str]) -> list[Pair]:
    """The pairs of one sentence: as written, and corrected if it has an error."""
    inside = [error for error in errors if error["wrong"].strip() in sentence]
    cited = [int(n) for n in re.findall(r"\[cite_(\d+)\]", sentence)]
    noted = [evidence["quote"] for error in inside for evidence in error["evidence"]]
    evidence = "\n".join(dict.fromkeys([*noted, *(passages[n - 1] for n in cited if n <= len(passages))]))
    if not evidence:
        return []
    if not inside:
        return [(plain(sentence), evidence, SUPPORTIVE)]
    if any(error["kind"] == "unsupported" for error in inside):
        return [(plain(sentence), evidence, IRRELEVANT)]
    right = sentence
    for error in inside:
        right = right.replace(error["wrong"], error["right"])
    return [(plain(sentence), evidence, EDITING), (plain(right), evidence, SUPPORTIVE)]


def plain(sentence: str) -> str:
    """The sentence without citation markers."""
    return re.sub(r"\s*\[cite_\d+\]", "", sentence)


@dataclass(frozen=True)
class Measured:
    """The verifier's results on one set, and its floors (macro-F1 of word overlap and of the majority class)."""

    name: str
    labels: Ints
    called: Ints
    scores: Floats  # (pairs, 3)
    seconds: float
    floors: tuple[float, float] = (float("nan"), float("nan"))


def measure(data: HeldOut, verifier: Entailment) -> Measured:
    """Judge the reported part of one set."""
    pairs = [data.pairs[i] for i in data.half(fitted=False)]
    started = time.perf_counter()
    judged = verifier.judge([(claim, evidence) for claim, evidence, _ in pairs])
    seconds = time.perf_counter() - started
    scores = np.array([[one.scores[c] for c in CLASSES] for one in judged], np.float32)
    called = np.array([CLASSES.index(one.verdict) for one in judged])
    if data.two:
        scores[:, IRRELEVANT] = 0.0
        scores /= np.maximum(scores.sum(axis=1, keepdims=True), 1e-9)
        called = scores.argmax(axis=1)
    return Measured(data.name, np.array([label for _, _, label in pairs]), called, scores, seconds, floors(data))


def floors(data: HeldOut) -> tuple[float, float]:
    """Macro-F1, on the reported part, of word overlap cut in three and of the fitted part's most frequent class."""
    labels = np.array([label for _, _, label in data.pairs])
    shares = np.array([overlap(claim, evidence) for claim, evidence, _ in data.pairs])
    fitted, rest = data.half(fitted=True), data.half(fitted=False)
    if not fitted:
        return float("nan"), float("nan")
    classes = np.unique(labels[fitted])
    cuts = combinations(np.arange(0.05, 1.05, 0.1), 2)
    _, best = max(
        (
            (macro_f1(labels[fitted], by_overlap(shares[fitted], cut, order)), (cut, order))
            for cut in cuts
            for order in product(classes, repeat=3)
        ),
        key=lambda each: each[0],
    )
    majority = np.bincount(labels[fitted]).argmax()
    return (
        macro_f1(labels[rest], by_overlap(shares[rest], *best)),
        macro_f1(labels[rest], np.full(len(rest), majority)),
    )


def by_overlap(shares: Floats, cuts: tuple[float, float], order: tuple[int, ...]) -> Ints:
    """The class of `order` for each share: under the first cut, between both, from the second."""
    result: Ints = np.array(order)[np.searchsorted(cuts, shares, side="right")]
    return result


def interval(labels: Ints, called: Ints, resamples: int = 1000) -> tuple[float, float]:
    """The middle 95% of macro-F1 over resampled pairs."""
    draws = np.random.default_rng(1337).integers(0, len(labels), (resamples, len(labels)))
    values = [macro_f1(labels[rows], called[rows]) for rows in draws]
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def row(one: Measured) -> str:
    """One line of the table."""
    right = [one.labels[one.called == i] == i for i in range(len(CLASSES))]
    low, high = interval(one.labels, one.called)
    cells = [
        one.name,
        f"{len(one.labels)}",
        f"{macro_f1(one.labels, one.called):.3f} ({low:.3f} to {high:.3f})",
        _three(one.floors),
        _three(class_f1(one.labels, one.called)),
        _three([float(h.mean()) if len(h) and (one.labels == i).any() else np.nan for i, h in enumerate(right)]),
        f"{expected_calibration_error(one.scores, one.labels):.3f}",
        f"{len(one.labels) / one.seconds:.0f}",
    ]
    return " | ".join(cells)


def _three(values: Sequence[float]) -> str:
    return " / ".join("-" if np.isnan(value) else f"{value:.2f}" for value in values)


def reliability_table(sets: Sequence[Measured]) -> list[str]:
    """Top probability against share right, over all given sets together."""
    rows = reliability(np.concatenate([s.scores for s in sets]), np.concatenate([s.labels for s in sets]))
    cells = (f"{low:.1f} to {low + 0.1:.1f} | {n} | {mean:.2f} | {right:.2f}" for low, n, mean, right in rows)
    return ["", *table("top probability | pairs | mean probability | share right", cells)]


def public_sets(folder: Path, size: int = SIZE) -> list[HeldOut]:
    """The sets of other domains, the held-out ones, and VitaminC dev whole; raise `FileError` where a set is absent."""
    sets = every_set(folder, size)
    whole = next(data for data in held_out_sets(folder) if data.name == VITAMINC)
    return [*sets, HeldOut(WHOLE, whole.pairs, [False] * len(whole.pairs))]


def report(sets: Sequence[HeldOut], verifier: Entailment) -> Iterator[str]:
    """The table, and how reliable the probabilities are on the public sets."""
    measured: list[Measured] = []

    def rows() -> Iterator[str]:
        for data in sets:
            measured.append(measure(data, verifier))
            yield row(measured[-1])

    yield from table(HEADS, rows())
    if public := [one for one in measured if one.name not in (WHOLE, DRAFTED)]:
        yield from reliability_table(public)


def main() -> None:
    """Print the table; with --write and the public sets, store it."""
    import torch

    options = arguments(
        __doc__,
        data=(Path("data"), "folder of the public sets"),
        weights=(FOLDER, "folder of the weights to measure"),
        verifier=("", "a verifier by name instead of a folder of weights"),
        size=(SIZE, "most pairs per part of a set"),
        threads=(0, "torch threads; 0 leaves them as they are"),
    )
    if options.threads:
        torch.set_num_threads(options.threads)
    verifier = load_entailment(options.verifier) if options.verifier else load_embedded(options.weights)
    verifier.judge([("warm", "up")])
    sets = sets_that_are_there(options.data, options.size)
    options.write &= any(data.name not in (WHOLE, DRAFTED) for data in sets)
    told = f"{TOLD}\n\n{conditions(threads=torch.get_num_threads())}"
    publish(options, "verifier", "Evidence verifier, committed weights", told, report(sets, verifier))


def sets_that_are_there(folder: Path, size: int = SIZE) -> list[HeldOut]:
    """The public sets and the sample drafts; a message in place of what is missing."""
    found: list[HeldOut] = []
    try:
        found += public_sets(folder, size)
    except FileError as error:
        print(f"Public sets skipped: {error}")
    if (DRAFTS / "drafts.jsonl").is_file():
        pairs = drafts()
        found.append(HeldOut(DRAFTED, pairs, [False] * len(pairs)))
    else:
        print(f"Drafts skipped: {DRAFTS / 'drafts.jsonl'} is not there.")
    return found


if __name__ == "__main__":
    main()
