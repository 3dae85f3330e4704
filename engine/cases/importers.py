"""Answers from elsewhere as cases: records and exports (`exports.py`), ALCE, GaRAGe and RAGTruth, by their fields.

A record that cannot be read comes out as its error, and the rest goes on. Labels of a data set are kept with the case
as an analysis.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Literal, get_args

import msgspec

from engine.answer.citations import annotate, style_of
from engine.answer.context import check_question
from engine.cases.case_file import read_case_file
from engine.cases.exports import audit_record, holds_record, rows_of, table_rows
from engine.cases.review import Mark
from engine.cases.store import new_case_id
from engine.core.errors import GroundworkError, RecordError, raised_as
from engine.core.files import now, package_versions
from engine.core.values import (
    IMPORTED,
    NOT_FINITE,
    SPANS,
    Analysis,
    Answer,
    AuditRecord,
    Case,
    Json,
    Stamp,
    T,
    Value,
    identified,
    identity,
    inputs_hash,
    json_or_none,
    not_finite,
    read_jsonl,
    with_nan,
)

# Our own records.


class SpanLabel(Value, frozen=True):
    """A labelled stretch of the answer: characters [start, end), the label, what the annotator wrote."""

    start: int
    end: int
    text: str
    label: str
    note: str = ""


class Labels(Value, frozen=True):
    """The data of an imported answer: origin, labelled spans, labels of passages (by number), other facts."""

    source: str
    spans: tuple[SpanLabel, ...] = ()
    passages: dict[str, str] = {}
    facts: Json = {}


def imported_case(record: AuditRecord, labels: Labels | None = None) -> Case:
    """A fresh case, tagged with the labels' source; raises `RecordError`, `QuestionError` for a bad record."""
    way_out = "Its text has half of a character. Decode its source as UTF-8."  # the question is mended
    with raised_as(RecordError, "The record cannot be saved", way_out, UnicodeEncodeError):
        msgspec.json.encode(msgspec.structs.replace(record, question=""))
    record = record if labels else record.normal()  # the places of labels are those of the text as it is given
    passages = record.as_passages()
    for start, end in record.spans:
        if not 0 <= start < end <= len(record.answer):
            raise RecordError(f"Span [{start}, {end}) is not inside the answer of {len(record.answer)} characters.")
    question = check_question(record.question)
    inputs = inputs_hash(question, passages)
    settings: Json = {SPANS: [list(span) for span in record.spans]} if record.spans else {}
    stamp = Stamp(
        model=record.model or IMPORTED, settings=settings, inputs=inputs, versions=package_versions(), created=now()
    )
    analyses: tuple[Analysis, ...] = ()
    if labels is not None:
        made = Stamp(model=labels.source, inputs=inputs_hash(question, passages, record.answer), created=now())
        analyses = (Analysis(id="labels", kind="labels", stamp=made, result=labels),)
    return Case(
        id=new_case_id(),
        title=record.id,
        question=question,
        passages=passages,
        answer=annotate(Answer(text=record.answer), len(passages), style_of(record.answer)),
        stamp=stamp,
        created=now(),
        corpus=record.corpus,
        origin="imported",
        analyses=analyses,
        tags=(labels.source,) if labels else (),
    )


# ALCE (Gao et al. 2023): a result file is {"args", "data": [...]}, a data file the bare list. As in ALCE's own
# evaluation only the first line of `output` is the answer; reference answers are kept as facts.

REFERENCES = ("answer", "qa_pairs", "answers", "claims")


