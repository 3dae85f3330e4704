"""Mintaka (Sen et al. 2022): its JSON list, or flat records with `answerText`; English."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.evaluate.datasets.files import Layout, Record, Source, text
from engine.evaluate.example import Example


def example(record: Record) -> Example:
    """The example of one question; every entity of the answer is to be named."""
    answer = record.get("answer") or {}
    said = str((answer.get("mention") if isinstance(answer, dict) else None) or record.get("answerText") or "")
    things = tuple(_spellings(thing) for thing in (answer.get("answer") if isinstance(answer, dict) else None) or ())
    return Example(
        id=record["id"],
        question=text(record, "question"),
        source="Mintaka",
        references=(said,) if said else (),
        short_answers=tuple(spellings for spellings in things if spellings) or (((said,),) if said else ()),
        domain=str(record.get("category") or ""),
        about={"complexity": record["complexityType"]} if record.get("complexityType") else {},
    )


def _spellings(thing: Any) -> tuple[str, ...]:
    """How a thing may be written: an entity's English label, a number or a date as it stands, yes and no."""
    if isinstance(thing, dict):
        label = (thing.get("label") or {}).get("en")
        return (str(label),) if label else ()
    if isinstance(thing, bool):
        return ("yes",) if thing else ("no",)
    return (str(thing),) if thing not in (None, "") else ()


def _recognises(record: Record) -> bool:
    return "question" in record and "complexityType" in record


def read(source: Source) -> Iterator[Example]:
    """The examples of its file."""
    return source.each(example)


LAYOUT = Layout("Mintaka", _recognises, read)
