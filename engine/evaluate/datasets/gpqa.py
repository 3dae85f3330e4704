"""GPQA (Rein et al. 2023): a CSV with one right and three wrong answers; the options are shuffled by the seed.

The order depends on the seed and on the record alone, so that a sample shows the options as the whole set does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from engine.evaluate.datasets.files import Layout, Record, Source, has, text
from engine.evaluate.example import Example

WRONG = ("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


def example(record: Record, seed: int) -> Example:
    """The example of one question."""
    key = str(record.get("Record ID") or record["id"])
    right = text(record, "Correct Answer")
    options = [right, *(text(record, name) for name in WRONG)]
    random.Random(f"{seed}:{key}").shuffle(options)
    return Example(
        id=key,
        question=text(record, "Question"),
        source="GPQA",
        references=(right,),
        options=tuple(options),
        correct=options.index(right),
        domain=str(record.get("High-level domain") or ""),
        about={name: record[name] for name in ("Subdomain",) if record.get(name)},
    )


def read(source: Source) -> Iterator[Example]:
    """The examples of its file."""
    return source.each(lambda record: example(record, source.seed))


LAYOUT = Layout("GPQA", has("Question", "Correct Answer", "Incorrect Answer 1"), read)