def alce_case(item: Json, model: str = "") -> Case:
    """The case of one item; a passage that holds a reference answer (`answers_found`) is labelled relevant."""
    docs = item.get("docs")
    if not isinstance(docs, list) or not all(isinstance(doc, dict) for doc in docs):
        raise RecordError("This ALCE item has no list `docs`. Use the file that the model read.")
    labels = [doc.get("answers_found") for doc in docs]
    relevant = [any(label) if isinstance(label, list) and label else None for label in labels]
    passages = [
        {"text": str(doc.get("text", "")), "title": str(doc.get("title", "")), "relevant": label}
        for doc, label in zip(docs, relevant, strict=True)
    ]
    references = {name: item[name] for name in REFERENCES if item.get(name)}
    found = {str(n): "holds a reference answer" for n, label in enumerate(relevant, start=1) if label}
    return _labelled(
        Labels(source="ALCE", passages=found, facts=references),
        item,
        passages=passages,
        answer=str(item.get("output", "")).strip().partition("\n")[0],
        model=model,
    )


def _labelled(labels: Labels, item: Json, **record: Any) -> Case:
    """The case of a data set's item, from its id, its question, and the other fields of an `AuditRecord`."""
    named = {"id": str(item.get("id", "")), "question": item.get("question", "")}
    return imported_case(AuditRecord.from_dict({**named, **record}), labels)


# GaRAGe (Sorodoc et al. 2025): one object per line; passages in `grounding` behind a citation marker, a tag per passage
# in `evidence_relevant`, `evidence_correct` and `evidence_cited`, the human answer in `answer_generate`.

GARAGE_FACTS = (
    *(f"question_{of}" for of in ("date", "type", "complexity", "category", "popularity", "false_premise")),
    *("answer_related_info", "answer_validate", "comments"),
)
GARAGE_TAGS = {"relevant": "evidence_relevant", "content": "evidence_correct", "cited": "evidence_cited"}
_MARKER = re.compile(r"^\s*\[?\s*cite_\d+\s*\]?\s*:?\s*", re.IGNORECASE)
_TEXT = ("text", "passage", "content")


def garage_case(item: Json) -> Case:
    """The case of one sample; passages carry their relevance label."""
    grounding = item.get("grounding")
    if not isinstance(grounding, list):
        raise RecordError("This GaRAGe sample has no list `grounding`. Give a file with its passages.")
    tags = {name: _tags(item, field, len(grounding)) for name, field in GARAGE_TAGS.items()}
    passages = [
        {"text": _text(given), "title": _title(given), "relevant": None if tag is None else tag.upper() == "YES"}
        for given, tag in zip(grounding, tags["relevant"], strict=True)
    ]
    labels = {
        str(number): "; ".join(f"{name}: {tag}" for name, tag in zip(tags, each, strict=True) if tag is not None)
        for number, each in enumerate(zip(*tags.values(), strict=True), start=1)
        if any(tag is not None for tag in each)
    }
    facts = {name: item[name] for name in GARAGE_FACTS if item.get(name) not in (None, "")}
    return _labelled(
        Labels(source="GaRAGe", passages=labels, facts=facts),
        item,
        passages=passages,
        answer=str(item.get("answer_generate") or item.get("answer") or ""),
        model=str(item.get("model") or "human annotators (GaRAGe)"),
    )


def _tags(item: Json, field: str, count: int) -> list[str | None]:
    given = item.get(field)
    if given is None:
        return [None] * count
    if not isinstance(given, list) or len(given) != count:
        raise RecordError(f"`{field}` does not have one tag for each of the {count} passages of `grounding`.")
    return [None if tag is None else str(tag) for tag in given]


def _text(given: Any) -> str:
    if isinstance(given, list) and given:
        given = given[0]
    if isinstance(given, dict):
        given = next((given[name] for name in _TEXT if isinstance(given.get(name), str)), "")
    if not isinstance(given, str):
        raise RecordError("A passage of `grounding` is not a text. Each must be a text, or an object with a text.")
    return _MARKER.sub("", given)


def _title(given: Any) -> str:
    named = given if isinstance(given, dict) else {}
    return ", ".join(str(named[name]) for name in ("title", "provider", "date") if named.get(name))


# RAGTruth (Niu et al. 2024): answers with `labels` (hallucination spans) in response.jsonl, their sources in
# source_info.jsonl: cut at "passage N:" for questions, one passage for summaries and structured data.

