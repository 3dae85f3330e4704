"""Is it in the documents: python -m bench.in_documents --data DIR [--write].

The probability of `engine/answer/in_documents.py` over the passages that `ask` finds. CLAP NQ: questions that its page
answers, and others. XQuAD: for every other question the paragraph that answers is taken out of the passages. Single
parts of the sentences' scores and the best passage's own score are in a second table. The curve's two parameters were
fitted on a part of these questions.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from sklearn.metrics import roc_auc_score

from bench.results import DATA, arguments, conditions, publish, table
from bench.support import interval
from engine.answer.context import find_context
from engine.answer.in_documents import probability
from engine.answer.sentence_scores import WEIGHTS, WORDS_IN_CLOSENESS, Candidate, score_sentences
from engine.core.settings import Retrieval
from engine.corpus.collection import Collection
from engine.models.calibration import expected_calibration_error
from engine.models.embedder import load_embedder
from engine.models.reranker import load_reranker
from training.verifier_data import read

SETS = {"XQuAD": ("xquad_en", 300), "CLAP NQ": ("clapnq", 600)}  # folder, questions
PARTS: dict[str, Callable[[Candidate], float]] = {
    "closeness": lambda c: c.closeness,
    "cosine": lambda c: c.parts["cosine"] / WEIGHTS["cosine"],
    "share of the question's words": lambda c: c.parts["words"] / WEIGHTS["words"],
    "the reader's score": lambda c: c.score,
}
LIMITS = (0.2, 0.5)
TOLD = (
    "The probability of `engine/answer/in_documents.py` over the passages of the default retrieval. XQuAD: its whole "
    "corpus, for every other question without the gold paragraph. CLAP NQ: its 300 answerable and 300 unanswerable "
    f"questions. The figure is that of the closest sentence: its cosine and {WORDS_IN_CLOSENESS:g} of the share of the "
    "question's words. The two parameters of its curve were fitted on 80 questions of XQuAD and 130 of CLAP NQ, which "
    "are among these; AUROC does not depend on them. Intervals: 95%, questions drawn anew 1,000 times. The "
    "verifier is not a part, as it judges claims and not questions. The writer's likelihoods are in *Writers*: the "
    "embedded writer's adapter was trained on CLAP NQ, so that they are measured on XQuAD and NQ alone."
)


@dataclass(frozen=True)
class Asked:
    """One question: whether the passages answer it, the probability, and each part of the closest sentence's score."""

    answerable: bool
    probability: float
    parts: dict[str, float]


def asked(folder: Path, count: int) -> Iterator[Asked]:
    """`count` questions of a set, drawn with a fixed seed."""
    embedder = load_embedder()
    reranker = load_reranker()
    collection = Collection.create(folder.name, embedder)
    collection.ingest([folder / "corpus.jsonl"])
    for place, row in enumerate(Random(1).sample(read(folder, "qa.jsonl"), count)):
        context = find_context(row["question"], collection, reranker, Retrieval())
        answerable = row.get("answerable", place % 2 == 0)
        gold = "" if answerable or "answerable" in row else row["doc_id"]
        passages = [passage for passage in context.passages if passage.document != gold]
        candidates = [c for c in score_sentences(row["question"], passages, embedder) if not c.heading]
        parts = {name: max((of(c) for c in candidates), default=0.0) for name, of in PARTS.items()}
        parts["the best passage's own score"] = max(
            (hit.score for hit in context.hits if hit.passage.document != gold), default=0.0
        )
        yield Asked(answerable, probability(candidates), parts)


def with_interval(answerable: Sequence[bool], scores: Sequence[float]) -> str:
    """AUROC with its 95% interval."""
    low, high = interval(answerable, scores)
    return f"{roc_auc_score(answerable, scores):.3f} ({low:.3f} to {high:.3f})"


def tables(found: dict[str, Sequence[Asked]]) -> str:
    """The probability with its errors, and each part."""
    whole, parts = [], []
    for name, questions in found.items():
        answerable = np.array([q.answerable for q in questions])
        likely = np.array([q.probability for q in questions], dtype=np.float32)
        both = np.stack([likely, 1 - likely], axis=1)
        error = expected_calibration_error(both, (~answerable).astype(int))
        under = [f"{(likely[side] < limit).mean():.2f}" for limit in LIMITS for side in (answerable, ~answerable)]
        whole.append((name, len(questions), with_interval(answerable, likely), f"{error:.2f}", *under))
        for part in questions[0].parts:
            scores = np.array([q.parts[part] for q in questions])
            parts.append((name, part, with_interval(answerable, scores)))
    heads = " | ".join(f"under {limit:g}: {side}" for limit in LIMITS for side in ("answerable", "unanswerable"))
    heads = f"set | n | AUROC | expected calibration error | {heads}"
    return "\n".join([*table(heads, whole, " --- "), "", *table("set | part | AUROC", parts, " --- ")])


def main() -> None:
    """Print both tables; with --write, store them."""
    options = arguments(__doc__, data=DATA)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GROUNDWORK_HOME"] = folder
        found = {name: list(asked(options.data / place, count)) for name, (place, count) in SETS.items()}
    publish(options, "in-documents", "Is it in the documents", f"{TOLD}\n\n{conditions()}", [tables(found)])


if __name__ == "__main__":
    main()
