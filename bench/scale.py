"""Measure how large a collection can grow: python -m bench.scale [--sizes 50000,200000] [--data DATA] [--write].

Passages of 100 words in wiki_dpr's layout are streamed into a collection, each size in a process of its own. Words are
drawn by Zipf's law from English stop words and 300,000 made-up words. Vectors are drawn around 4,096 centres, since an
embedder would otherwise be measured. Printed per size: CPU seconds of ingest, peak resident memory with and without
searches (mapped files count as far as they were touched), size on disk, recall@10 against exact search, and the time of
a search divided by the time to embed a question. From the sizes follow memory and disk per million passages, and what
the 21 million passages of wiki_dpr would need.

Recall on drawn vectors says little. With --data the index is also measured on real vectors: texts of public sets
against their questions and claims, with the settings for that size and with those of a large collection.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from bm25s.stopwords import STOPWORDS_EN

from bench.results import arguments, conditions, publish, read_lines, table
from engine.core.progress import Watch
from engine.core.text import titled
from engine.corpus import cells
from engine.models.embedder import embed_passages, load_embedder
from engine.models.protocols import Floats
from engine.retrieve.bm25 import Postings, best_rows
from engine.retrieve.search import POOL, POOL_BY_WORDS, fuse

DIMENSIONS = 384
HYBRID = 500  # questions whose exact hybrid is computed
WIKI_DPR = 21.0  # million passages
MEASURED = """
import json, resource, statistics, sys, time
from pathlib import Path
import numpy as np
from engine.corpus.collection import Collection
from engine.corpus.formats import records
from engine.models.embedder import load_embedder
from engine.retrieve import bm25
from engine.retrieve.search import search
from engine.core.settings import Retrieval

class Stored:
    name, dimensions = "stored", 384
    def __init__(self):
        self.rng = np.random.default_rng(1)
        self.centres = self.rng.normal(size=(4096, 384)).astype(np.float32)
    def embed(self, texts, watch=None):
        vectors = self.centres[self.rng.integers(0, 4096, len(texts))]
        vectors = vectors + self.rng.normal(size=vectors.shape).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

def timed(work):
    started = time.process_time()
    result = work()
    return time.process_time() - started, result

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

def exact(path, asked):
    best = np.full((len(asked), 10), -1.0, dtype=np.float32)
    with path.open("rb") as file:
        file.seek(128)
        while len(part := np.fromfile(file, np.float32, 384 * 100_000)):
            best = np.sort(np.concatenate([best, asked @ part.reshape(-1, 384).T], axis=1), axis=1)[:, -10:]
    return best