_PASSAGE = re.compile(r"(?:^|\n)\s*passage \d+:")
TASKS = {"Summary": "Summarize the text.", "Data2txt": "Write an overview of the business from the structured data."}
RAGTRUTH_FACTS = ("task_type", "source", "split", "quality", "temperature")


def ragtruth_case(response: Json, sources: Mapping[str, Json]) -> Case:
    """The case of one response; every hallucination span is a label of the answer, flags and all."""
    source = sources.get(str(response.get("source_id")))
    if source is None:
        raise RecordError(
            f"There is no source {response.get('source_id')!r}. Give source_info.jsonl together with response.jsonl."
        )
    question, passages = _inputs(source)
    answer, both = str(response.get("response", "")), {**source, **response}
    spans = tuple(_span(label, answer) for label in response.get("labels") or [])
    facts = {name: both[name] for name in RAGTRUTH_FACTS if both.get(name) is not None}
    return _labelled(
        Labels(source="RAGTruth", spans=spans, facts=facts),
        response,
        question=question,
        passages=passages,
        answer=answer,
        model=str(response.get("model", "")),
    )


def _inputs(source: Json) -> tuple[str, list[str]]:
    info = source.get("source_info")
    if isinstance(info, str):
        return TASKS["Summary"], [info]
    if not isinstance(info, dict):
        raise RecordError("A source has no `source_info`. Give RAGTruth's own source_info.jsonl.")
    if isinstance(info.get("passages"), str):
        parts = [part.strip() for part in _PASSAGE.split(info["passages"])]
        return str(info.get("question", "")), [part for part in parts if part]
    return TASKS["Data2txt"], [msgspec.json.format(msgspec.json.encode(info), indent=1).decode()]


def _span(label: Json, answer: str) -> SpanLabel:
    try:
        start, end = int(label["start"]), int(label["end"])
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"A label lacks a start or an end in characters: {label!r}.") from error
    text = label.get("text")
    if isinstance(text, str) and answer[start:end] != text:
        units = answer.encode("utf-16-le", "surrogatepass")  # some tools count in UTF-16: an emoji has two units
        start, end = (len(units[: 2 * place].decode("utf-16-le", "replace")) for place in (start, end))
        if answer[start:end] != text:
            raise RecordError(f"The label of {text!r} is not at its text in the response. Correct its start and end.")
    if not 0 <= start <= end <= len(answer):
        raise RecordError(f"The label {start} to {end} is not within the response of {len(answer)} characters.")
    flags = [name.replace("_", " ") for name in ("implicit_true", "due_to_null") if label.get(name)]
    note = "; ".join(part for part in (str(label.get("meta") or ""), *flags) if part)
    return SpanLabel(start=start, end=end, text=answer[start:end], label=str(label.get("label_type", "")), note=note)


