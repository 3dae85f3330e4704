"""Measure how reliable a language model is as a judge: python -m bench.judges --data DIR --out FILE [--model NAME].

Preferences are planted in CLAP NQ: a human answer against the same answer with an unsupported sentence added, taken
from another question's answer. A judge of pairs should prefer the first. A judge with criteria should give it the
higher total. The answering passage should get a higher relevance level than another question's. Position bias: how
often the two orders of a pair disagree, and how often X, shown first, wins. Each question is one line of FILE, so a
restarted run resumes. `--write` puts the rows of all FILEs into bench/RESULTS.md.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scipy.stats import binomtest

from bench.results import DATA, arguments, conditions, publish, read_lines, table
from engine.core.text import sentences
from engine.methods.judge import LEVELS, judge_criteria, judge_pair, judge_relevance
from engine.models.alignment import clean
from engine.models.protocols import Writer
from engine.models.registry import load_writer

LONGEST = 120  # words of a passage: a small model reads it in seconds
TOLD = (
    "CLAP NQ's human answers against the same with one unsupported sentence added, from another question's answer. "
    "A pair counts as right if the answer without it wins in both orders; *mean of both orders* averages the shares. "
    "Six criteria: the higher total, with the passage as reference. Relevance: a higher level for the answering "
    "passage. Answers are compared by likelihood, so none is unparsed."
)


class Planted(NamedTuple):
    """A question, its passage, its answer, the answer with an unsupported sentence, another question's passage."""

    id: str
    question: str
    passage: str
    answer: str
    spoiled: str
    other: str


def planted(folder: Path, n: int) -> Iterator[Planted]:
    """`n` answerable questions, drawn with a fixed seed."""
    rng = random.Random(1337)
    rows = [r for r in read_lines(folder / "clapnq" / "qa.jsonl") if r["answerable"]]
    fit = [r for r in rows if len(r["passage"].split()) <= LONGEST]
    for row in rng.sample(fit, n):
        other = rng.choice([r for r in fit if r["title"] != row["title"]])
        answer, added = clean(row["answers"][0]), clean(other["answers"][0])
        (start, end), *_ = sentences(added)
        spoiled = f"{answer} {added[start:end]}"
        yield Planted(row["id"], row["question"], clean(row["passage"]), answer, spoiled, clean(other["passage"]))


def judged(judge: Writer, case: Planted) -> dict[str, Any]:
    """The judge's replies on one question."""
    start = time.perf_counter()
    pair = judge_pair(judge, case.question, [case.passage], case.answer, case.spoiled)
    totals = [judge_criteria(judge, case.question, case.passage, text).total for text in (case.answer, case.spoiled)]
    relevance = [judge_relevance(judge, case.question, case.question, text) for text in (case.passage, case.other)]
    return {
        "id": case.id,
        "judge": judge.name,
        "winner": pair.winner,
        "orders": pair.orders,
        "shares": pair.probabilities,
        "totals": totals,
        "levels": [found.option for found in relevance],
        "level shares": [found.probabilities for found in relevance],
        "seconds": time.perf_counter() - start,
    }


def figures(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The rows of one judge."""
    name = rows[0]["judge"]
    n, decided = len(rows), [r for r in rows if r["winner"] in ("x", "y", "tie")]
    first = [vote == shown for r in rows for vote, shown in zip(r["orders"], ("x", "y"), strict=True)]
    found = [
        ("pair: parsed", sum(r["winner"] != "unparsed" for r in rows), n),
        ("pair: the supported answer wins in both orders", sum(r["winner"] == "x" for r in rows), n),
        ("pair: the same, where the orders agree", sum(r["winner"] == "x" for r in decided), len(decided)),
        ("pair: the supported answer wins by the mean of both orders", sum(map(_by_mean, rows)), n),
        ("pair: the two orders disagree", sum(r["winner"] == "disagreed" for r in rows), n),
        ("pair: X, the one shown first, wins", sum(first), len(first)),
        ("criteria: parsed", sum(None not in r["totals"] for r in rows), n),
        ("criteria: higher total for the supported answer", sum(_higher(r["totals"]) for r in rows), n),
        ("criteria: equal totals", sum(r["totals"][0] == r["totals"][1] for r in rows), n),
        ("relevance: parsed", sum(None not in r["levels"] for r in rows), n),
        ("relevance: higher level for the passage that answers", sum(map(_ranked, rows)), n),
        ("relevance: higher mean level for the passage that answers", sum(map(_by_mean_level, rows)), n),
    ]
    return [_row(name, *figure) for figure in found if figure[-1]]


def _by_mean(row: dict[str, Any]) -> bool:
    """Whether x has the larger share in the mean of both orders (which are in the names of the first)."""
    means = {vote: sum(shares.get(vote, 0.0) for shares in row["shares"]) for vote in ("x", "y", "tie")}
    return means["x"] > means["y"]


def _higher(pair: Sequence[int | None]) -> bool:
    first, second = pair
    return first is not None and second is not None and first > second


def _ranked(row: dict[str, Any]) -> bool:
    return _higher([LEVELS.index(level) if level else None for level in row["levels"]])


def _by_mean_level(row: dict[str, Any]) -> bool:
    """Whether the mean of the levels, weighted by their shares, is higher for the passage that answers."""
    first, second = (sum(LEVELS.index(level) * share for level, share in s.items()) for s in row["level shares"])
    return first > second


def _row(name: str, what: str, good: int, n: int) -> str:
    low, high = binomtest(good, n).proportion_ci(method="wilson")
    return f"{name} | {what} | {good / n:.2f} ({low:.2f} to {high:.2f}) | {n}"


def main() -> None:
    asked = arguments(
        __doc__,
        data=DATA,
        out={"type": Path, "nargs": "+", "required": True, "help": "the first is written; all are reported"},
        model=("qwen2.5-coder-1.5b", "the judge"),
        n=(30, "questions"),
    )
    out: Path = asked.out[0]
    done = {row["id"] for row in read_lines(out)} if out.exists() else set()
    left = [case for case in planted(asked.data, asked.n) if case.id not in done]
    if left:
        judge = load_writer(asked.model)
        with out.open("a", encoding="utf-8") as file:
            for case in left:
                print(json.dumps(judged(judge, case)), file=file, flush=True)
    found = (row for path in asked.out for row in figures(read_lines(path)))
    lines = table("judge | measured | share (95% interval) | n", found, " --- ")
    publish(asked, "judges", "Judges", f"{conditions()}\n\n{TOLD}", lines)


if __name__ == "__main__":
    main()
