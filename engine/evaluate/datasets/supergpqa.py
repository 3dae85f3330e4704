"""SuperGPQA (M-A-P 2025): JSONL with up to ten options; the discipline is the domain."""

from __future__ import annotations

from collections.abc import Iterator

from engine.evaluate.datasets.files import Layout, Record, Source, choices, has, text
from engine.evaluate.example import Example


def example(record: Record) -> Example:
    """The example of one question."""
    answer = record.get("answer_letter", record.get("answer"))
    options, correct = choices(record, "options", answer, lettered="answer_letter" in record)
    return Example(
        id=str(record.get("uuid") or record["id"]),
        question=text(record, "question"),
        source="SuperGPQA",
        references=(options[correct],),
        options=options,
        correct=correct,
        domain=str(record.get("discipline") or ""),
        about={name: record[name] for name in ("field", "subfield", "difficulty", "is_calculation") if name in record},
    )


def read(source: Source) -> Iterator[Example]:
    """The examples of its file."""
    return source.each(example)


LAYOUT = Layout("SuperGPQA", has("question", "options", "answer_letter"), read)
