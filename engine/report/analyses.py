"""The analyses of a case in its report: each drawn by its kind, of an unknown kind or shape what was stored."""

from __future__ import annotations

import msgspec

from engine.analyses.attribution import attribution_section, attributions_of
from engine.analyses.registry import find
from engine.cases.blocks import Block, Code, Fold, Notice, Section, plain, short, table, when
from engine.cases.places import leaves
from engine.cases.review import Review
from engine.core.errors import RecordError
from engine.core.values import Analysis, Case

LONGEST = 200_000  # characters of stored JSON that are printed; the case file has the rest


def analysis_section(case: Case, analysis: Analysis, number: int, review: Review) -> Section:
    """One analysis, headed by its name, with the stamp that tells it from others of its kind."""
    stamp, kind = analysis.stamp, find(analysis.kind)
    title = kind.title if kind else analysis.kind
    if sum(other.kind == analysis.kind for other in case.analyses) > 1:
        title += f": {analysis.id}"  # which says by whom
    foot = f"By {stamp.model}{f', revision {stamp.revision}' if stamp.revision else ''}. {when(stamp.created)}".strip()
    blocks = (Fold("Every figure", tuple(analysis_blocks(case, analysis, review))), plain(foot, "note"))
    return Section(title, blocks, id=f"analysis-{number}", level=3)


def analysis_blocks(case: Case, analysis: Analysis, review: Review) -> list[Block]:
    """The kind's blocks for an analysis; the stored JSON for an unknown kind or shape."""
    kind = find(analysis.kind)
    try:
        if kind is not None:
            return kind.blocks(case, kind.read(analysis), review)
        found = attributions_of(analysis)  # of a method that is not installed here
        return attribution_section(case, found) if found else stored_section(case, analysis)
    except RecordError as error:
        # What another version stored in another shape is shown as it is.
        return [Notice(str(error)), *stored_section(case, analysis)]


def stored_section(case: Case, analysis: Analysis) -> list[Block]:
    """Whatever was stored, as a folded table of its plain values and its JSON."""
    pairs = [(path, short(value)) for path, value in leaves(analysis.stored())]
    rows = [(path, value) for path, value in pairs if len(value) <= 200][:200]
    text = msgspec.json.format(msgspec.json.encode(analysis.result, order="sorted"), indent=2).decode()
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}\n... shortened; the case file has the full text."
    values = table("Stored values", ("Place", "Value"), rows)
    return [Fold("What was stored", (values, Code(shown, "Stored JSON")))]
