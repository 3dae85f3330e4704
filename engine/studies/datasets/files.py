"""The records of a data set's file with their places: JSONL, JSON, CSV, TSV or Parquet; a sample by relevance."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import msgspec

from engine.core.errors import FileError, GroundworkError, RecordError, raised_as
from engine.core.values import AuditRecord, GivenPassage, Json, Passage, identity, numbered_jsonl
from engine.corpus.formats.records import LONGEST_CELL
from engine.studies.example import Example

Record = Json


@dataclass(frozen=True)
class DataSource:
    """A file or folder of a data set; `seed` shuffles what the layout wants shuffled."""

    path: Path
    seed: int = 1337

    def each(self, convert: Callable[[Record], Example], path: Path | None = None) -> Iterator[Example]:
        """The example of every record, with an `id` (`identity`); raise `RecordError` with the place of a bad one."""
        for place, number, record in records(path or self.path):
            try:
                yield convert({**record, "id": identity(record, number)})
            except GroundworkError as error:
                raise RecordError(f"{place}: {error}") from error
            except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                raise RecordError(
                    f"{place}: A field does not match this layout ({error}). Correct it, or choose the layout."
                ) from error


@dataclass(frozen=True)
class Layout:
    """A public layout: how its first record is recognised, and how a file of it is read."""

    recognises: Callable[[Record], bool]
    read: Callable[[DataSource], Iterator[Example]]

    @classmethod
    def of(cls, recognises: Callable[[Record], bool]) -> Callable[[Callable[[Record], Example]], Layout]:
        """Makes a function from a record to its example a layout."""
        return lambda example: cls(recognises, lambda source: source.each(example))


def has(*names: str) -> Callable[[Record], bool]:
    """Recognises a record that has all these fields."""
    return lambda record: set(names) <= record.keys()


def records(path: Path) -> Iterator[tuple[str, int, Record]]:
    """(place, number from 1, record) of a file, by its ending; raise `RecordError`, `FileError` saying where."""
    ending = path.suffix.casefold()
    read = {".parquet": _parquet, ".csv": _table, ".tsv": _table, ".json": _list}.get(ending)
    if read is None:
        yield from _lines(path)
        return
    what = "record" if read is _list else "row"
    for number, row in enumerate(read(path), start=1):
        if not isinstance(row, dict):
            raise RecordError(f"{path.name}, {what} {number}: This is not a JSON object. Write one object per record.")
        yield f"{path.name}, {what} {number}", number, row


def _lines(path: Path) -> Iterator[tuple[str, int, Record]]:
    with (
        _readable(path, "UTF-8 text", "Write one JSON object per line.", UnicodeDecodeError),
        path.open(encoding="utf-8", newline="\n") as lines,
    ):
        for number, data in numbered_jsonl(lines):
            if isinstance(data, RecordError):
                raise RecordError(f"{path.name}: {data}")
            yield f"{path.name}, line {number}", number, data


def _readable(path: Path, kind: str, way_out: str, *failures: type[Exception]) -> AbstractContextManager[None]:
    return raised_as(FileError, f"{path} cannot be read as {kind}", way_out, OSError, *failures)


def _list(path: Path) -> list[Any]:
    """A JSON file's list; the list under `data` where the file is an object with one."""
    with _readable(path, "JSON", "Give a JSONL file the extension .jsonl.", msgspec.DecodeError):
        whole = msgspec.json.decode(path.read_bytes())
    listed = whole.get("data") if isinstance(whole, dict) else whole
    return listed if isinstance(listed, list) else [whole]


def _table(path: Path) -> Iterator[Record]:
    """The rows by the names of the first line; a table without a question there has numbered columns."""
    csv.field_size_limit(LONGEST_CELL)
    with (
        _readable(path, "a table", "Save it as UTF-8 CSV.", UnicodeDecodeError, csv.Error),
        path.open(encoding="utf-8-sig", newline="") as file,
    ):
        rows = csv.reader(file, delimiter="\t" if path.suffix.casefold() == ".tsv" else ",")
        first = next(rows, [])
        names = [name.strip() for name in first]
        if not {name.casefold() for name in names} & {"question", "query-id"}:
            names = [str(number) for number in range(len(first))]
            yield dict(zip(names, first, strict=True))
        for row in rows:
            yield dict(zip(names, row, strict=False))


def _parquet(path: Path) -> list[Any]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import read_table
    except ImportError as error:
        raise FileError("Parquet files need pyarrow. Install it, or save the set as JSONL.") from error
    with _readable(path, "Parquet", "Save the set as JSONL.", ArrowException):
        return list(read_table(path).to_pylist())


