"""Count facts of laboratory procedures that were judged by hand: grammatical, and true to their sentence.

Part of `python -m bench.facts`. The texts are bench chemistry's long reference answers and the steps of its ten
procedures, most of them instructions. `judged_facts.jsonl` has the judgements. A fact is grammatical if it is a full
statement or instruction; articles may be left out where the text leaves them out. It is true if its sentence says it;
it may say less, but not something else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from scipy.stats import binomtest

from bench.drafts import Row
from bench.results import read_lines
from engine.core.text import sentences
from engine.corpus.worlds import load_world
from engine.methods.are.decompose import decompose

JUDGED = Path(__file__).with_name("judged_facts.jsonl")
EACH = 50  # facts drawn from each kind of text
STEP = re.compile(r"^\d+\. (.+)$", re.MULTILINE)


def texts() -> dict[str, list[str]]:
    """The long answers, and the steps of the procedures (the other documents have at most 190 words)."""
    world = load_world("bench-chemistry")
    procedures = [document.text for document in world.documents.values() if len(document.text.split()) > 500]
    return {
        "long answers": [question.answer for question in world.questions if question.kind == "long"],
        "steps": [step for procedure in procedures for step in STEP.findall(procedure)],
    }


def drawn() -> list[Row]:
    """The facts to judge: `text`, `sentence`, `fact`, drawn by a hash, so that an unchanged fact stays drawn."""
    return [
        {"text": kind, "sentence": sentence, "fact": fact}
        for kind, some in texts().items()
        for sentence, fact in sorted({pair for text in some for pair in _facts(text)}, key=_lot)[:EACH]
    ]


def _facts(text: str) -> Iterator[tuple[str, str]]:
    spans = sentences(text)
    for clause in decompose(text).clauses:
        sentence = next(text[start:end].strip() for start, end in spans if start <= clause.start < end)
        yield from ((sentence, fact.text) for fact in clause.facts)


def _lot(pair: tuple[str, str]) -> str:
    return hashlib.sha256("\n".join(pair).encode()).hexdigest()


def judged() -> list[Row]:
    """The facts drawn today that have a judgement: `grammatical` and `true`, each a bool."""
    known = {(row["sentence"], row["fact"]): row for row in read_lines(JUDGED)}
    return [known[key] for row in drawn() if (key := (row["sentence"], row["fact"])) in known]


def shares(rows: Sequence[Row]) -> Iterator[str]:
    """The lines of a table: shares with Wilson's 95% interval, by kind of text and together."""
    yield "| facts of | facts | grammatical | true to the sentence | both |\n|---|---|---|---|---|"
    for kind in (*dict.fromkeys(row["text"] for row in rows), "together"):
        some = [row for row in rows if kind in (row["text"], "together")]
        tests = ([row["grammatical"] for row in some], [row["true"] for row in some])
        both = [all(pair) for pair in zip(*tests, strict=True)]
        yield f"| {kind} | {len(some)} | " + " | ".join(map(_share, (*tests, both))) + " |"


def _share(good: Sequence[bool]) -> str:
    low, high = binomtest(sum(good), len(good)).proportion_ci(method="wilson")
    return f"{sum(good) / len(good):.2f} ({low:.2f} to {high:.2f})"
