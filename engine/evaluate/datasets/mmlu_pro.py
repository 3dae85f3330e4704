"""MMLU-Pro (Wang et al. 2024): up to ten options, the category is the domain; fillers "N/A" are no options."""

from __future__ import annotations

from collections.abc import Iterator

from engine.evaluate.datasets.files import Layout, Record, Source, choices, has, text
from engine.evaluate.example import Example


def example(record: Record) -> Example:
    """The example of one question."""
    answer = record.get("answer_index", record.get("answer"))
    options, correct = choices(record, "options", answer, filler="N/A")
    return Example(
        id=str(record.get("question_id", record["id"])),
        question=text(record, "question"),
        source="MMLU-Pro",
        references=(options[correct],),
        options=options,
        correct=correct,
        domain=str(record.get("category") or ""),
        about={"src": record["src"]} if record.get("src") else {},
    )


def read(source: Source) -> Iterator[Example]:
    """The examples of its file."""
    return source.each(example)


LAYOUT = Layout("MMLU-Pro", has("question", "options", "answer_index"), read)
