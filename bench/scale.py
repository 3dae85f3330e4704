"""How large a collection may grow: python -m bench.scale [--sizes 50000,200000] [--write].

Passages of 100 made-up words in wiki_dpr's layout are streamed into a collection whose vectors are drawn instead of
computed (an embedder would be measured otherwise), each size in a process of its own. Printed a size: processor
seconds of ingest (wall time would count what else the machine does), peak resident memory with and without a search,
size on disk, and the time of a search over that of embedding a question with the built-in embedder. From the sizes
follows the memory per million passages, and with it what the 21 million passages of wiki_dpr would need here and on a
Chroma server.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.results import conditions, write_section

DIMENSIONS = 384
WIKI_DPR = 21.0  # million passages
MEASURED = """
import json, resource, statistics, sys, time
from pathlib import Path
import numpy as np
from engine.corpus.collection import Collection
from engine.corpus.formats import wiki_dpr
from engine.models.embedder import load_embedder
from engine.retrieve.search import search
from engine.core.settings import Retrieval

class Stored:
    name, dimensions = "stored", 384
    def embed(self, texts, watch=None):
        rng = np.random.default_rng(len(texts))
        vectors = rng.normal(size=(len(texts), 384)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

def timed(work):
    started = time.process_time()
    result = work()
    return time.process_time() - started, result

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

start = peak()
collection = Collection.create("large", Stored())
seconds, _ = timed(lambda: collection.add(wiki_dpr.stream(Path(sys.argv[1]))))
ingested = peak()
passages = collection.snapshot().passages
first, _ = timed(lambda: search(collection, "which words stand here", Retrieval(mode="hybrid")))
searched = peak()
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
print(json.dumps({"passages": len(passages), "ingest_seconds": seconds, "start_gb": start, "ingest_gb": ingested,
                  "search_gb": searched, "disk_gb": disk, "first_search_seconds": first, "ratios": ratios}))
"""


def passages_file(path: Path, size: int) -> None:
    """`size` passages of 100 made-up words: id, text, title."""
    rng = random.Random(2)
    words = [f"{a}{b}{c}" for a in "bdfgklmnprstvz" for b in "aeiou" for c in ("n", "ral", "st", "mic", "tor")]
    with path.open("w", encoding="utf-8") as file:
        file.write("id\ttext\ttitle\n")
        for number in range(size):
            file.write(f"{number}\t{' '.join(rng.choices(words, k=100))}.\tTitle {number // 40}\n")


def measured(size: int) -> dict:
    """One size in a process of its own."""
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
    """Growth of a figure in GB from the smallest to the largest size, a million passages."""
    return (rows[-1][field] - rows[0][field]) / (rows[-1]["passages"] - rows[0]["passages"]) * 1e6


def report(rows: list[dict]) -> str:
    """The section of bench/RESULTS.md."""
    lines = [
        "## Scale: stored vectors",
        "",
        conditions(vectors=f"{DIMENSIONS} dimensions, drawn"),
        "",
        "| passages | ingest, processor s | peak, ingest | peak, with search | on disk | first search, processor s |"
        " search / embedding a question: dense | BM25 | hybrid |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        ratios = " | ".join(f"{row['ratios'][mode]:.2f}" for mode in ("dense", "bm25", "hybrid"))
        lines.append(
            f"| {row['passages']:,} | {row['ingest_seconds']:.0f} | {row['ingest_gb']:.2f} GB |"
            f" {row['search_gb']:.2f} GB | {row['disk_gb']:.2f} GB | {row['first_search_seconds']:.1f} | {ratios} |"
        )
    if len(rows) > 1:
        memory, disk = per_million(rows, "search_gb"), per_million(rows, "disk_gb")
        vectors = DIMENSIONS * 4 * 1e6 / 2**30
        lines += [
            "",
            f"A million passages more take {memory:.1f} GB of memory and {disk:.1f} GB of disk; {vectors:.1f} GB of"
            f" it are the vectors. {WIKI_DPR:.0f} million (wiki_dpr) would need {memory * WIKI_DPR:.0f} GB in one"
            f" process: too much for most machines. On a Chroma server the vectors alone are"
            f" {vectors * WIKI_DPR:.0f} GB there (arithmetic, not measured).",
        ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and with --write keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="50000,200000")
    parser.add_argument("--write", action="store_true", help="write the section of bench/RESULTS.md")
    given = parser.parse_args()
    text = report([measured(int(size)) for size in given.sizes.split(",")])
    print(text)
    if given.write:
        write_section("scale", text)


if __name__ == "__main__":
    main()
