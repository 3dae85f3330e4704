"""Edits of a checked answer as tracked changes, each with what was decided about it."""

from __future__ import annotations

from collections.abc import Iterable

from engine.cases.report.blocks import (
    Block,
    Cell,
    Run,
    Table,
    Text,
    plain,
)
from engine.cases.report.review import decided_by
from engine.cases.review import Review
from engine.methods.are.export import Decision
from engine.methods.are.values import AreRecord, Placed


def tracked_changes(record: AreRecord, decided: dict[str, Decision], review: Review) -> list[Block]:
    """The answer with its edits drawn in, and a table of them with what was decided."""
    said = (
        "Struck through: taken out. Underlined: put in. An edit is a proposal until a reviewer accepts it; a rejected"
        " one leaves the words as they are."
    )
    text = Text(tracked_runs(record.answer, record.edits, decided), "answer")
    if not record.edits:
        return [text, plain("No edit was found.")]
    return [plain(said, "note"), text, _edits(record, decided, review)]


def tracked_runs(answer: str, edits: Iterable[Placed], decided: dict[str, Decision]) -> tuple[Run, ...]:
    """The answer with the edits that have a certain place or were accepted, struck through and underlined."""
    runs, position = [], 0
    shown = (e for e in edits if e.status == "placed" or decided.get(e.id) == "accepted")
    for edit in sorted(shown, key=lambda e: (e.start, e.end)):
        if edit.start < position:
            continue
        runs.append(Run(answer[position : edit.start]))
        if decided.get(edit.id) == "rejected":
            runs.append(Run(answer[edit.start : edit.end]))
        else:
            runs += [Run(answer[edit.start : edit.end], "old"), Run(edit.new, "new")]
        runs.append(Run(f" (edit {edit.id}, {decided.get(edit.id, 'not decided')})", "strong"))
        position = edit.end
    return tuple(run for run in (*runs, Run(answer[position:])) if run.text)


def _edits(record: AreRecord, decided: dict[str, Decision], review: Review) -> Table:
    rows = []
    for edit in record.edits:
        mark = review.overrides.get(f"edit:{edit.id}") if edit.id in decided else None
        state = "a suggestion, not put in" if edit.status == "suggestion" else decided.get(edit.id, "not decided")
        fact = record.facts[edit.fact].fact.text if edit.fact < len(record.facts) else ""
        after = edit.ruling.note if edit.ruling else "not checked"
        rows.append(
            (
                Cell(edit.id),
                Cell(edit.old or "(nothing)"),
                Cell(edit.new or "(nothing)"),
                Cell(fact),
                Cell(edit.why, note=f"after it: {after}"),
                Cell(state, note=decided_by(mark)),
            )
        )
    columns = ("Edit", "Instead of", "Put in", "Fact", "Why", "Decision")
    return Table("Edits, and what was decided", columns, tuple(rows))
