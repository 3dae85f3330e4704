"""The quoting reader: its answer, and every sentence that it considered, from the same passages."""

from __future__ import annotations

from typing import Any

from engine.answer.quoting_reader import QuotingReader
from engine.cases.replay.floors import embedding_floor
from engine.cases.replay.outcome import (
    Kind,
    Outcome,
    Tools,
    less,
    plain,
)
from engine.core.settings import Reader
from engine.core.values import Analysis, Case, Stamp
from engine.models.protocols import Embedder

READER = QuotingReader.name


def stored_answer(case: Case) -> Any:
    """The answer of the quoting reader: its text and what it quoted."""
    return plain({"text": case.answer.text, "quotes": case.answer.quotes})


def answer_again(case: Case, tools: Tools) -> Outcome:
    """The quoting reader again, on the same passages."""
    answer = _reader(case.stamp, tools)[0].read(case.question, case.passages)
    return Outcome(values=plain({"text": answer.text, "quotes": answer.quotes}))


def reading_again(case: Case, analysis: Analysis, tools: Tools) -> Outcome:
    """Every candidate sentence of the quoting reader with the parts of its score."""
    reader, embedder = _reader(analysis.stamp, tools)
    reading = reader.reading(case.question, case.passages)
    texts = [case.passages[c.number - 1].text[c.start : c.end] for c in reading.candidates]
    return Outcome(values=less(reading.to_dict()), floor=embedding_floor(embedder, case.question, texts))


def _reader(stamp: Stamp, tools: Tools) -> tuple[QuotingReader, Embedder]:
    embedder = tools.embedder(stamp.revision)
    return QuotingReader(embedder, Reader.from_dict(stamp.settings.get("reader", {}))), embedder


KIND = Kind(reading_again)
