"""Data sets as `Example`s, one file a layout: the user brings the files, the sample worlds come with the engine.

    load("science-primer", limit=20)
    load("my_questions.jsonl", corpus="my-corpus")
    load("GaRAGe.jsonl", per_stratum=100)

`LAYOUTS` names them; without `layout` the first record is looked at.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from engine.core.errors import FileError, InputError, RecordError
from engine.studies.datasets import choices, long_answers, open_questions, own
from engine.studies.datasets.files import DataSource, Layout, fewer, records, stratified
from engine.studies.example import Example

LAYOUTS: Mapping[str, Layout] = {
    "alce": long_answers.alce,
    "garage": long_answers.garage,
    "ragtruth": long_answers.RAGTRUTH,
    "hotpotqa": open_questions.hotpotqa,
    "gpqa": choices.GPQA,
    "supergpqa": choices.supergpqa,
    "mmlu-pro": choices.mmlu_pro,
    "mmlu": choices.MMLU,
    "strategyqa": open_questions.strategyqa,
    "mintaka": open_questions.mintaka,
    "expertqa": long_answers.expertqa,
    "nq": open_questions.nq,
    "own": own.lines,
    "beir": open_questions.BEIR,
}
"""In the order in which a record is tried: a layout with fewer fields of its own comes later."""

WORLDS = tuple(own.NAMES)


def load(
    name_or_path: str | Path,
    layout: str | None = None,
    limit: int | None = None,
    seed: int = 1337,
    *,
    corpus: str = "",
    per_stratum: int = 0,
    passages: int = 0,
) -> Iterator[Example]:
    """The examples of a sample world or of a file, in file order.

    `limit` keeps that many, drawn by `seed` (which also shuffles GPQA's options). `corpus` names the collection that is
    searched, where the set has none of its own. `per_stratum` keeps questions of mixed relevance only, that many of
    each third of the share that is relevant, interleaved. `passages`: so many of each question's (`fewer`). Raises
    `FileError`, `RecordError` with file and line.
    """
    examples = _read(name_or_path, layout, seed)
    if passages:
        examples = (fewer(e, passages) for e in examples)
    if corpus:
        examples = (replace(e, corpus=e.corpus or corpus) for e in examples)
    examples = _unique(examples)
    if per_stratum:
        examples = stratified(list(examples), per_stratum, seed)
    if limit is not None and limit < 0:
        raise InputError(f"limit = {limit} is negative. Give the number of examples to keep.")
    if limit is not None:
        every = list(examples)
        places = sorted(random.Random(seed).sample(range(len(every)), min(limit, len(every))))
        examples = (every[place] for place in places)
    yield from examples


def detect(path: Path) -> str:
    """The layout of a file or folder, by its first record; raise `RecordError` with the names where none fits."""
    if path.is_dir():
        if open_questions.is_folder(path):
            return "beir"
        if (path / long_answers.RESPONSES).exists():
            return "ragtruth"
        if any(path.glob("*.csv")):
            return "mmlu"
        raise FileError(f"The folder {path} is not a BEIR, RAGTruth or MMLU folder. Give a file.")
    first = next((record for _, _, record in records(path)), None)
    if first is None:
        raise FileError(f"{path.name} has no records.")
    for name, layout in LAYOUTS.items():
        if layout.recognises(first):
            return name
    strange = ", ".join(sorted(set(first) - own.FIELDS)[:5])
    wrong = f"unknown {strange}" if strange else "without question"
    raise RecordError(
        f"{path.name}: the first record's fields match no known layout (own layout: {wrong})."
        f" Correct it, or choose a layout: {', '.join(LAYOUTS)}."
    )


def _read(name_or_path: str | Path, layout: str | None, seed: int) -> Iterator[Example]:
    world = own.NAMES.get(str(name_or_path))
    if world is not None:
        return world()
    path = Path(name_or_path).expanduser()
    if not path.exists():
        raise FileError(f"There is no data set {name_or_path}. Give a file, or one of: {', '.join(WORLDS)}.")
    chosen = layout or detect(path)
    if chosen not in LAYOUTS:
        raise RecordError(f"There is no layout {chosen!r}. Choose one of: {', '.join(LAYOUTS)}.")
    return LAYOUTS[chosen].read(DataSource(path, seed))


def _unique(examples: Iterable[Example]) -> Iterator[Example]:
    """The same examples; raise `RecordError` for a repeated id, because results are stored by it."""
    seen: set[str] = set()
    for example in examples:
        if example.id in seen:
            raise RecordError(f"The id {example.id!r} occurs twice. Give every record a unique id.")
        seen.add(example.id)
        yield example
