"""GaRAGe (Sorodoc et al. 2025): one JSON object a line.

Read: `sample_id`, `question`, `grounding` (passages, their text behind a citation marker), `answer_generate` (the
human answer with markers), and a tag a passage in `evidence_relevant` (YES or NO), `evidence_correct` and
`evidence_cited`. The question's own fields are kept as facts.
"""

from __future__ import annotations

import re
from typing import Any

from engine.cases.importers.imported import Labels, imported_case
from engine.errors import RecordError
from engine.records import AuditRecord
from engine.types import Case

FACTS = (
    "question_date",
    "question_type",
    "question_complexity",
    "question_category",
    "question_popularity",
    "question_false_premise",
    "answer_related_info",
    "answer_validate",
    "comments",
)
_MARKER = re.compile(r"^\s*\[?\s*cite_\d+\s*\]?\s*:?\s*", re.IGNORECASE)
_TEXT = ("text", "passage", "content")


def garage_case(item: dict[str, Any]) -> Case:
    """The case of one sample; passages carry their relevance label."""
    grounding = item.get("grounding")
    if not isinstance(grounding, list):
        raise RecordError("This GaRAGe sample has no list `grounding`. Give a file with its passages.")
    relevant = _tags(item, "evidence_relevant", len(grounding))
    passages = [
        {"text": _text(given), "title": _title(given), "relevant": None if tag is None else tag.upper() == "YES"}
        for given, tag in zip(grounding, relevant, strict=True)
    ]
    data = {
        "id": str(item.get("sample_id", item.get("id", ""))),
        "question": item.get("question", ""),
        "passages": passages,
        "answer": str(item.get("answer_generate") or item.get("answer") or ""),
        "model": str(item.get("model") or "human annotators (GaRAGe)"),
    }
    labels = Labels(
        source="GaRAGe",
        passages=_passage_labels(item, relevant),
        facts={name: item[name] for name in FACTS if item.get(name) not in (None, "")},
    )
    return imported_case(AuditRecord.from_dict(data), labels, ("GaRAGe",))


def _tags(item: dict[str, Any], field: str, count: int) -> list[str | None]:
    given = item.get(field)
    if given is None:
        return [None] * count
    if not isinstance(given, list) or len(given) != count:
        raise RecordError(f"`{field}` does not have one tag for each of the {count} passages of `grounding`.")
    return [None if tag is None else str(tag) for tag in given]


def _passage_labels(item: dict[str, Any], relevant: list[str | None]) -> dict[str, str]:
    correct = _tags(item, "evidence_correct", len(relevant))
    cited = _tags(item, "evidence_cited", len(relevant))
    rows = zip(("relevant", "content", "cited"), (relevant, correct, cited), strict=True)
    said: dict[int, list[str]] = {}
    for name, tags in rows:
        for number, tag in enumerate(tags, start=1):
            if tag is not None:
                said.setdefault(number, []).append(f"{name}: {tag}")
    return {str(number): "; ".join(parts) for number, parts in said.items()}


def _text(given: Any) -> str:
    if isinstance(given, list) and given:
        given = given[0]
    if isinstance(given, dict):
        given = next((given[name] for name in _TEXT if isinstance(given.get(name), str)), "")
    if not isinstance(given, str):
        raise RecordError("A passage of `grounding` is no text. Each is a text, or an object with a text.")
    return _MARKER.sub("", given)


def _title(given: Any) -> str:
    if not isinstance(given, dict):
        return ""
    parts = [str(given[name]) for name in ("title", "provider", "date") if given.get(name)]
    return ", ".join(parts)
