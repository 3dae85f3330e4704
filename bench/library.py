"""Time how fast a large library is listed and searched: python -m bench.library [--cases 10000] [--write].

Cases as large as those of Ask (five passages of 100 words, an answer, a reading) are written into a new library. The
bench times listing, searching, sorting, a filter by day, and opening and exporting one case. The unit is CPU seconds,
the median of several calls, so other work on the machine does not count.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from bench.results import arguments, conditions, publish
from engine.cases.case_file import write_case_file
from engine.cases.query import Query
from engine.cases.store import CaseStore, write
from engine.core.values import Analysis, Answer, Case, Passage, Stamp, inputs_hash

WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in "lmnrst"]
LIMIT = 0.3  # seconds of a listing of 10,000 cases
CALLS = 5


def made_case(number: int, rng: random.Random) -> Case:
    """A case of made-up words."""
    texts = [" ".join(rng.choices(WORDS, k=100)) for _ in range(5)]
    passages = tuple(
        Passage(id=f"d{i}", document=f"d{i}", title=f"D{i}", ordinal=0, start=0, end=len(text), text=text)
        for i, text in enumerate(texts)
    )
    question = " ".join(rng.choices(WORDS, k=9)) + "?"
    candidates = [{"number": i % 5 + 1, "start": 0, "end": 60, "score": rng.random()} for i in range(25)]
    stamp = Stamp(model=rng.choice(("reader", "embedded")), inputs=inputs_hash(question, passages))
    return Case(
        id=f"{number:012x}",
        question=question,
        passages=passages,
        answer=Answer(text=" ".join(rng.choices(WORDS, k=60))),
        stamp=stamp,
        corpus=rng.choice(("one", "two")),
        created="2026-11-20T10:00:00+00:00",
        tags=(rng.choice(WORDS),),
        analyses=(Analysis(id="reading", kind="reading", stamp=stamp, result={"candidates": candidates}),),
    )


def fill(store: CaseStore, count: int) -> None:
    """Write the cases, a second apart, in one transaction: Ask's own would take minutes."""
    rng, start = random.Random(7), datetime(2026, 11, 20, tzinfo=UTC)
    with store.writing() as connection:
        for number in range(count):
            write(connection, made_case(number, rng), (start + timedelta(seconds=number)).isoformat())


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds, the median of several calls."""
    taken = []
    for _ in range(CALLS):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def measured(count: int) -> dict[str, float]:
    """The timings by name."""
    with tempfile.TemporaryDirectory() as folder:
        store = CaseStore(Path(folder) / "cases.sqlite")
        fill(store, count)
        one = f"{count // 2:012x}"
        return {
            "the first 200 as the Cases page lists them": seconds(lambda: store.rows(Query())),
            "all of them": seconds(lambda: store.rows(Query(limit=count))),
            "search for two words": seconds(lambda: store.rows(Query(text="bal tel", limit=count))),
            "by question, one corpus, one day": seconds(
                lambda: store.rows(Query(sort="question", corpus="one", since="2026-11-20", limit=count))
            ),
            "count and facets": seconds(lambda: (store.count(Query()), store.facets())),
            "open one": seconds(lambda: store.load(one)),
            "export one": seconds(lambda: write_case_file(*store.load_whole(one))),
        }


def main() -> None:
    """Measure, print, and save the figures in RESULTS.md with --write."""
    asked = arguments(__doc__, cases=(10_000, "in the library"))
    found = measured(asked.cases)
    size = len(msgspec.json.encode(made_case(0, random.Random(7))))
    lines = [f"| {name} | {taken * 1000:.1f} |" for name, taken in found.items()]
    listed = found["all of them"]
    said = f"Listing all takes {listed:.3f} s, {'under' if listed < LIMIT else 'OVER'} the limit of {LIMIT} s."
    told = f"{asked.cases:,} cases of {size:,} bytes each. {said} {conditions()}"
    publish(asked, "library", "The library", told, ["| what | processor ms |", "| --- | ---: |", *lines])


if __name__ == "__main__":
    main()
