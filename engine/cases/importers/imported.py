"""A question, passages and an answer that some system wrote, as a case; its labels stay beside it as an analysis."""

from __future__ import annotations

from typing import Any, Literal

from engine.answer.citations import annotate, find_citations
from engine.answer.context import check_question
from engine.cases.store import new_case_id
from engine.clock import now
from engine.records import AuditRecord
from engine.types import Analysis, Answer, Case, Stamp, Value, inputs_hash
from engine.versions import package_versions

Style = Literal["garage", "alce"]


class SpanLabel(Value, frozen=True):
    """A labelled stretch of the answer: characters [start, end), the label, what the annotator wrote."""

    start: int
    end: int
    text: str
    label: str
    note: str = ""


class Labels(Value, frozen=True):
    """What came with an imported answer: where from, labelled spans, labels of passages (by number), other facts."""

    source: str
    spans: tuple[SpanLabel, ...] = ()
    passages: dict[str, str] = {}
    facts: dict[str, Any] = {}


def imported_case(record: AuditRecord, labels: Labels | None = None, tags: tuple[str, ...] = ()) -> Case:
    """A fresh case; raises `RecordError`, `QuestionError` for a record that cannot be one."""
    passages = record.as_passages()
    question = check_question(record.question)
    inputs = inputs_hash(question, passages)
    stamp = Stamp(model=record.model or "imported", inputs=inputs, versions=package_versions(), created=now())
    analyses: tuple[Analysis, ...] = ()
    if labels is not None:
        made = Stamp(model=labels.source, inputs=inputs_hash(question, passages, record.answer), created=now())
        analyses = (Analysis(id="labels", kind="labels", stamp=made, result=labels.to_dict()),)
    return Case(
        id=new_case_id(),
        title=record.id,
        question=question,
        passages=passages,
        answer=annotate(Answer(text=record.answer), len(passages), style_of(record.answer)),
        stamp=stamp,
        created=now(),
        origin="imported",
        analyses=analyses,
        tags=tags,
    )


def style_of(answer: str) -> Style:
    """The citation style that finds more markers in an answer: `[cite_N]` or `[N]`.

    >>> style_of("Ice melts [1][2].")
    'alce'
    """
    counts = {style: len(find_citations(answer, 0, style)) for style in ("garage", "alce")}
    return "alce" if counts["alce"] > counts["garage"] else "garage"
