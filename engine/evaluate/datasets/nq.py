"""Natural Questions (Kwiatkowski et al. 2019): NQ-open (`question`, `answer`), the lists of dense passage retrieval
(`positive_ctxs`, `hard_negative_ctxs`) or of readers (`ctxs` with `isgold`), and the simplified original."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.errors import RecordError
from engine.evaluate.datasets.files import Layout, Record, Source, given, relevant_ids, text, words
from engine.evaluate.example import Example

Given = list[tuple[str, str, bool | None]]


def example(record: Record) -> Example:
    """The example of one question; its answers are spellings of one thing."""
    question = text(record, "question", "question_text")
    answers = words(record, "answer") or words(record, "answers") or _annotated(record)
    passages = given(question, _passages(record))
    named = record.get("doc_id")
    return Example(
        id=str(record.get("example_id", record["id"])),
        question=question,
        source="NQ",
        passages=passages,
        references=answers,
        short_answers=(answers,) if answers else (),
        gold=relevant_ids(passages) or ((str(named),) if named else ()),
    )


def _passages(record: Record) -> Given:
    if isinstance(record.get("ctxs"), list):
        return [_context(item, item.get("isgold")) for item in record["ctxs"]]
    lists = (("positive_ctxs", True), ("hard_negative_ctxs", False), ("negative_ctxs", False))
    return [_context(item, label) for name, label in lists for item in record.get(name) or ()]


def _context(item: Any, label: bool | None) -> tuple[str, str, bool | None]:
    if not isinstance(item, dict):
        raise RecordError("A passage is no object with a text.")
    return text(item, "text"), str(item.get("title") or ""), label


def _annotated(record: Record) -> tuple[str, ...]:
    """The short answers of the simplified original: token spans of the document's text, split at spaces."""
    tokens = str(record.get("document_text", "")).split(" ")
    found = []
    for annotation in record.get("annotations") or ():
        if annotation.get("yes_no_answer", "NONE") != "NONE":
            found.append(str(annotation["yes_no_answer"]).lower())
        for span in annotation.get("short_answers") or ():
            found.append(" ".join(tokens[int(span["start_token"]) : int(span["end_token"])]))
    return tuple(dict.fromkeys(answer for answer in found if answer))


def _recognises(record: Record) -> bool:
    if "question_text" in record:
        return True
    return "question" in record and (isinstance(record.get("answer"), list) or "answers" in record)


def read(source: Source) -> Iterator[Example]:
    """The examples of its file."""
    return source.each(example)


LAYOUT = Layout("NQ", _recognises, read)
