"""What the committed verifier weights reach: python -m bench.verifier --data DIR.

Public held-out sets (the halves that calibration was not fitted on, and VitaminC dev whole), and the drafts with
planted errors of the bank investigation: macro-F1, F1 and precision of each class, expected calibration error, pairs
a second. A set that is absent is skipped with a sentence.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.results import conditions, write_section
from engine.core.errors import FileError
from engine.core.files import ASSETS
from engine.core.text import sentences
from engine.models.protocols import Floats
from engine.models.verdicts import CLASSES
from engine.models.verifier import EmbeddedVerifier, load_embedded
from training.verifier_calibration import Ints, class_f1, expected_calibration_error, macro_f1, reliability
from training.verifier_data import EDITING, IRRELEVANT, SUPPORTIVE, Pair
from training.verifier_held_out import held_out_sets

DRAFTS = ASSETS / "corpora" / "bank_investigation"
WHOLE = "VitaminC dev, whole"
DRAFTED = "bank investigation, drafts"
TOLD = (
    "Calibration and thresholds were fitted on the other halves of these sets; VitaminC dev whole contains that half. "
    "The drafts were seen by nothing. A pair of the drafts has two to three windows."
)
REPORTED = ("VitaminC dev", "FeverSymmetric test", "FoolMeTwice held-out pages", "CLAP NQ, made")
HEAD = (
    "| set | pairs | macro-F1 | F1 supportive / editing / irrelevant | precision of the same | ECE | pairs/s |",
    "|---|---|---|---|---|---|---|",
)


def drafts(folder: Path = DRAFTS) -> list[Pair]:
    """Sentences of the drafts against the passages they cite and the evidence noted for their errors.

    A planted error needs editing, an unsupported claim is irrelevant, the corrected sentence and every other one is
    supportive.
    """
    records = [json.loads(line) for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    passages = {record["id"]: [p["quote"] for p in record["passages"]] for record in records}
    pairs: list[Pair] = []
    for line in (folder / "drafts.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        for start, end in sentences(record["draft"]):
            pairs += sentence_pairs(record["draft"][start:end], record["errors"], passages[record["question_id"]])
    return pairs


def sentence_pairs(sentence: str, errors: list[dict[str, Any]], passages: list[str]) -> list[Pair]:
    """The pairs of one sentence: as written, and corrected where it holds an error."""
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
    """What the verifier said on one set."""

    name: str
    labels: Ints
    called: Ints
    scores: Floats  # (pairs, 3)
    seconds: float


def measure(name: str, pairs: Sequence[Pair], verifier: EmbeddedVerifier) -> Measured:
    """Judge the pairs of one set."""
    started = time.perf_counter()
    judged = verifier.judge([(claim, evidence) for claim, evidence, _ in pairs])
    return Measured(
        name=name,
        seconds=time.perf_counter() - started,
        labels=np.array([label for _, _, label in pairs]),
        called=np.array([CLASSES.index(one.verdict) for one in judged]),
        scores=np.array([[one.scores[c] for c in CLASSES] for one in judged], np.float32),
    )


def row(one: Measured) -> str:
    """One line of the table."""
    right = [one.labels[one.called == i] == i for i in range(len(CLASSES))]
    cells = [
        one.name,
        f"{len(one.labels)}",
        f"{macro_f1(one.labels, one.called):.3f}",
        _three(class_f1(one.labels, one.called)),
        _three([float(h.mean()) if len(h) and (one.labels == i).any() else np.nan for i, h in enumerate(right)]),
        f"{expected_calibration_error(one.scores, one.labels):.3f}",
        f"{len(one.labels) / one.seconds:.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def _three(values: Sequence[float]) -> str:
    return " / ".join("-" if np.isnan(value) else f"{value:.2f}" for value in values)


def reliability_table(sets: Sequence[Measured]) -> list[str]:
    """Top probability against share right, over all given sets together."""
    rows = reliability(np.concatenate([s.scores for s in sets]), np.concatenate([s.labels for s in sets]))
    lines = ["", "| top probability | pairs | mean probability | share right |", "|---|---|---|---|"]
    return lines + [
        f"| {low:.1f} to {low + 0.1:.1f} | {n} | {mean:.2f} | {right:.2f} |" for low, n, mean, right in rows
    ]


def public_sets(folder: Path) -> list[tuple[str, list[Pair]]]:
    """The reporting halves, and VitaminC dev whole; raise `FileError` where a set is absent."""
    sets = held_out_sets(folder)
    whole = [(WHOLE, sets[0].pairs)]
    return whole + [(data.name, [data.pairs[i] for i in data.half(fitted=False)]) for data in sets]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, and with --write keep it where the public sets are there."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the public sets")
    parser.add_argument("--threads", type=int, default=0, help="torch threads; 0 leaves them as they are")
    parser.add_argument("--write", action="store_true", help="write the section of bench/RESULTS.md")
    options = parser.parse_args(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    verifier = load_embedded()
    verifier.judge([("warm", "up")])
    table, measured = list(HEAD), []
    print(*HEAD, sep="\n")
    for name, pairs in sets_that_are_there(options.data):
        measured.append(measure(name, pairs, verifier))
        table.append(row(measured[-1]))
        print(table[-1], flush=True)
    public = [one for one in measured if one.name in REPORTED]
    extra = reliability_table(public) if public else []
    print(*extra, sep="\n")
    if public and options.write:
        title = f"## Evidence verifier, committed weights\n\n{TOLD}\n\n{conditions(threads=torch.get_num_threads())}\n"
        write_section("verifier", "\n".join([title, *table, *extra]))


def sets_that_are_there(folder: Path) -> list[tuple[str, list[Pair]]]:
    """The public sets or a sentence on what is missing, then the sample drafts or a sentence."""
    found: list[tuple[str, list[Pair]]] = []
    try:
        found += public_sets(folder)
    except FileError as error:
        print(f"Public sets skipped: {error}")
    if (DRAFTS / "drafts.jsonl").is_file():
        found.append((DRAFTED, drafts()))
    else:
        print(f"Drafts skipped: {DRAFTS / 'drafts.jsonl'} is not there.")
    return found


if __name__ == "__main__":
    main()
