"""The case file: one JSON with everything of a case, the same bytes whenever it is written.

    {"format": "groundwork-case", "schema": 2, "case": {...}, "history": [...], "hashes": {...}}

Canonical JSON (core/canonical.py) and a line break at the end, so that many of them are a JSONL file. Reading checks
the shape, the hashes, the offsets and the chain of the history, and names the JSON path of what does not fit. The
shape is published as a JSON Schema: `docs/case-file.schema.json`, which `bench.case_file_schema` writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Literal

import msgspec

from engine.cases.review import Mark, check_chain, check_draft
from engine.core.canonical import canonical, content_hash, digest, settled
from engine.core.errors import CaseFileError, InputError, raised_as
from engine.core.values import Case, Json, Value, converted, inputs_hash, sha256

# Schema 1 was the bare case, without envelope, history and hashes. A kept file of each schema is among the tests.

NEWEST = 2


def migrated(data: Json) -> Json:
    """A file of any schema up to this one, as this one; raise `CaseFileError` for a newer or unknown one."""
    if "format" not in data and "question" in data:
        hashes = _hashes(converted(data, Case), ()).to_dict()
        return {"format": "groundwork-case", "schema": NEWEST, "case": data, "history": [], "hashes": hashes}
    if data.get("format") != "groundwork-case":
        raise CaseFileError("This is not a case file: $.format is not groundwork-case. Choose its layout.")
    if (version := data.get("schema")) != NEWEST:
        raise CaseFileError(
            f"The case file has schema {version!r} at $.schema; this version of Groundwork reads 1 to {NEWEST}."
            " Update Groundwork to open it."
        )
    return data


LARGEST = 64 * 2**20  # bytes of one case file


class Hashes(Value, frozen=True):
    """SHA-256 of each part; `content` of the whole case, `history` the head of the review history ("" without one)."""

    question: str
    passages: tuple[str, ...]
    answer: str
    analyses: tuple[str, ...]
    content: str
    history: str


class CaseFile(Value, frozen=True):
    """A case with its review history and the hashes of its parts."""

    format: Literal["groundwork-case"]
    schema: Literal[2]
    case: Case
    history: tuple[Mark, ...]
    hashes: Hashes


def write_case_file(case: Case, history: Sequence[Mark] = ()) -> bytes:
    """The bytes of a case's file; equal cases with equal histories give equal bytes."""
    case = settled(case)
    hashes = _hashes(case, history)
    file = CaseFile(format="groundwork-case", schema=2, case=case, history=tuple(history), hashes=hashes)
    return canonical(file) + b"\n"


def read_case_file(data: bytes | str) -> CaseFile:
    """Check and read a case file of this or an older schema; raise `CaseFileError` with the path of what is wrong."""
    raw = _decoded(data)
    try:
        file = converted(migrated(raw), CaseFile)
    except msgspec.ValidationError as error:
        said = str(error) if "`$" in str(error) else f"{error} - at `$`"
        raise CaseFileError(f"The case file is not valid: {said}. Nothing was imported.") from error
    problems = (_hash_problems(file), _offset_problems(file.case), _stamp_problems(file.case), _history_problems(file))
    for path, problem in chain(*problems):
        raise CaseFileError(f"The case file is inconsistent at {path}: {problem}. Nothing was imported.")
    return file


def _decoded(data: bytes | str) -> Json:
    if len(data) > LARGEST:
        raise CaseFileError(f"The file has {len(data) / 2**20:,.0f} MB; the limit is {LARGEST >> 20} MB.")
    wrong, way_out = "This is not a case file: it is not", "Export the case again."
    with raised_as(CaseFileError, f"{wrong} JSON", way_out, msgspec.DecodeError, UnicodeError, RecursionError):
        raw = msgspec.json.decode(data)
    if not isinstance(raw, dict):
        raise CaseFileError(f"{wrong} a JSON object. {way_out}")
    return raw


