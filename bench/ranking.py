"""Which ranking finds the passage that answers: python -m bench.ranking --data DIR [--questions 200] [--write].

XQuAD, NQ and CLAP NQ (one gold passage a question) and HotpotQA (two, among the paragraphs of all its questions), as
corpora of their own. Two embedders, three search modes, the first 30 passages as they are and re-ranked by
best-sentence similarity. Questions are drawn with a fixed seed. Processor seconds of ten questions a set count the
question's vector, the search and the re-ranking, with no vector remembered.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np

from bench.results import DATA, arguments, conditions, publish, table
from engine.core.settings import Retrieval
from engine.corpus.collection import Collection
from engine.models.embedder import load_embedder
from engine.models.reranker import BestSentence
from engine.retrieve.search import rerank_hits, search
from training.verifier_data import read

SETS = {"xquad_en": "XQuAD", "nq_gold_passage": "NQ", "clapnq": "CLAP NQ", "hotpotqa_100": "HotpotQA"}
EMBEDDERS = ("all-MiniLM-L6-v2", "all-mpnet-base-v2")
MODES = ("bm25", "dense", "hybrid")
POOL, FIRST, TIMED = 30, 5, 10
TOLD = (
    "Share of questions whose first passage is gold (standard error), and mean share of the gold passages among the "
    f"first {FIRST}. Re-ranked: the first {POOL} by best-sentence similarity with the same embedder. Seconds: of one "
    f"processor for a question without any vector remembered, mean over {TIMED} questions of each set."
)


@dataclass(frozen=True)
class Task:
    """A set's questions and the documents that answer each; documents are in `corpus` (BEIR's layout)."""

    name: str
    corpus: Path
    gold: dict[str, frozenset[str]]


@dataclass
class Figures:
    """Is the first passage of a question gold; the share of gold among its first five; seconds of the first few."""

    first: list[bool] = field(default_factory=list)
    held: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, found: Sequence[str], gold: frozenset[str]) -> None:
        """Count one question, whose passages are of the documents `found`."""
        self.first.append(found[0] in gold if found else False)
        self.held.append(len(gold & set(found[:FIRST])) / len(gold))

    def cell(self) -> str:
        """The figures of a set."""
        share = float(np.mean(self.first))
        error = (share * (1 - share) / len(self.first)) ** 0.5
        return f"{share:.2f} ({error:.2f}), {np.mean(self.held):.2f}"


def task(folder: Path, name: str, work: Path) -> Task:
    """A set of `folder`; the paragraphs of HotpotQA become a corpus in `work`."""
    if name == "hotpotqa_100":
        return hotpotqa(folder, work)
    texts = {row["_id"]: row["text"] for row in read(folder, f"{name}/queries.jsonl")}
    gold = defaultdict(set)
    for line in (folder / name / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, _ = line.split("\t")
        gold[texts[query]].add(document)
    return Task(name, folder / name / "corpus.jsonl", {query: frozenset(found) for query, found in gold.items()})


def hotpotqa(folder: Path, work: Path) -> Task:
    """All paragraphs as one corpus, by title; gold are those with a supporting fact."""
    rows = read(folder, "hotpotqa_100/qa.jsonl")
    texts = {p["title"]: "".join(p["sentences"]) for row in rows for p in row["passages"]}
    corpus = work / "hotpotqa.jsonl"
    lines = (json.dumps({"_id": title, "title": title, "text": text}) for title, text in texts.items())
    corpus.write_text("\n".join(lines), encoding="utf-8")
    gold = {row["question"]: frozenset(title for title, _ in row["supporting_facts"]) for row in rows}
    return Task("hotpotqa_100", corpus, gold)


def measured(asked: Task, embedder: str, questions: int) -> Iterator[tuple[str, Figures]]:
    """The figures of each ranking: mode, re-ranked or not."""
    collection = Collection.create(f"{asked.name}-{embedder}", load_embedder(embedder))
    collection.ingest([asked.corpus])
    reranker = BestSentence(collection.embedder)
    chosen = Random(1337).sample(sorted(asked.gold), min(questions, len(asked.gold)))
    for mode in MODES:
        plain, reranked = Figures(), Figures()
        for place, question in enumerate(chosen):
            if place < TIMED:
                forget(collection)
            start = time.process_time()
            hits = search(collection, question, Retrieval(k=POOL, mode=mode))
            middle = time.process_time()
            better = rerank_hits(question, hits, reranker)
            end = time.process_time()
            plain.add([hit.passage.document for hit in hits], asked.gold[question])
            reranked.add([hit.passage.document for hit in better], asked.gold[question])
            if place < TIMED:
                plain.seconds.append(middle - start)
                reranked.seconds.append(end - start)
        yield mode, plain
        yield f"{mode}, re-ranked", reranked


def forget(collection: Collection) -> None:
    """Let the embedder compute every vector anew, as for a question that nobody asked before."""
    getattr(collection.embedder, "_remembered", {}).clear()


def main() -> None:
    options = arguments(
        __doc__, data=DATA, questions=(200, "of each set, at most"), embedders={"nargs": "+", "default": EMBEDDERS}
    )
    rows: dict[tuple[str, str], dict[str, Figures]] = defaultdict(dict)
    with tempfile.TemporaryDirectory() as work:
        os.environ["GROUNDWORK_HOME"] = work
        for embedder in options.embedders:
            for name in SETS:
                for ranking, found in measured(task(options.data, name, Path(work)), embedder, options.questions):
                    rows[embedder, ranking][name] = found
                    print(embedder, name, ranking, found.cell(), f"{np.mean(found.seconds):.3f} s", flush=True)
    publish(options, "ranking", "Rankings of passages", f"{TOLD}\n\n{conditions()}", tabulated(rows))


def tabulated(rows: dict[tuple[str, str], dict[str, Figures]]) -> Iterator[str]:
    """One line for each embedder and ranking."""
    counts = {name: len(next(iter(rows.values()))[name].first) for name in SETS}
    titles = [f"{title}, n = {counts[name]}: first, in {FIRST}" for name, title in SETS.items()]
    cells = []
    for (embedder, ranking), found in rows.items():
        seconds = np.mean([np.mean(one.seconds) for one in found.values()])
        cells.append([embedder, ranking, *(found[name].cell() for name in SETS), f"{seconds:.2f}"])
    return table(f"embedder | ranking | {' | '.join(titles)} | seconds", cells, " --- ")


if __name__ == "__main__":
    main()
