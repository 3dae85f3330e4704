"""Leave-one-out over many sources with a real model: `python -m bench.hierarchy --data DIR --out FILE`.

Questions of NQ with a short answer. The sources are the sentences of the page passage that answers and of the nearest
others by BM25, whole passages in random order until there are 64. Exact leave-one-out scores all of them; counted is
how often the sentence with the largest drop is among those that the hierarchy reports, found by masked keys and by
blocks (a page passage each). FILE keeps a line per answer, so that a second run goes on; `--write` writes what it
holds to RESULTS.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest

from bench.real_answers import holds
from bench.results import DATA, arguments, conditions, publish, read_lines, table
from engine.answer.prompt import build_prompt
from engine.core.settings import Occlusion
from engine.core.text import sentences
from engine.core.values import AuditRecord
from engine.methods.hierarchy import hierarchical
from engine.methods.occlusion import occlusion
from engine.models.registry import load_writer
from engine.retrieve.bm25 import Postings

SENTENCES, LEAST = 64, 4  # sources of a question; words of one
ALL = Occlusion(max_sources=SENTENCES)
WAYS = ("masked keys", "blocks")


class Asked(NamedTuple):
    """A question, its answer, and the sentences."""

    id: str
    question: str
    answer: str
    sources: tuple[str, ...]
    documents: tuple[tuple[int, ...], ...]  # the numbers of each page passage's sentences


def asked_of(data: Path, n: int) -> Iterator[Asked]:
    """`n` questions, drawn with a fixed seed."""
    rows, rng = read_lines(data / "nq_gold_passage" / "qa.jsonl"), random.Random(5)
    texts = [row["passage"] for row in rows]
    index = Postings.of(texts)
    known = [place for place, row in enumerate(rows) if holds(row["passage"], row["answers"][0])]
    for place in rng.sample(known, n):
        near = [texts[i] for i in index.best(rows[place]["question"], SENTENCES)]
        cut: list[list[str]] = []
        for text in dict.fromkeys([texts[place], *near]):
            cut.append([text[a:b] for a, b in sentences(text) if len(text[a:b].split()) >= LEAST])
            if sum(map(len, cut)) >= SENTENCES:
                break
        cut[-1] = cut[-1][: SENTENCES - sum(map(len, cut[:-1]))]
        rng.shuffle(cut)
        sources = tuple(sentence for part in cut for sentence in part)
        numbers = iter(range(1, len(sources) + 1))
        documents = tuple(tuple(islice(numbers, len(part))) for part in cut)
        yield Asked(f"NQ {place}", rows[place]["question"], rows[place]["answers"][0], sources, documents)


def compared(model: Any, asked: Asked, *, blocks: bool) -> dict[str, Any]:
    """The exact drops, and which sentences the hierarchy reports with how many rows; by `blocks`, too."""
    record = AuditRecord(question=asked.question, passages=asked.sources, answer=asked.answer)
    prompt, answer = build_prompt(asked.question, record.as_passages()), model.encode_answer(asked.answer)
    exact = occlusion(model, prompt, answer, floors=False, settings=ALL)
    ways = {WAYS[0]: None} | ({WAYS[1]: asked.documents} if blocks else {})
    found = {way: hierarchical(model, prompt, answer, documents=documents) for way, documents in ways.items()}
    return {
        "id": asked.id,
        "drops": np.round(exact.scores[0], 4).tolist(),
        "kept": {way: [n for (n,) in one.sources] for way, one in found.items()},
        "rows": {"exact": exact.forwards, **{way: one.forwards for way, one in found.items()}},
    }


def rows(found: list[dict[str, Any]]) -> Iterator[str]:
    """How often each way reports the sentence with the largest exact drop, and at what cost."""
    for way, (told, least) in product(WAYS, (("all", -np.inf), ("with a drop of 1 nat or more", 1.0))):
        own = [one for one in found if way in one["kept"] and max(one["drops"]) >= least]
        good = sum(int(np.argmax(one["drops"])) + 1 in one["kept"][way] for one in own)
        low, high = binomtest(good, len(own)).proportion_ci(method="wilson")
        cost = np.mean([one["rows"][way] / one["rows"]["exact"] for one in own])
        yield f"{way} | {told} | {good / len(own):.2f} ({low:.2f} to {high:.2f}) | {len(own)} | {cost:.2f}"


def main() -> None:
    asked = arguments(
        __doc__,
        data=DATA,
        out=(Path, "FILE: a line per answer"),
        model=("embedded", "the scorer"),
        dtype=("bfloat16", "its number format"),
        n=(100, "questions"),
        blocks=(12, "answers that are looked at by blocks, too"),
    )
    if not asked.write:
        done = {row["id"] for row in read_lines(asked.out)} if asked.out.exists() else set()
        model = load_writer(asked.model, asked.dtype)
        with asked.out.open("a", encoding="utf-8") as file:
            for number, one in enumerate(asked_of(asked.data, asked.n)):
                if one.id not in done:
                    print(json.dumps(compared(model, one, blocks=number < asked.blocks)), file=file, flush=True)
    found = read_lines(asked.out)
    told = f"{SENTENCES} sentences a question, {len(found)} questions of NQ, gold short answers, {asked.dtype}."
    heads = "looked by | answers | top sentence found (95% interval) | n | rows, of exact leave-one-out"
    lines = table(heads, rows(found), " --- ")
    publish(asked, "hierarchy", "Hierarchical leave-one-out", f"{conditions(scorer=asked.model)}\n\n{told}", lines)


if __name__ == "__main__":
    main()
