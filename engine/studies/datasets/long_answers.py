"""Long answers: ALCE (Gao et al. 2023), ExpertQA (Malaviya et al. 2023), GaRAGe (Sorodoc et al. 2025), RAGTruth.

Read as the importers of cases do. STR-EM looks for `short_answers` of each of ASQA's `qa_pairs` and the spellings of
each of QAMPARI's `answers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from engine.analyses.imported import KIND as LABELS
from engine.cases.importers import alce_case, garage_case, ragtruth_case
from engine.core.errors import FileError
from engine.core.values import Case
from engine.studies.datasets.files import DataSource, Layout, Record, has, records, relevant_ids, text, words
from engine.studies.example import Example


@Layout.of(has("question", "docs"))
def alce(record: Record) -> Example:
    """ASQA, QAMPARI and ELI5 with their passages."""
    case = alce_case(record)
    return replace(
        _of_case(case, "ALCE", record["id"]),
        references=words(record, "answer"),
        short_answers=_short_answers(record),
        about={"claims": record["claims"]} if record.get("claims") else {},
    )


def _of_case(case: Case, source: str, key: Any) -> Example:
    return Example(
        id=str(key),
        question=case.question,
        source=source,
        passages=case.passages,
        gold=relevant_ids(case.passages),
        answer=case.answer.text,
    )


def _short_answers(record: Record) -> tuple[tuple[str, ...], ...]:
    """One tuple of spellings for each thing that the answer should name."""
    pairs, answers = record.get("qa_pairs"), record.get("answers")
    if isinstance(pairs, list):
        found = [words(pair, "short_answers") for pair in pairs if isinstance(pair, dict)]
    else:
        found = [words({"a": spellings}, "a") for spellings in answers] if isinstance(answers, list) else []
    return tuple(spellings for spellings in found if spellings)


def _is_expertqa(record: Record) -> bool:
    about = record.get("metadata")
    field = isinstance(about, dict) and "field" in about
    return "question" in record and (field or isinstance(record.get("answers"), dict))


@Layout.of(_is_expertqa)
def expertqa(record: Record) -> Example:
    """Questions by experts with the first system's answer; the answer as the expert revised it is the reference."""
    answers = record.get("answers")
    name, given = next(iter(answers.items())) if isinstance(answers, dict) and answers else ("", {})
    given = given if isinstance(given, dict) else {}
    about = record.get("metadata")
    about = about if isinstance(about, dict) else {}
    return Example(
        id=str(record.get("example_id", record["id"])),
        question=text(record, "question"),
        source="ExpertQA",
        references=words(given, "revised_answer_string") or words(record, "answer"),
        answer=next(iter(words(given, "answer_string")), ""),
        writer=name,
        domain=str(about.get("field") or ""),
        about={key: about[key] for key in ("question_type", "specific_field") if about.get(key)},
    )


@Layout.of(has("question", "grounding"))
def garage(record: Record) -> Example:
    """Passages labelled relevant or not; the human answer is the reference and the answer to be checked."""
    case = garage_case(record)
    return replace(
        _of_case(case, "GaRAGe", record["id"]),
        references=(case.answer.text,) if case.answer.text else (),
        writer=case.stamp.model,
        domain=str(record.get("question_category") or ""),
        about=LABELS.of(case)[0].facts,
    )


# RAGTruth (Niu et al. 2024): response.jsonl with source_info.jsonl next to it.

RESPONSES, SOURCES = "response.jsonl", "source_info.jsonl"


def _ragtruth(record: Record, sources: Mapping[str, Record]) -> Example:
    """The example of one response: its task is the domain, its hallucinations are the labelled spans."""
    case = ragtruth_case(record, sources)
    (labels,) = LABELS.of(case)
    return replace(
        _of_case(case, "RAGTruth", record["id"]),
        writer=case.stamp.model,
        spans=labels.spans,
        domain=str(labels.facts.get("task_type", "")),
        about=labels.facts,
    )


def _read_ragtruth(source: DataSource) -> Iterator[Example]:
    """The examples of response.jsonl, or of the folder that holds both files."""
    responses = source.path / RESPONSES if source.path.is_dir() else source.path
    beside = responses.with_name(SOURCES)
    if not beside.exists():
        raise FileError(f"RAGTruth stores the sources of its answers in {SOURCES}. Put it next to {responses}.")
    sources = {str(record.get("source_id")): record for _, _, record in records(beside)}
    return source.each(partial(_ragtruth, sources=sources), responses)


RAGTRUTH = Layout(has("response", "source_id"), _read_ragtruth)
