"""The places of a case that a mark can be about, with what the machine says there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.types import Analysis, Case, Value


class Place(Value, frozen=True):
    """`target` is how a mark names the place, `label` how people read it, `machine` the verdict stored there."""

    target: str
    label: str
    machine: str = ""


def places(case: Case) -> list[Place]:
    """The case, its answer, its passages, its analyses, and every stored verdict."""
    found = [Place(target="case", label="The case"), Place(target="answer", label="The answer")]
    found += [
        Place(target=f"passage:{number}", label=f"Passage {number}: {passage.title or passage.document}")
        for number, passage in enumerate(case.passages, start=1)
    ]
    found += [Place(target=f"analysis:{a.id}", label=f"Analysis: {a.id}") for a in case.analyses]
    return [*found, *(place for analysis in case.analyses for place in verdicts(analysis))]


def verdicts(analysis: Analysis) -> Iterator[Place]:
    """Every `verdict` in an analysis, labelled by the claim or fact beside it; edits too, by what they change."""
    return _walk(analysis.result, f"analysis:{analysis.id}")


def _walk(value: Any, path: str) -> Iterator[Place]:
    if isinstance(value, dict):
        verdict = value.get("verdict")
        if isinstance(verdict, str):
            named = (str(value[name]) for name in ("text", "fact", "claim") if isinstance(value.get(name), str))
            yield Place(target=path, label=next(named, path), machine=verdict)
        for name, part in value.items():
            yield from _walk(part, f"{path}.{name}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _walk(part, f"{path}[{index}]")
