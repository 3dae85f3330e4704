"""Faithfulness: the curves of each ranking as figures, beside random rankings."""

from __future__ import annotations

from engine.analyses.attribution import FaithfulnessReport
from engine.cases.report.blocks import (
    Block,
    Facts,
    Fold,
    Notice,
    Table,
    cells,
)
from engine.core.values import Analysis, Case


def faithfulness_section(case: Case, analysis: Analysis) -> list[Block]:
    """ABPC of every ranking, the curves behind it, and how far the methods agree."""
    found = FaithfulnessReport.from_dict(analysis.result)
    random = found.random
    rankings = (*found.curves, found.passages)
    rows = [cells(c.ranking, f"{c.abpc:+z.3f}", f"{c.abpc_nats:+z.3f}") for c in rankings]
    rows.append(cells(f"random, mean of {random.n}", f"{random.mean:+z.3f}", ""))
    rows.append(cells("random, smallest and largest", f"{random.low:+z.3f} to {random.high:+z.3f}", ""))
    cost = f"{found.forwards:,} forwards, {found.seconds:.1f} s"
    columns = ("Ranking", "ABPC, probability", "ABPC, nats")
    table = Table("Area between the perturbation curves", columns, tuple(rows), numeric=frozenset({1, 2}))
    pairs = tuple((name, "not defined" if v is None else f"{v:.3f}") for name, v in found.diagnostics.items())
    curves = tuple(
        Table(
            f"{c.ranking}: mean probability of the explained tokens while sources are removed",
            ("Share removed", "MoRF", "LeRF"),
            tuple(
                cells(f"{s:.2f}", f"{m:.3f}", f"{least:.3f}")
                for s, m, least in zip(c.shares, c.morf, c.lerf, strict=True)
            ),
            numeric=frozenset({0, 1, 2}),
        )
        for c in rankings
    )
    return [
        Facts((("Scored by", found.model), ("Cost", cost), *pairs)),
        *(Notice(note) for note in found.notes if not note.startswith("Written by ")),
        table,
        Fold("The curves", curves),
    ]
