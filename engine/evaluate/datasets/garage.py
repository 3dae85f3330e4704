"""GaRAGe (Sorodoc et al. 2025): passages labelled relevant or not; read as its importer of cases does.

The human answer is the reference, and the answer to be checked.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.cases.importers.garage import garage_case
from engine.evaluate.datasets.files import Layout, Record, Source, has, labels_of, relevant_ids
from engine.evaluate.example import Example


def example(record: Record) -> Example:
    """The example of one sample."""
    case = garage_case(record)
    return Example(
        id=str(record.get("sample_id", record["id"])),
        question=case.question,
        source="GaRAGe",
        passages=case.passages,
        references=(case.answer.text,) if case.answer.text else (),
        gold=relevant_ids(case.passages),
        answer=case.answer.text,
        writer=case.stamp.model,
        domain=str(record.get("question_category") or ""),
        about=labels_of(case).facts,
    )


def read(source: Source) -> Iterator[Example]:
    """The examples of its file."""
    return source.each(example)


LAYOUT = Layout("GaRAGe", has("question", "grounding"), read)
