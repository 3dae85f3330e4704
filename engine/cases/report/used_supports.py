"""Used x supports: for each sentence and passage what the model used beside what the passage bears out."""

from __future__ import annotations

from engine.cases.report.blocks import (
    Block,
    Cell,
    Facts,
    Notice,
    Table,
)
from engine.cases.report.text import name_of, signed
from engine.core.values import Analysis, Case
from engine.methods.used_supports import UsedSupports


def used_supports_section(case: Case, analysis: Analysis) -> list[Block]:
    """A table a span of the answer: a row a source with score, probability and the word for both."""
    found = UsedSupports.from_dict(analysis.result)
    facts = Facts((("Use scored by", found.scorer), ("Support judged by", found.verifier)))
    notes = [Notice(note) for note in found.notes if not note.startswith("Written by ")]
    return [facts, *notes, *(_table(case, found, span) for span in range(len(found.spans)))]


def _table(case: Case, found: UsedSupports, span: int) -> Table:
    start, end = found.spans[span]
    rows = tuple(
        (
            Cell("; ".join(name_of(case, n) for n in numbers), link=f"passage-{numbers[0]}"),
            Cell(signed(cell.used)),
            Cell(f"{cell.supports:.2f}"),
            Cell(cell.quadrant),
        )
        for numbers, cell in zip(found.sources, found.cells[span], strict=True)
    )
    said = " ".join(case.answer.text[start:end].split())
    caption = f"{said} (used means over {found.floor[span]:.3g} nats, the {found.floor_kind} floor)"
    return Table(caption, ("Passage", "Used, nats", "Supports, p", "Together"), rows, numeric=frozenset({1, 2}))
