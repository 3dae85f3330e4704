"""Contribution of each part of ARE (ARE, Tables 2 and 6): without edit, atomic facts, molecular clauses,
re-retrieval."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from msgspec.structs import replace

from engine.core.progress import Watch
from engine.studies.catalogue.are import COLUMNS, STUDY as WHOLE, against_are, cells, checked
from engine.studies.config import Config
from engine.studies.example import Example
from engine.studies.summary import by_method, table
from engine.studies.tools import StudyTools
from engine.studies.values import Found, Results, Row, Unit

WITHOUT = {"edit": "w/o edit", "atomic": "w/o atomic", "molecular": "w/o molecular", "re_retrieval": "w/o re-retrieval"}
LABELS = {**{f"without-{part.replace('_', '-')}": label for part, label in WITHOUT.items()}, "are": "ARE"}
NO_EDIT = "without-edit"


def run(tools: StudyTools, unit: Unit, example: Example, watch: Watch) -> Found:
    """One answer checked with one part switched off."""
    settings = tools.config.stages(unit.seed)
    part = unit.method.removeprefix("without-").replace("-", "_")
    if part in WITHOUT:
        settings = replace(settings, verification=replace(settings.verification, **{part: False}))
    return checked(tools, unit, example, settings, watch)


def results(config: Config, rows: Sequence[Row]) -> Results:
    """The table, and each ablation against the whole."""
    by = by_method(rows, LABELS)
    whole = table(
        "table_2",
        "Attribution and preservation with one part switched off",
        COLUMNS,
        ((LABELS[name], *cells(own, edits=name != NO_EDIT)) for name, own in by.items()),
        rows,
        unit="answers",
        shows="ARE, Tables 2 and 6",
    )
    return Results(tables=(whole, *against_are(rows, by, LABELS, ("attr_r", "attr_p"))))


STUDY = dataclasses.replace(
    WHOLE,
    name="are-ablations",
    title="Contribution of each part of ARE",
    shows=("ARE, Tables 2 and 6",),
    methods=tuple(LABELS),
    labels=LABELS,
    run=run,
    results=results,
)
