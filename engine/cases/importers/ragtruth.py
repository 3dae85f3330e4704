"""RAGTruth (Niu et al. 2024): answers in response.jsonl, what they were written from in source_info.jsonl.

Read: `id`, `source_id`, `model`, `response`, `labels` (hallucination spans of the response: `start`, `end`, `text`,
`label_type`, `meta`, and the flags `implicit_true` and `due_to_null`), `quality`, `split`; `task_type` and
`source_info`. A question-answering source is cut at its "passage N:"; a summary has one passage, structured data
is one passage of JSON.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from engine.cases.importers.imported import Labels, SpanLabel, imported_case
from engine.errors import RecordError
from engine.records import AuditRecord
from engine.types import Case

_PASSAGE = re.compile(r"(?:^|\n)\s*passage \d+:")
TASKS = {
    "Summary": "Summarize the text.",
    "Data2txt": "Write an overview of the business from the structured data.",
}
FACTS = ("task_type", "source", "split", "quality", "temperature")


def ragtruth_case(response: dict[str, Any], sources: Mapping[str, dict[str, Any]]) -> Case:
    """The case of one response; every hallucination span is a label of the answer, flags and all."""
    source = sources.get(str(response.get("source_id")))
    if source is None:
        raise RecordError(
            f"There is no source {response.get('source_id')!r}. Give source_info.jsonl beside response.jsonl."
        )
    question, passages = _inputs(source)
    answer = str(response.get("response", ""))
    data = {
        "id": str(response.get("id", "")),
        "question": question,
        "passages": passages,
        "answer": answer,
        "model": str(response.get("model", "")),
    }
    both = {**source, **response}
    labels = Labels(
        source="RAGTruth",
        spans=tuple(_span(label, answer) for label in response.get("labels") or []),
        facts={name: both[name] for name in FACTS if both.get(name) is not None},
    )
    return imported_case(AuditRecord.from_dict(data), labels, ("RAGTruth",))


def _inputs(source: dict[str, Any]) -> tuple[str, list[str]]:
    info = source.get("source_info")
    if isinstance(info, str):
        return TASKS["Summary"], [info]
    if not isinstance(info, dict):
        raise RecordError("A source has no `source_info`. Give RAGTruth's own source_info.jsonl.")
    if isinstance(info.get("passages"), str):
        parts = [part.strip() for part in _PASSAGE.split(info["passages"])]
        return str(info.get("question", "")), [part for part in parts if part]
    return TASKS["Data2txt"], [msgspec.json.format(msgspec.json.encode(info), indent=1).decode()]


def _span(label: dict[str, Any], answer: str) -> SpanLabel:
    try:
        start, end = int(label["start"]), int(label["end"])
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"A label lacks a start or an end in characters: {label!r}.") from error
    if not 0 <= start <= end <= len(answer):
        raise RecordError(f"The label {start} to {end} does not lie in the response of {len(answer)} characters.")
    flags = [name.replace("_", " ") for name in ("implicit_true", "due_to_null") if label.get(name)]
    note = "; ".join(part for part in (str(label.get("meta") or ""), *flags) if part)
    return SpanLabel(start=start, end=end, text=answer[start:end], label=str(label.get("label_type", "")), note=note)