def text(record: Record, *names: str) -> str:
    """The first of these fields that is a text with something in it; raise `RecordError` where none is."""
    for name in names:
        value = record.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
    raise RecordError(f"The record has no text in {' or '.join(map(repr, names))}.")


def words(record: Record, name: str) -> tuple[str, ...]:
    """A field that is a text or a list of texts, without empty ones; () where it is not there."""
    value = record.get(name)
    listed = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(item.strip() for item in listed if isinstance(item, str) and item.strip())


def choices(
    record: Record, name: str, answer: Any, *, lettered: bool = False, filler: str = ""
) -> tuple[tuple[str, ...], int]:
    """The options of a field without those that say nothing (empty ones, the `filler`), and the right one's index.

    `answer` counts the list as it is written, empty places too (`index_of`); raise `RecordError` where it names one.

    >>> choices({"options": ["x", "", "y"]}, "options", "C", lettered=True)
    (('x', 'y'), 1)
    """
    value = record.get(name)
    listed = [item.strip() if isinstance(item, str) else "" for item in value] if isinstance(value, list) else []
    kept = [place for place, option in enumerate(listed) if option and option.casefold() != filler.casefold()]
    right = index_of(answer, listed, lettered=lettered)
    if right not in kept:
        raise RecordError(f"The right answer {answer!r} names an empty option ({listed[right]!r}).")
    return tuple(listed[place] for place in kept), kept.index(right)


def index_of(answer: Any, options: Sequence[str], *, lettered: bool = False) -> int:
    """The option that a letter, a number from 0 or the option's own text names; raise `RecordError` for none of them.

    An option may itself be a letter (blood groups, grades): its text comes before the letter that it stands under,
    except in a `lettered` set, which always answers by letter.

    >>> index_of("B", ("x", "y")), index_of(0, ("x", "y")), index_of("y", ("x", "y"))
    (1, 0, 1)
    >>> index_of("A", ("O", "A")), index_of("A", ("O", "A"), lettered=True)
    (1, 0)
    """
    if isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < len(options):
        return answer
    if isinstance(answer, str):
        said = answer.strip()
        is_letter = len(said) == 1 and said.upper() in ascii_uppercase[: len(options)]
        if said in options and not (lettered and is_letter):
            return options.index(said)
        if is_letter:
            return ascii_uppercase.index(said.upper())
    raise RecordError(f"The right answer {answer!r} is not one of the {len(options)} options.")


def given(question: str, passages: Iterable[tuple[str, str, bool | None]]) -> tuple[Passage, ...]:
    """(text, title, relevant) as passages in order, each a document of its own; empty ones are left out."""
    kept = tuple(GivenPassage(text=t, title=title, relevant=r) for t, title, r in passages if t.strip())
    return AuditRecord(question=question, passages=kept).as_passages()


def relevant_ids(passages: Iterable[Passage]) -> tuple[str, ...]:
    """Ids of those labelled relevant."""
    return tuple(passage.id for passage in passages if passage.relevant)


# Mixed relevance (grounded refinement, section 3.3): the paper names the strata low, medium and high without bounds;
# ours are thirds of the share. Interleaved, so any beginning of the list is balanced.

STRATA = ("low", "medium", "high")


def stratum(example: Example) -> str | None:
    """The third of the share relevant among labelled passages, None for a question that is not of mixed relevance."""
    labels = [passage.relevant for passage in example.passages if passage.relevant is not None]
    share = sum(labels) / len(labels) if labels else 0
    return None if share in (0, 1) else STRATA[min(int(share * 3), 2)]


def fewer(example: Example, count: int) -> Example:
    """The example with `count` of its passages, in their order: those labelled relevant before the others.

    The first ones (ALCE's papers read five of its hundred) where it brings an answer, whose citations count them.
    """
    given = example.passages
    wanted = sorted(range(len(given)), key=lambda i: not (given[i].relevant or example.answer))
    return msgspec.structs.replace(example, passages=tuple(given[i] for i in sorted(wanted[:count])))


def stratified(examples: Sequence[Example], each: int, seed: int) -> Iterator[Example]:
    """At most `each` of every stratum, drawn by the seed: low, medium, high, low, ..."""
    draw = random.Random(seed)
    inside = ([example for example in examples if stratum(example) == name] for name in STRATA)
    rows = [draw.sample(found, min(each, len(found))) for found in inside]
    return (example for group in zip_longest(*rows) for example in group if example is not None)
