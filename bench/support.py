"""Find unsupported sentences: python -m bench.support --data DIR [--articles N] [--write].

QAGS: news summaries written by models, with three votes per sentence on whether the article supports it. It has two
parts: XSum (one sentence, often with invented details) and CNN (mostly copied). The figure is the AUROC of telling
supported sentences from the rest, for the parts of `engine.methods.support` and for its combined score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from bench.results import DATA, arguments, conditions, publish, table
from engine.answer.citations import annotate
from engine.answer.prompt import build_prompt
from engine.core.values import AuditRecord
from engine.methods.support import answer_support
from engine.models.alignment import clean
from engine.models.embedder import load_embedder
from engine.models.protocols import Embedder, Entailment, LanguageModel
from engine.models.registry import load_writer
from engine.models.verifier import load_entailment
from training.verifier_data import read

PARTS = {"XSum": ("xsum", 239), "CNN": ("cnn", 110)}  # how ids begin, articles
TOLD = (
    "QAGS: sentences of summaries that models wrote, against the whole article. A sentence is supported if most of "
    "three people say so. AUROC, with the middle 95% of 1,000 draws of the sentences. Support is the mean of the other "
    "rows. Verdict is the verifier on the best windows; explained is by the embedded language model."
)


@dataclass(frozen=True)
class Sentence:
    """A summary's sentence, whether most voters say that its article supports it, and the parts of its support."""

    supported: bool
    support: float
    parts: dict[str, float]


def measured(
    folder: Path, part: str, articles: int, verifier: Entailment, embedder: Embedder, scorer: LanguageModel
) -> list[Sentence]:
    """The support of every summary sentence of at most `articles` articles of a part."""
    rows = [row for row in read(folder, "qags/localise.jsonl") if row["id"].startswith(PARTS[part][0])]
    found = []
    for row in Random(1).sample(rows, min(articles, PARTS[part][1])):
        (passage,) = AuditRecord(question="summary", passages=(clean(row["source"]),)).as_passages()
        prompt = build_prompt("summary", [passage])
        for sentence in row["sentences"]:
            answer = annotate(scorer.encode_answer(clean(sentence["text"])), 1, "alce")
            scored = answer_support(answer, [passage], verifier, embedder, (scorer, prompt, answer))
            supported = 2 * sentence["supported"] > sentence["votes"]
            found += [Sentence(supported, one.support, one.parts) for one in scored[:1]]
    return found


def interval(labels: Sequence[bool], scores: Sequence[float], resamples: int = 1000) -> tuple[float, float]:
    """The middle 95% of AUROC over resampled sentences; draws with one class only are left out."""
    rng, truth, values = np.random.default_rng(1337), np.asarray(labels), np.asarray(scores)
    draws = [rng.integers(0, len(truth), len(truth)) for _ in range(resamples)]
    found = [roc_auc_score(truth[rows], values[rows]) for rows in draws if 0 < truth[rows].sum() < len(rows)]
    low, high = np.quantile(found, (0.025, 0.975))
    return float(low), float(high)


def main() -> None:
    """Print the table and save it with --write."""
    asked = arguments(__doc__, data=DATA, articles=(239, "of each part, at most"))
    verifier, embedder = load_entailment(), load_embedder()
    scorer: Any = load_writer("embedded")
    found = {part: measured(asked.data, part, asked.articles, verifier, embedder, scorer) for part in PARTS}
    rows = {
        name: [cell(part, [one.parts[name] for one in part]) for part in found.values()]
        for name in found["XSum"][0].parts
    }
    rows["support"] = [cell(part, [s.support for s in part]) for part in found.values()]
    heads = [
        f"{name}, n = {len(part)}, supported {np.mean([s.supported for s in part]):.2f}" for name, part in found.items()
    ]
    lines = table(" | ".join(["score", *heads]), ((name, *cells) for name, cells in rows.items()))
    publish(asked, "support", "Support of answer sentences", f"{TOLD}\n\n{conditions()}", lines)


def cell(part: Sequence[Sentence], scores: Sequence[float]) -> str:
    """AUROC with its interval."""
    labels = [one.supported for one in part]
    low, high = interval(labels, scores)
    return f"{roc_auc_score(labels, scores):.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    main()