Layout = Literal["case", "records", "alce", "garage", "ragtruth"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
Imported = tuple[Case, tuple[Mark, ...]]
Row = tuple[str, T | GroundworkError]


def detect(record: Json) -> Layout:
    """The layout of a record, by its field names; raise `RecordError` for one that has none of them."""
    for layout, fits in _FITS.items():
        if fits(record):
            return layout
    names = ", ".join(name for name in record if name != "id")[:200]
    raise RecordError(f"The fields match no known layout: {names}. Name them question, passages and answer.")


def read_cases(
    data: bytes, layout: Layout | None = None, sources: bytes | None = None, file: str = ""
) -> Iterator[Row[Imported]]:
    """(record's id, case with its history or error) of every record of a file, whose name answers are stored with.

    `sources` is RAGTruth's source_info.jsonl. Without `layout` each record is looked at.
    """
    whole = json_or_none(data.removeprefix(BOM_UTF8))
    args = whole.get("args") if isinstance(whole, dict) else None  # of an ALCE result file
    model = str(args.get("model", "")) if isinstance(args, dict) else ""
    known = _sources(sources)

    def imported(record: Json) -> Imported:
        match layout or detect(record):
            case "case":
                return _read_case(record)
            case "alce":
                case = alce_case(record, model)
            case "garage":
                case = garage_case(record)
            case "ragtruth":
                case = ragtruth_case(record, known)
            case "records":
                case = imported_case(audit_record(record))
        return from_file(case, file) if file else case, ()

    return _each(_records(data, whole), imported)


def read_records(data: bytes) -> Iterator[Row[AuditRecord]]:
    """(id, record or error) of every object of a file that holds answers of any system."""
    return _each(_records(data, json_or_none(data.removeprefix(BOM_UTF8))), audit_record)


def _each(records: Iterable[Row[Json]], read: Callable[[Json], T]) -> Iterator[Row[T]]:
    for name, record in records:
        try:
            if isinstance(record, GroundworkError):
                raise record
            yield name, read(record)
        except GroundworkError as error:
            yield name, error


def from_file(case: Case, name: str) -> Case:
    """The case with the name of the file that its answer was imported from; without folders."""
    settings = {**case.stamp.settings, "file": PurePath(name).name}
    return msgspec.structs.replace(case, stamp=msgspec.structs.replace(case.stamp, settings=settings))


_START = 1024  # bytes of a file that show whether it is text


def _records(data: bytes, whole: Any) -> Iterable[Row[Json]]:
    data = data.removeprefix(BOM_UTF8)
    if not data.strip() or (b"\0" in data[:_START] and data.lstrip()[:1] not in b"{["):
        what = "not text in UTF-8" if data.strip() else "empty"
        return [("1", RecordError(f"The file is {what}. Give answers as JSON, JSONL, CSV or TSV (docs/review.md)."))]
    if whole is None and isinstance(written := with_nan(data), dict | list):
        items = [_finite(number, item) for number, item in enumerate(rows_of(written), start=1)]
    else:
        items = table_rows(_decoded(data)) if whole is None else rows_of(whole)
    if not items and whole is None:
        return read_jsonl(_lines(data))
    return [_identified(number, item) for number, item in enumerate(items, start=1)]


def _finite(number: int, item: Any) -> Any:
    place = not_finite(item)
    return RecordError(f"Record {number}: {NOT_FINITE.format(place)}") if place else item


def _identified(number: int, item: Any) -> Row[Json]:
    if isinstance(item, dict):
        return identity(item, number), identified(number, item)
    wrong = "This is not a JSON object. Write one object per record."
    return str(number), item if isinstance(item, RecordError) else RecordError(wrong)


def _decoded(data: bytes) -> str:
    """The text of a file; none where it is not UTF-8, which its lines say."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeError:
        return ""


def _lines(data: bytes) -> list[str]:
    """Lines by line feed alone: JSON text may hold the other separators of Unicode."""
    return data.decode("utf-8", "surrogateescape").split("\n")


def _sources(data: bytes | None) -> dict[str, Json]:
    if data is None:
        return {}
    rows = read_jsonl(_lines(data))
    return {str(row["source_id"]): row for _, row in rows if isinstance(row, dict) and "source_id" in row}


def _read_case(record: Json) -> Imported:
    # Reading gives every record an id; the envelope of a case file has none.
    envelope = {name: value for name, value in record.items() if name != "id"}
    file = read_case_file(msgspec.json.encode(envelope if "format" in record else record))
    return file.case, file.history


def _of_alce(record: Json) -> bool:
    """Whether a record with `docs` is ALCE's: others have their answer under another name, or unlabelled documents."""
    docs = record["docs"] if isinstance(record["docs"], list) else ()
    return "output" in record or any(isinstance(doc, dict) and "answers_found" in doc for doc in docs)


# How a layout is told, in the order in which a record is tried.
_FITS: dict[Layout, Callable[[Json], bool]] = {
    "case": lambda record: "format" in record or {"question", "stamp", "answer"} <= record.keys(),
    "alce": lambda record: {"question", "docs"} <= record.keys() and _of_alce(record),
    "garage": lambda record: {"question", "grounding"} <= record.keys(),
    "ragtruth": lambda record: {"response", "source_id"} <= record.keys(),
    "records": holds_record,
}
