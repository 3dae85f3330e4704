"""Attr-RAG's second stage: what each chunk set changed, what was chosen and why."""

from __future__ import annotations

from engine.cases.report.attribution import attribution_blocks
from engine.cases.report.blocks import (
    Block,
    Cell,
    Facts,
    Fold,
    Notice,
    Section,
    Table,
    Text,
)
from engine.cases.report.text import answer_runs, short
from engine.core.values import Analysis, Case, ChunkSet
from engine.methods.attr_rag import AttrRag


def attr_rag_section(case: Case, analysis: Analysis) -> list[Block]:
    """Alpha of each set in each metric beside its floor, votes, choice, and the answers before and after."""
    found = AttrRag.from_dict(analysis.result)
    chosen = len(found.selection.chosen)
    facts = (
        (
            "Sets kept",
            f"{chosen} of {len(found.sets)}{', cut off at the largest share' if found.selection.capped else ''}",
        ),
        ("Passages", f"{len(found.kept)} kept, {len(found.filled)} filled in between them"),
        ("Answers written", str(found.regeneration.written)),
    )
    notes = dict.fromkeys((*found.notes, *found.selection.notes, *found.regeneration.notes))
    return [
        Facts(facts),
        *(Notice(note) for note in notes),
        _table(found),
        *([_why(found)] if found.selection.reasons else []),
        Fold(
            "The answer from all sets, before the selection",
            (Text(answer_runs(found.regeneration.full, found.context), "answer"),),
        ),
        *(
            [Section("Teacher-forced drop of each set", tuple(attribution_blocks(case, found.drops)), level=4)]
            if found.drops
            else []
        ),
    ]


def _table(found: AttrRag) -> Table:
    alphas, floors = found.regeneration.alphas, found.regeneration.floors
    rows = []
    for j, chunk_set in enumerate(found.sets):
        why = ", ".join(found.selection.chosen_by[j]) if j < len(found.selection.chosen_by) else ""
        state = (
            "chosen first"
            if j == found.selection.primary
            else "chosen"
            if j in found.selection.chosen
            else "not chosen"
        )
        row = [Cell(f"{j + 1} {_name(chunk_set)}"), Cell(state, note=f"by {why}" if why else "")]
        row.append(Cell(str(found.selection.votes[j]) if j < len(found.selection.votes) else ""))
        for metric, values in alphas.items():
            under = j < len(values) and values[j] <= floors.get(metric, 0.0)
            row.append(
                Cell(short(values[j]) if j < len(values) else "", note="under its floor" if under else "", faint=under)
            )
        rows.append(tuple(row))
    rows.append((Cell("Floor"), Cell(""), Cell(""), *(Cell(short(floors.get(metric))) for metric in alphas)))
    return Table(
        "Change of the answer without each set: alpha = 1 - similarity. The metrics are correlated.",
        ("Chunk set", "Selection", "Votes", *alphas),
        tuple(rows),
        numeric=frozenset(range(2, len(alphas) + 3)),
    )


def _why(found: AttrRag) -> Table:
    selection = found.selection
    rules = (selection.without_floor, selection.by_paper)
    rows = (
        (Cell(f"{j + 1} {_name(found.sets[j])}"), Cell(why), *(Cell("kept" if j in r else "dropped") for r in rules))
        for j, why in enumerate(selection.reasons)
    )
    return Table(
        "Why each set was kept or dropped. The paper's rule alone has no floor and no cap, and reads the expansion"
        " literally.",
        ("Chunk set", "With the floor", "Without the floor", "The paper's rule alone"),
        tuple(rows),
    )


def _name(chunk_set: ChunkSet) -> str:
    if not chunk_set.passages:
        return "(empty)"
    first, ordinals = chunk_set.passages[0], [str(p.ordinal + 1) for p in chunk_set.passages]
    return f"{first.label}, {'passage' if len(ordinals) == 1 else 'passages'} {', '.join(ordinals)}"
