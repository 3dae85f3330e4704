"""HotpotQA (Yang et al. 2018), distractor setting: a JSON list, or records with `context` as columns.

A paragraph with a supporting fact is relevant; the supporting sentences are the gold spans.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.errors import RecordError
from engine.evaluate.datasets.files import Layout, Record, Source, given, relevant_ids, text
from engine.evaluate.example import Example
from engine.world_labels import GoldSpan

Paragraph = tuple[str, tuple[str, ...]]


def example(record: Record) -> Example:
    """The example of one question."""
    question, answer = text(record, "question"), text(record, "answer")
    paragraphs, supporting = _paragraphs(record), _supporting(record)
    titles = {title for title, _ in supporting}
    passages = given(question, [("".join(s), title, title in titles if titles else None) for title, s in paragraphs])
    kept = [paragraph for paragraph in paragraphs if "".join(paragraph[1]).strip()]
    spans = [
        span
        for passage, (title, sentences) in zip(passages, kept, strict=True)
        for span in _spans(passage.document, title, sentences, supporting)
    ]
    return Example(
        id=record["id"],
        question=question,
        source="HotpotQA",
        passages=passages,
        references=(answer,),
        short_answers=((answer,),),
        gold=relevant_ids(passages),
        gold_spans=tuple(spans),
        domain=str(record.get("type") or ""),
        about={"level": record["level"]} if record.get("level") else {},
    )


def _paragraphs(record: Record) -> list[Paragraph]:
    """(title, sentences) of `context`: pairs, columns, or objects under `passages`."""
    context = record.get("context", record.get("passages"))
    if isinstance(context, dict):
        context = list(zip(context.get("title", ()), context.get("sentences", ()), strict=True))
    if not isinstance(context, list):
        raise RecordError("This has no paragraphs in 'context'. Give HotpotQA's distractor file.")
    return [_paragraph(item) for item in context]


def _paragraph(item: Any) -> Paragraph:
    pair = (item.get("title"), item.get("sentences")) if isinstance(item, dict) else tuple(item)
    if len(pair) != 2 or not isinstance(pair[0], str) or not isinstance(pair[1], (list, tuple)):
        raise RecordError("A paragraph of 'context' is no pair of a title and its sentences.")
    return pair[0], tuple(map(str, pair[1]))


def _supporting(record: Record) -> set[tuple[str, int]]:
    """(title, number of the sentence from 0)."""
    facts = record.get("supporting_facts") or []
    if isinstance(facts, dict):
        facts = list(zip(facts.get("title", ()), facts.get("sent_id", ()), strict=True))
    return {(str(title), int(number)) for title, number in facts}


def _spans(document: str, title: str, sentences: tuple[str, ...], supporting: set[tuple[str, int]]) -> list[GoldSpan]:
    spans, at = [], 0
    for number, sentence in enumerate(sentences):
        if (title, number) in supporting and sentence:
            spans.append(GoldSpan(document, at, at + len(sentence)))
        at += len(sentence)
    return spans


def read(source: Source) -> Iterator[Example]:
    """The examples of its file."""
    return source.each(example)


LAYOUT = Layout("HotpotQA", lambda record: "supporting_facts" in record and "question" in record, read)
