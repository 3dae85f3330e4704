"""StrategyQA (Geva et al. 2021): yes-or-no questions with their steps and the paragraphs that answer them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.errors import RecordError
from engine.evaluate.datasets.files import Layout, Record, Source, has, text, words
from engine.evaluate.example import Example, GoldStep

OPTIONS = ("Yes", "No")
NO_PARAGRAPH = ("operation", "no_evidence")


def example(record: Record) -> Example:
    """The example of one question; a test record without an answer has no right option."""
    answer = record.get("answer")
    if answer is not None and not isinstance(answer, bool):
        raise RecordError(f"The answer is {answer!r}; StrategyQA's is true or false.")
    correct = None if answer is None else 0 if answer else 1
    return Example(
        id=str(record.get("qid", record["id"])),
        question=text(record, "question"),
        source="StrategyQA",
        references=() if correct is None else (OPTIONS[correct],),
        options=OPTIONS,
        correct=correct,
        gold=tuple(dict.fromkeys(_paragraphs(record.get("evidence")))),
        steps=tuple(GoldStep(question=step) for step in words(record, "decomposition")),
        about={name: record[name] for name in ("term", "facts") if record.get(name)},
    )


def _paragraphs(evidence: Any) -> Iterator[str]:
    """The paragraphs named anywhere in the nested lists: by annotator, step, and kind."""
    if isinstance(evidence, list):
        for inner in evidence:
            yield from _paragraphs(inner)
    elif isinstance(evidence, str) and evidence not in NO_PARAGRAPH:
        yield evidence


def read(source: Source) -> Iterator[Example]:
    """The examples of its file."""
    return source.each(example)


LAYOUT = Layout("StrategyQA", has("qid", "question"), read)
