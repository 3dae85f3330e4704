"""BEIR (Thakur et al. 2021): a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv (or qrels.tsv).

A question has the ids of the documents that answer it as gold; questions without any are of another split and left
out. The corpus itself is ingested like any JSONL file (`ingest corpus.jsonl`), under the name given as `corpus`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from engine.errors import FileError, RecordError
from engine.evaluate.datasets.files import Layout, Record, Source, records, text
from engine.evaluate.example import Example

QUERIES = "queries.jsonl"
JUDGEMENTS = ("qrels/test.tsv", "qrels.tsv", "qrels/dev.tsv", "qrels/train.tsv")


def is_folder(path: Path) -> bool:
    """Whether the folder has this layout."""
    return (path / QUERIES).exists() and any((path / name).exists() for name in JUDGEMENTS)


def read(source: Source) -> Iterator[Example]:
    """The judged questions, in file order."""
    folder = source.path if source.path.is_dir() else source.path.parent
    if not is_folder(folder):
        raise FileError(f"{folder} is no BEIR folder. It needs {QUERIES} and one of {', '.join(JUDGEMENTS)}.")
    gold = judgements(next(folder / name for name in JUDGEMENTS if (folder / name).exists()))
    for example in source.each(lambda record: _example(record, gold, folder.name), folder / QUERIES):
        if example.gold:
            yield example


def judgements(path: Path) -> dict[str, list[str]]:
    """Ids of the documents judged relevant (a score over 0) by query."""
    found: dict[str, list[str]] = defaultdict(list)
    for place, _, row in records(path):
        query, document, score = (row.get(name) for name in ("query-id", "corpus-id", "score"))
        wrong = RecordError(f"{place}: a judgement has query-id, corpus-id and score, apart by tabs.")
        if query is None or document is None or score is None:
            raise wrong
        try:
            relevant = float(score) > 0
        except ValueError as error:
            raise wrong from error
        if relevant:
            found[query].append(document)
    return found


def _example(record: Record, gold: dict[str, list[str]], name: str) -> Example:
    key = record["id"]
    return Example(id=key, question=text(record, "text"), source=name, gold=tuple(gold.get(key, ())))


LAYOUT = Layout("BEIR", lambda record: {"_id", "text"} <= record.keys(), read)
