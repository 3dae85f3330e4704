"""ALCE (Gao et al. 2023): ASQA, QAMPARI and ELI5 with retrieved passages; read as its importer of cases does.

What STR-EM looks for: `short_answers` of each of ASQA's `qa_pairs`, the spellings of each of QAMPARI's `answers`.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.cases.importers.alce import alce_case
from engine.evaluate.datasets.files import Layout, Record, Source, has, relevant_ids, words
from engine.evaluate.example import Example


def example(record: Record) -> Example:
    """The example of one item."""
    case = alce_case(record)
    return Example(
        id=str(record.get("sample_id", record["id"])),
        question=case.question,
        source="ALCE",
        passages=case.passages,
        references=words(record, "answer"),
        short_answers=short_answers(record),
        gold=relevant_ids(case.passages),
        answer=case.answer.text,
        about={"claims": record["claims"]} if record.get("claims") else {},
    )


def short_answers(record: Record) -> tuple[tuple[str, ...], ...]:
    """One tuple of spellings for each thing that the answer should name."""
    pairs, answers = record.get("qa_pairs"), record.get("answers")
    if isinstance(pairs, list):
        found = [words(pair, "short_answers") for pair in pairs if isinstance(pair, dict)]
    else:
        found = [words({"a": spellings}, "a") for spellings in answers] if isinstance(answers, list) else []
    return tuple(spellings for spellings in found if spellings)


def read(source: Source) -> Iterator[Example]:
    """The examples of a data file or of a result file."""
    return source.each(example)


LAYOUT = Layout("ALCE", has("question", "docs"), read)
