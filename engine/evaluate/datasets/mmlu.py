"""MMLU (Hendrycks et al. 2021): a CSV a subject without a head (question, A to D, letter), a folder of them, or records
with `question`, `choices`, `answer` (a number from 0) and `subject`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from engine.errors import FileError
from engine.evaluate.datasets.files import Layout, Record, Source, choices, text
from engine.evaluate.example import Example

COLUMNS = ("0", "1", "2", "3", "4", "5")


def example(record: Record, subject: str) -> Example:
    """The example of one question; `subject` is the file's."""
    table = "0" in record
    listed = {"choices": [text(record, name) for name in COLUMNS[1:5]]} if table else record
    options, correct = choices(listed, "choices", record.get("5" if table else "answer"), lettered=True)
    domain = str(record.get("subject") or subject)
    return Example(
        id=f"{domain}-{record['id']}",
        question=text(record, "0" if table else "question"),
        source="MMLU",
        references=(options[correct],),
        options=options,
        correct=correct,
        domain=domain,
    )


def read(source: Source) -> Iterator[Example]:
    """The examples of a file, or of every CSV of a folder in the order of their names."""
    files = sorted(source.path.glob("*.csv")) if source.path.is_dir() else [source.path]
    if not files:
        raise FileError(f"{source.path} holds no CSV. Give one of MMLU's folders, such as test.")
    for path in files:
        yield from source.each(lambda record, subject=subject_of(path): example(record, subject), path)  # type: ignore[misc]


def subject_of(path: Path) -> str:
    """The subject that a file is named after.

    >>> subject_of(Path("test/college_physics_test.csv"))
    'college physics'
    """
    return re.sub(r"_(test|val|dev)$", "", path.stem).replace("_", " ")


def _recognises(record: Record) -> bool:
    return record.keys() == set(COLUMNS) or {"question", "choices", "answer"} <= record.keys()


LAYOUT = Layout("MMLU", _recognises, read)
