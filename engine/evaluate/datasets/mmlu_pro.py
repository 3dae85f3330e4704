"""MMLU-Pro (Wang et al. 2024): up to ten options, the category is the domain; fillers "N/A" are no options."""

from __future__ import annotations

from collections.abc import Iterator

from engine.errors import RecordError
from engine.evaluate.datasets.files import Layout, Record, Source, has, index_of, text, words
from engine.evaluate.example import Example


def example(record: Record) -> Example:
    """The example of one question."""
    listed = words(record, "options")
    right = listed[index_of(record.get("answer_index", record.get("answer")), listed)]
    options = tuple(option for option in listed if option.upper() != "N/A")
    if right not in options:
        raise RecordError("The right answer is one of the fillers 'N/A'.")
    return Example(
        id=str(record.get("question_id", record["id"])),
        question=text(record, "question"),
        source="MMLU-Pro",
        references=(right,),
        options=options,
        correct=options.index(right),
        domain=str(record.get("category") or ""),
        about={"src": record["src"]} if record.get("src") else {},
    )


def read(source: Source) -> Iterator[Example]:
    """The examples of its file."""
    return source.each(example)


LAYOUT = Layout("MMLU-Pro", has("question", "options", "answer_index"), read)
