"""ExpertQA (Malaviya et al. 2023): questions by experts, a system's answer, and the answer as the expert revised it."""

from __future__ import annotations

from collections.abc import Iterator

from engine.evaluate.datasets.files import Layout, Record, Source, text, words
from engine.evaluate.example import Example


def example(record: Record) -> Example:
    """The example of one question, with the first system's answer; the revised answer is the reference."""
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


def _recognises(record: Record) -> bool:
    if "question" not in record:
        return False
    answers = record.get("answers")
    return isinstance(answers, dict) or (isinstance(record.get("metadata"), dict) and "field" in record["metadata"])


def read(source: Source) -> Iterator[Example]:
    """The examples of its file."""
    return source.each(example)


LAYOUT = Layout("ExpertQA", _recognises, read)
