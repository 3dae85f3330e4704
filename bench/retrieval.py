"""Measure reader and ingest on public data: python -m bench.retrieval --data DIR [--sets ...] [--write].

DIR holds one folder per set with corpus.jsonl, queries.jsonl, qrels.tsv and qa.jsonl (BEIR's layout). Everything runs
as in `ask`, with the default settings, in its own data folder. Prints one JSON line per figure; --write saves them in
bench/RESULTS.md.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from bench.results import DATA, arguments, conditions, publish, read_lines
from engine.answer.context import find_context
from engine.answer.quoting_reader import Reading, read
from engine.core.settings import Retrieval
from engine.core.values import Passage
from engine.corpus.collection import Collection, embedding_text
from engine.models.embedder import load_embedder
from engine.models.reranker import load_reranker

SHOWN: list[dict[str, object]] = []  # everything that was printed, for --write


def show(**figures: object) -> None:
    SHOWN.append(figures)
    print(json.dumps(figures), flush=True)


def ingest(folder: Path) -> Collection:
    """Ingest a set's corpus and print the rate against the embedder's own on the same texts."""
    collection = Collection.create(folder.name, load_embedder())
    report = collection.ingest([folder / "corpus.jsonl"])
    show(set=folder.name, documents=report.documents, passages=report.passages, ingest_seconds=round(report.seconds, 1))
    return collection


def ingest_ratio(folder: Path, repeats: int = 2) -> None:
    """Ingest rate divided by the embedder's bulk rate on the same texts, by CPU and by wall time, in alternation.

    Trust the CPU time on a shared machine.
    """
    ratios = []
    for turn in range(repeats):
        collection = Collection.create(f"rate-{turn}", load_embedder())
        start = np.array([time.process_time(), time.perf_counter()])
        collection.ingest([folder / "corpus.jsonl"])
        middle = np.array([time.process_time(), time.perf_counter()])
        texts = [embedding_text(p) for p in collection.snapshot().passages]
        load_embedder().embed(texts)
        bulk = np.array([time.process_time(), time.perf_counter()]) - middle
        ratios.append(bulk / (middle - start))
    cpu, wall = np.median(ratios, axis=0)
    show(
        set=folder.name,
        texts=len(texts),
        bulk_per_second=round(len(texts) / bulk[1], 1),
        ingest_over_bulk_processor=round(float(cpu), 3),
        ingest_over_bulk_wall=round(float(wall), 3),
        goal=">= 0.8",
    )


def readings(collection: Collection, questions: Sequence[str]) -> list[tuple[Reading, tuple[Passage, ...]]]:
    """The reader's reading of each question as `ask` makes it."""
    embedder = collection.embedder
    reranker = load_reranker()
    found = []
    for question in questions:
        passages = find_context(question, collection, reranker, Retrieval()).passages
        found.append((read(question, passages, embedder), passages))
    return found


def quoted(reading: Reading, passages: Sequence[Passage]) -> list[str]:
    """The quoted sentences, without markers, in the answer's order."""
    return [passages[n - 1].text[s:e] for _, n, s, e in reading.answer.quotes]


def reader_figures(folder: Path, collection: Collection, limit: int) -> None:
    """Does the answer's first sentence, or one of its first two, hold a gold answer (substring, any case)."""
    rows = [r for r in read_lines(folder / "qa.jsonl") if any(r["answers"])][:limit]
    started = time.perf_counter()
    found = readings(collection, [r["question"] for r in rows])
    seconds = time.perf_counter() - started
    first, two, every = [], [], []
    for row, (reading, passages) in zip(rows, found, strict=True):
        texts = [t.lower() for t in quoted(reading, passages)]
        holds = [any(a.lower() in t for a in row["answers"] if a) for t in texts]
        first.append(any(holds[:1]))
        two.append(any(holds[:2]))
        every.append(any(holds))
    show(
        set=folder.name,
        questions=len(rows),
        reader_first=round(float(np.mean(first)), 4),
        reader_first_two=round(float(np.mean(two)), 4),
        reader_all=round(float(np.mean(every)), 4),
        sentences=round(float(np.mean([len(r.answer.quotes) for r, _ in found])), 2),
        refused=round(float(np.mean([r.answer.refused for r, _ in found])), 4),
        seconds_a_question=round(seconds / len(rows), 3),
    )


def refusal_figures(folder: Path, collection: Collection) -> None:
    """False refusals on answerable questions; AUROC of closeness, answerable against unanswerable."""
    rows = read_lines(folder / "qa.jsonl")
    found = [reading for reading, _ in readings(collection, [r["question"] for r in rows])]
    can = np.array([r["answerable"] for r in rows])
    close = np.array([r.closeness for r in found])
    refused = np.array([r.answer.refused for r in found])
    show(
        set=folder.name,
        answerable=int(can.sum()),
        unanswerable=int((~can).sum()),
        false_refusals=round(float(refused[can].mean()), 4),
        refused_unanswerable=round(float(refused[~can].mean()), 4),
        auroc=round(float(roc_auc_score(can, close)), 4),
    )


def main() -> None:
    options = arguments(
        __doc__,
        data=DATA,
        sets=("xquad_en,nq_gold_passage,clapnq", "folders of the public sets, separated by commas"),
        limit=(1_000_000, "questions per set that the reader answers"),
        skip=("", "any of: reader,refusal,rate"),
        home=("", "keep the collections here instead of in a temporary folder"),
    )
    skip = set(options.skip.split(","))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GROUNDWORK_HOME"] = options.home or folder
        for name in options.sets.split(","):
            place = options.data / name
            collection = ingest(place)
            if "reader" not in skip and name != "clapnq":
                reader_figures(place, collection, options.limit)
            if "refusal" not in skip and name == "clapnq":
                refusal_figures(place, collection)
        if "rate" not in skip:
            ingest_ratio(options.data / "nq_gold_passage")
    said = ("- " + ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in row.items()) for row in SHOWN)
    publish(options, "retrieval", "Reader and ingest", conditions(), said)


if __name__ == "__main__":
    main()