start = peak()
collection = Collection.create("large", Stored())
seconds, _ = timed(lambda: collection.add(records.stream(Path(sys.argv[1]))))
snapshot = collection.snapshot()
words, _ = timed(lambda: bm25.index_of(collection.folder, snapshot))
ingested = peak()
passages = snapshot.passages
first, _ = timed(lambda: search(collection, "which words stand here", Retrieval(mode="hybrid")))
disk = sum(f.stat().st_size for f in collection.folder.rglob("*") if f.is_file()) / 2**30
embedder, ratios = load_embedder(), {}
for mode in ("dense", "bm25", "hybrid"):
    each = []
    for i in range(15):
        question = " ".join(passages[i * len(passages) // 15].text.split()[:12]) + mode
        one, _ = timed(lambda: embedder.embed([question]))
        two, _ = timed(lambda: search(collection, question, Retrieval(mode=mode)))
        each.append(two / one)
    ratios[mode] = statistics.median(each)
searched = peak()
from engine.corpus import index
asked = Stored().embed([""] * 20)
found = index.open_index(collection.folder, snapshot)
place = next(collection.folder.glob("generation-*")) / "vectors.npy"
best = exact(place, asked)
hits = [np.sort(snapshot.vectors[found.nearest(q, 200)] @ q)[-10:] for q in asked]
recall = float(np.mean([np.mean(h >= b[0] - 1e-6) for h, b in zip(hits, best)]))
print(json.dumps({"passages": len(passages), "ingest_seconds": seconds, "words_seconds": words, "start_gb": start,
                  "ingest_gb": ingested, "search_gb": searched, "disk_gb": disk, "recall": recall,
                  "first_search_seconds": first, "ratios": ratios}))
"""


def passages_file(path: Path, size: int) -> None:
    """`size` passages of 100 words: id, text, title."""
    draw = random.Random(2)
    parts = [f"{a}{b}{c}" for a in "bdfgklmnprstvz" for b in "aeiou" for c in ("n", "ral", "st", "mic", "tor")]
    words = [*STOPWORDS_EN, *("".join(draw.choices(parts, k=1 + n // 20_000 % 3)) + str(n % 7) for n in range(300_000))]
    shares = np.cumsum(1 / (np.arange(len(words)) + 2.7))
    rng = np.random.default_rng(2)
    with path.open("w", encoding="utf-8") as file:
        file.write("id\ttext\ttitle\n")
        for first in range(0, size, 10_000):
            drawn = np.searchsorted(shares, rng.random((min(10_000, size - first), 100)) * shares[-1])
            for number, row in enumerate(drawn, start=first):
                file.write(f"{number}\t{' '.join([words[place] for place in row])}.\tTitle {number // 40}\n")


def measured(size: int) -> dict:
    """Measure one size in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "passages.tsv"
        passages_file(path, size)
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, str(path)],
            env={**os.environ, "GROUNDWORK_HOME": folder},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    found = json.loads(done.stdout)
    print(json.dumps(found), flush=True)
    return found


def per_million(rows: list[dict], field: str) -> float:
    """Growth of a figure in GB per million passages, from the smallest to the largest size."""
    return (rows[-1][field] - rows[0][field]) / (rows[-1]["passages"] - rows[0]["passages"]) * 1e6


def report(rows: list[dict], recalled: list[str]) -> Iterator[str]:
    """The lines of the section of bench/RESULTS.md."""
    heads = (
        "passages | ingest, processor s | BM25, processor s | peak, ingest | peak, with search | on disk |"
        " recall@10 | search / embedding a question: dense | BM25 | hybrid"
    )
    cells = (
        f"{row['passages']:,} | {row['ingest_seconds']:.0f} | {row['words_seconds']:.0f} |"
        f" {row['ingest_gb']:.2f} GB | {row['search_gb']:.2f} GB | {row['disk_gb']:.2f} GB | {row['recall']:.3f} | "
        + " | ".join(f"{row['ratios'][mode]:.2f}" for mode in ("dense", "bm25", "hybrid"))
        for row in rows
    )
    yield from table(heads, cells, " ---: ")
    if len(rows) > 1:
        memory, disk = per_million(rows, "search_gb"), per_million(rows, "disk_gb")
        yield (
            f"\nEach further million passages takes {memory:.2f} GB of memory and {disk:.2f} GB of disk;"
            f" {DIMENSIONS * 4 * 1e6 / 2**30:.2f} GB of the disk are vectors. At this rate {WIKI_DPR:.0f} million"
            f" (wiki_dpr) take {rows[-1]['search_gb'] + memory * (WIKI_DPR - rows[-1]['passages'] / 1e6):.0f} GB of"
            f" memory and {disk * WIKI_DPR:.0f} GB of disk (arithmetic, not measured; 768 dimensions take more)."
        )
    if recalled:
        yield from ("", *recalled)


def real_texts(data: Path) -> tuple[list[str], list[str]]:
    """The texts of the public sets, and their questions and claims, each once."""
    texts, asked = [], []
    for name in ("xquad_en", "nq_gold_passage", "clapnq"):
        texts += [titled(row.get("title", ""), row["text"]) for row in read_lines(data / name / "corpus.jsonl")]
        asked += [row["text"] for row in read_lines(data / name / "queries.jsonl")]
    for row in read_lines(data / "hotpotqa_100" / "qa.jsonl"):
        texts += [titled(p["title"], " ".join(p["sentences"])) for p in row["passages"]]
        asked.append(row["question"])
    for name in ("vitaminc/train", "vitaminc/dev", "climate_fever/verify", "healthver/verify", "covidfact/verify"):
        rows = read_lines(data / f"{name}.jsonl")
        texts += [row["evidence"] for row in rows]
        asked += [row["claim"] for row in rows]
    for row in read_lines(data / "fool_me_twice" / "verify.jsonl"):
        texts += [*row["evidence"], *row.get("retrieved", [])]
        asked.append(row["claim"])
    for row in read_lines(data / "qags" / "localise.jsonl"):
        words = row["source"].split()
        texts += [" ".join(words[first : first + 100]) for first in range(0, len(words), 100)]
    asked = list(dict.fromkeys(asked))
    random.Random(3).shuffle(asked)
    return [text for text in dict.fromkeys(texts) if text.strip()], asked[:1_500]


def real_hybrid(texts: list[str], vectors: Floats, asked: list[str], questions: Floats) -> str:
    """How many of the ten best by the hybrid are among the candidates of a large collection's search for ten."""
    words, found = Postings.of(texts), []
    for question, vector in zip(asked, questions, strict=True):
        dense, lexical = vectors @ vector, words.scores(question)
        rows = np.union1d(best_rows(dense, POOL * 10), words.best(question, POOL_BY_WORDS * 10))
        exact = best_rows(fuse(dense, lexical), 10)
        found.append(len({*exact} & {*rows[best_rows(fuse(dense[rows], lexical[rows]), 10)]}) / 10)
    return f"Of the exact ten by the hybrid a search finds {np.mean(found):.4f} ({len(found)} of the questions)."


def real_recall(texts: Floats, asked: Floats) -> list[str]:
    """Recall@10 of the index on real vectors, with its own settings and with those of a large collection."""
    exact = np.sort(asked @ texts.T, axis=1)[:, -10]
    with tempfile.TemporaryDirectory() as folder:
        cells.build(Path(folder), texts, Watch())
        found = cells.Cells(Path(folder))
        as_it_is = _recall(found, texts, asked, exact)
        floors = cells._LEAST, cells._KEPT_LEAST
        cells._LEAST = cells._KEPT_LEAST = 0
        shares = _recall(found, texts, asked, exact)
        cells._LEAST, cells._KEPT_LEAST = floors
    return [
        f"Real vectors: {len(texts):,} texts of the public sets, {len(asked):,} questions and claims, all-MiniLM-L6-v2."
        f" recall@10 of exact search {as_it_is:.3f}; with the settings of a large collection"
        f" ({cells.SHARE:.0%} of the signs, {cells.KEPT:.0%} of the bytes) {shares:.3f}."
    ]


def _recall(found: cells.Cells, texts: Floats, asked: Floats, tenth: Floats) -> float:
    """The share of the ten nearest that are among the candidates of a search for ten."""
    hits = [
        int((texts[found.nearest(q, 200)] @ q >= least - 1e-6).sum()) for q, least in zip(asked, tenth, strict=True)
    ]
    return sum(min(10, hit) for hit in hits) / (10 * len(hits))


def main() -> None:
    """Measure, print, and save with --write."""
    given = arguments(
        __doc__,
        sizes=("50000,200000", "of the collections, in passages"),
        data={"type": Path, "help": "the folder of public sets; without it no real vectors"},
    )
    recalled = []
    if given.data:
        embedder, (texts, asked) = load_embedder(), real_texts(given.data)
        vectors, questions = embed_passages(embedder, texts), embedder.embed(asked)
        recalled = real_recall(vectors, questions)
        recalled.append(real_hybrid(texts, vectors, asked[:HYBRID], questions[:HYBRID]))
        print(*recalled, sep="\n", flush=True)
    lines = report([measured(int(size)) for size in given.sizes.split(",")], recalled)
    publish(given, "scale", "Scale: stored vectors", conditions(vectors=f"{DIMENSIONS} dimensions, drawn"), lines)


if __name__ == "__main__":
    main()
