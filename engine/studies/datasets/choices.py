"""Multiple choice: GPQA (Rein et al. 2023), MMLU (Hendrycks et al. 2021), MMLU-Pro (Wang et al. 2024), SuperGPQA.

GPQA's options are shuffled by the seed and the record alone, so a sample shows them as the whole set does.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from engine.core.errors import FileError
from engine.studies.datasets.files import DataSource, Layout, Record, choices, has, text
from engine.studies.example import Example

WRONG = ("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


def _gpqa(record: Record, seed: int) -> Example:
    key = str(record.get("Record ID") or record["id"])
    right = text(record, "Correct Answer")
    options = [right, *(text(record, name) for name in WRONG)]
    random.Random(f"{seed}:{key}").shuffle(options)
    chosen, domain = (tuple(options), options.index(right)), record.get("High-level domain")
    about = {"Subdomain": record["Subdomain"]} if record.get("Subdomain") else {}
    return _choice("GPQA", key, text(record, "Question"), chosen, domain, **about)


GPQA = Layout(
    has("Question", "Correct Answer", "Incorrect Answer 1"),
    lambda source: source.each(partial(_gpqa, seed=source.seed)),
)


# MMLU: a CSV per subject without a head, a folder of them, or records (`question`, `choices`, `answer`, `subject`).

COLUMNS = ("0", "1", "2", "3", "4", "5")


def _mmlu(record: Record, subject: str) -> Example:
    table = "0" in record
    listed = {"choices": [text(record, name) for name in COLUMNS[1:5]]} if table else record
    chosen = choices(listed, "choices", record.get("5" if table else "answer"), lettered=True)
    domain = str(record.get("subject") or subject)
    question = text(record, "0" if table else "question")
    return _choice("MMLU", f"{domain}-{record['id']}", question, chosen, domain)


def _choice(
    source: str, key: Any, question: str, chosen: tuple[tuple[str, ...], int], domain: Any, **about: Any
) -> Example:
    options, correct = chosen
    return Example(
        id=str(key),
        question=question,
        source=source,
        references=(options[correct],),
        options=options,
        correct=correct,
        domain=str(domain or ""),
        about=about,
    )


def _read_mmlu(source: DataSource) -> Iterator[Example]:
    """The examples of a file, or of every CSV of a folder in the order of their names."""
    files = sorted(source.path.glob("*.csv")) if source.path.is_dir() else [source.path]
    if not files:
        raise FileError(f"{source.path} has no CSV files. Give one of MMLU's folders, such as test.")
    for path in files:
        yield from source.each(partial(_mmlu, subject=subject_of(path)), path)


def subject_of(path: Path) -> str:
    """The subject that a file is named after.

    >>> subject_of(Path("test/college_physics_test.csv"))
    'college physics'
    """
    return re.sub(r"_(test|val|dev)$", "", path.stem).replace("_", " ")


MMLU = Layout(
    lambda record: record.keys() == set(COLUMNS) or {"question", "choices", "answer"} <= record.keys(), _read_mmlu
)


@Layout.of(has("question", "options", "answer_index"))
def mmlu_pro(record: Record) -> Example:
    """Up to ten options; fillers "N/A" are dropped; the category is the domain."""
    chosen = choices(record, "options", record.get("answer_index", record.get("answer")), filler="N/A")
    key, about = record.get("question_id", record["id"]), {"src": record["src"]} if record.get("src") else {}
    return _choice("MMLU-Pro", key, text(record, "question"), chosen, record.get("category"), **about)


@Layout.of(has("question", "options", "answer_letter"))
def supergpqa(record: Record) -> Example:
    """Up to ten options; the discipline is the domain."""
    answer = record.get("answer_letter", record.get("answer"))
    chosen = choices(record, "options", answer, lettered="answer_letter" in record)
    key, domain = record.get("uuid") or record["id"], record.get("discipline")
    about = {name: record[name] for name in ("field", "subfield", "difficulty", "is_calculation") if name in record}
    return _choice("SuperGPQA", key, text(record, "question"), chosen, domain, **about)
