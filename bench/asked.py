"""Ask questions in one's own words: python -m bench.asked [--write].

`asked_questions.jsonl` has 16 invented documents of 16 kinds (an interview, minutes, a lease, a manual, ...) and 160
questions on them. Of 110 the document has the answer: 40 in much of its words, 50 in none of the words of the sentence
that answers, 10 that ask why, 10 that take a yes or a no. 40 near misses ask for a particular that no document states,
of a thing that one describes; 10 are on other subjects. They were written by somebody who did not know the reader;
nobody else checked them. The quoting reader answers each from all documents, with the default settings.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sklearn.metrics import roc_auc_score

from bench.results import arguments, conditions, publish, read_lines, table
from bench.support import interval
from engine.answer.context import find_context
from engine.answer.in_documents import EVEN, probability
from engine.answer.quoting_reader import read, sentence_text
from engine.core.settings import Retrieval
from engine.corpus.collection import Collection
from engine.models.embedder import load_embedder
from engine.models.reranker import load_reranker

SET = Path(__file__).with_name("asked_questions.jsonl")
KINDS = {
    "plain": "in much of its words",
    "paraphrase": "in other words",
    "reason": "why",
    "yesno": "yes or no",
    "near_miss": "near miss",
    "off_topic": "on another subject",
}
UNANSWERED = ("near_miss", "off_topic")
WARNED = Retrieval().doubt_under


@dataclass(frozen=True)
class Reply:
    """The reading of one question: is the answer quoted, is it in the best sentence, how many sentences are quoted."""

    kind: str
    found: bool
    best: bool
    quoted: int
    probability: float


def replies() -> Iterator[Reply]:
    """The reader's reply to every question."""
    rows = read_lines(SET)
    embedder, reranker = load_embedder(), load_reranker()
    with tempfile.TemporaryDirectory() as home:
        os.environ["GROUNDWORK_HOME"] = home
        for row in rows:
            if row["name"]:
                Path(home, row["name"]).write_text(row["document"], encoding="utf-8")
        collection = Collection.create("asked", embedder)
        collection.ingest([Path(home, row["name"]) for row in rows if row["name"]])
        for asked in (question for row in rows for question in row["questions"]):
            passages = find_context(asked["question"], collection, reranker, Retrieval()).passages
            reading = read(asked["question"], passages, embedder)
            usable = [c for c in reading.candidates if not c.heading]
            best = sentence_text(max(usable, key=lambda c: c.score), passages)
            said = [passages[n - 1].text[start:end] for _, n, start, end in reading.answer.quotes]
            yield Reply(
                kind=asked["kind"],
                found=any(_same(text, gold) for text in said for gold in asked["gold"]),
                best=any(_same(best, gold) for gold in asked["gold"]),
                quoted=len(said),
                probability=probability(reading.candidates),
            )


def _same(quoted: str, gold: str) -> bool:
    """Is a quoted sentence or line the gold one, or a part of it of some length, or the other way round?"""
    quoted, gold = (" ".join(text.split()).lower() for text in (quoted, gold))
    return gold in quoted or (len(quoted) > 15 and quoted in gold)


def tables(found: Sequence[Reply]) -> str:
    """By kind of question what was quoted and warned of, and how well the probability tells answered questions."""
    rows = []
    groups = {told: [r for r in found if r.kind == kind] for kind, told in KINDS.items()}
    groups = {"all with an answer": [r for r in found if r.kind not in UNANSWERED]} | groups
    for told, own in groups.items():
        answered = own[0].kind not in UNANSWERED
        right = [f"{_mean([getattr(r, name) for r in own]):.2f}" if answered else "-" for name in ("found", "best")]
        counts = [f"{_mean([r.quoted for r in own]):.1f}", f"{_mean([not r.quoted for r in own]):.2f}"]
        doubts = [f"{_mean([r.probability < limit for r in own]):.2f}" for limit in (WARNED, EVEN)]
        rows.append([told, len(own), *right, *counts, *doubts])
    heads = "question | n | answer quoted | best sentence is it | sentences quoted | nothing quoted"
    lines = table(f"{heads} | probability under {WARNED:g} | under {EVEN:g}", rows, " --- ")
    return "\n".join([*lines, "", *(f"- {_told_apart(found, kind)}" for kind in UNANSWERED)])


def _told_apart(found: Sequence[Reply], kind: str) -> str:
    """The AUROC of the probability, questions with an answer against those of `kind`."""
    both = [r for r in found if r.kind == kind or r.kind not in UNANSWERED]
    answered, scores = [r.kind != kind for r in both], [r.probability for r in both]
    low, high = interval(answered, scores)
    return (
        f"questions with an answer against {KINDS[kind]}: AUROC of the probability "
        f"{roc_auc_score(answered, scores):.2f} ({low:.2f} to {high:.2f})"
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def main() -> None:
    """Print the table; with --write, store it."""
    options = arguments(__doc__)
    told = (__doc__ or "").split("\n\n", 1)[1].strip().replace("\n", " ")
    found = tables(list(replies()))
    publish(options, "asked", "Questions in one's own words", f"{told}\n\n{conditions()}", [found])


if __name__ == "__main__":
    main()