def _hashes(case: Case, history: Sequence[Mark]) -> Hashes:
    return Hashes(
        question=sha256(case.question),
        passages=tuple(sha256(passage.text) for passage in case.passages),
        answer=sha256(case.answer.text),
        analyses=tuple(digest(analysis) for analysis in case.analyses),
        content=content_hash(case),
        history=history[-1].hash if history else "",
    )


def _hash_problems(file: CaseFile) -> Iterator[tuple[str, str]]:
    expected, given = _hashes(file.case, file.history), file.hashes
    pairs: list[tuple[str, str, str, str]] = []
    for name, path in (("passages", "$.case.passages[{}].text"), ("analyses", "$.case.analyses[{}]")):
        values, stored = getattr(expected, name), getattr(given, name)
        if len(values) != len(stored):
            yield f"$.hashes.{name}", f"it has {len(stored)} hashes for {len(values)} {name}"
        both = enumerate(zip(values, stored, strict=False))
        pairs += [(path.format(index), f"{name}[{index}]", *pair) for index, pair in both]
    parts = {"question": "case.question", "answer": "case.answer.text", "history": "history", "content": "case"}
    pairs += [(f"$.{path}", name, getattr(expected, name), getattr(given, name)) for name, path in parts.items()]
    for path, name, value, hashed in pairs:
        if value != hashed:
            yield path, f"its hash is {value[:16]}..., $.hashes.{name} says {hashed[:16]}..."


def _offset_problems(case: Case) -> Iterator[tuple[str, str]]:
    """Spans that point outside of the text that they are about."""
    answer, length = case.answer, len(case.answer.text)
    lengths = [len(passage.text) for passage in case.passages]
    spans = [
        *((f"answer.tokens[{i}]", t.start, t.end, length) for i, t in enumerate(answer.tokens)),
        *((f"answer.sentences[{i}]", s, e, length) for i, (s, e) in enumerate(answer.sentences)),
        *((f"answer.citations[{i}]", c.start, c.end, length) for i, c in enumerate(answer.citations)),
        *(
            (f"answer.quotes[{i}]", s, e, lengths[number - 1] if 1 <= number <= len(lengths) else -1)
            for i, (_, number, s, e) in enumerate(answer.quotes)
        ),
    ]
    for path, start, end, limit in spans:
        if not 0 <= start <= end <= limit:
            yield f"$.case.{path}", f"the span {start} to {end} is not within its text"
    for index, citation in enumerate(answer.citations):
        if citation.valid and not 1 <= citation.number <= len(lengths):
            yield f"$.case.answer.citations[{index}]", f"there is no passage {citation.number}"
    for index, (passage, size) in enumerate(zip(case.passages, lengths, strict=True)):
        if passage.end - passage.start != size:
            yield f"$.case.passages[{index}]", "its text and its span differ in length"


def _stamp_problems(case: Case) -> Iterator[tuple[str, str]]:
    """Stamps that belong to another question, passages or answer (docs/methods/common-ground.md)."""
    asked = inputs_hash(case.question, case.passages)
    answered = inputs_hash(case.question, case.passages, case.answer.text)
    alone = inputs_hash(case.question, ())  # a run that finds passages of its own
    stamps = {"$.case.stamp.inputs": case.stamp.inputs}
    stamps |= {f"$.case.analyses[{i}].stamp.inputs": a.stamp.inputs for i, a in enumerate(case.analyses)}
    for path, value in stamps.items():
        if value not in ("", asked, answered, alone):
            yield path, "it is the hash of a different question, answer or passages"


def _history_problems(file: CaseFile) -> Iterator[tuple[str, str]]:
    chain = check_chain(file.history, file.case.id)
    if chain.problem:
        yield chain.path, chain.problem.removesuffix(".")
    for index, mark in enumerate(file.history):
        try:
            check_draft(mark, len(file.case.passages), file.history[:index])
        except InputError as error:
            yield f"$.history[{index}]", str(error).removesuffix(".")
    last = file.history[-1] if file.history else None
    if last and last.kind == "status" and last.value == "signed off" and last.content != content_hash(file.case):
        yield f"$.history[{len(file.history) - 1}].content", "the case differs from the one that was signed off"
