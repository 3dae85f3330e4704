"""ALCE (Gao et al. 2023): a result file is {"args", "data": [...]}, a data file the bare list.

An item has `question`, `docs` (each `title`, `text`, in a retrieval file also `id`, `score`, `answers_found`) and,
in a result file, `output`, the answer with citations [1]. Reference answers (`answer`, `qa_pairs`, `answers`,
`claims`) are kept as facts. As ALCE's own evaluation does, only the first line of an output is the answer.
"""

from __future__ import annotations

from typing import Any

from engine.cases.importers.imported import Labels, imported_case
from engine.errors import RecordError
from engine.records import AuditRecord
from engine.types import Case

REFERENCES = ("answer", "qa_pairs", "answers", "claims")


def alce_case(item: dict[str, Any], model: str = "") -> Case:
    """The case of one item; a passage that holds a reference answer (`answers_found`) is labelled relevant."""
    docs = item.get("docs")
    if not isinstance(docs, list) or not all(isinstance(doc, dict) for doc in docs):
        raise RecordError("This ALCE item has no list `docs`. Give the file that the model was run on.")
    passages = [
        {"text": str(doc.get("text", "")), "title": str(doc.get("title", "")), "relevant": _relevant(doc)}
        for doc in docs
    ]
    data = {
        "id": str(item.get("id", item.get("sample_id", ""))),
        "question": item.get("question", ""),
        "passages": passages,
        "answer": str(item.get("output", "")).strip().partition("\n")[0],
        "model": model,
    }
    references = {name: item[name] for name in REFERENCES if item.get(name)}
    found = {str(n): "holds a reference answer" for n, p in enumerate(passages, start=1) if p["relevant"]}
    return imported_case(
        AuditRecord.from_dict(data), Labels(source="ALCE", passages=found, facts=references), ("ALCE",)
    )


def _relevant(doc: dict[str, Any]) -> bool | None:
    found = doc.get("answers_found")
    return any(found) if isinstance(found, list) and found else None
