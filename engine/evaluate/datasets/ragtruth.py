"""RAGTruth (Niu et al. 2024): response.jsonl with source_info.jsonl beside it; read as its importer of cases does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.cases.importers.ragtruth import ragtruth_case
from engine.errors import FileError
from engine.evaluate.datasets.files import Layout, Record, Source, has, labels_of, records
from engine.evaluate.example import Example

RESPONSES, SOURCES = "response.jsonl", "source_info.jsonl"


def example(record: Record, sources: Mapping[str, Record]) -> Example:
    """The example of one response: its task is the domain, its hallucinations are the labelled spans."""
    case = ragtruth_case(record, sources)
    labels = labels_of(case)
    return Example(
        id=record["id"],
        question=case.question,
        source="RAGTruth",
        passages=case.passages,
        answer=case.answer.text,
        writer=case.stamp.model,
        spans=labels.spans,
        domain=str(labels.facts.get("task_type", "")),
        about=labels.facts,
    )


def read(source: Source) -> Iterator[Example]:
    """The examples of response.jsonl, or of the folder that holds both files."""
    responses = source.path / RESPONSES if source.path.is_dir() else source.path
    beside = responses.with_name(SOURCES)
    if not beside.exists():
        raise FileError(f"RAGTruth keeps what the answers were written from in {SOURCES}. Put it beside {responses}.")
    sources = {str(record.get("source_id")): record for _, _, record in records(beside)}
    return source.each(lambda record: example(record, sources), responses)


LAYOUT = Layout("RAGTruth", has("response", "source_id"), read)
