"""Analyses by kind: one function a kind, in a table; a kind that is not in it is shown as what was stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from engine.analyses.kinds import (
    FAITHFULNESS,
    OCCLUSION,
    SENTENCES,
    SETS,
    TOKEN_MAP,
    USED_SUPPORTS,
)
from engine.cases.places import leaves
from engine.cases.report.attribution import attribution_section, attributions_of
from engine.cases.report.blocks import (
    Block,
    Cell,
    Code,
    Facts,
    Fold,
    Notice,
    Section,
    Table,
    cells,
    plain,
)
from engine.cases.report.facts import facts_section
from engine.cases.report.faithfulness import faithfulness_section
from engine.cases.report.refinement import refinement_section
from engine.cases.report.review import when
from engine.cases.report.selection import attr_rag_section
from engine.cases.report.steps import steps_section
from engine.cases.report.text import name_of, short
from engine.cases.report.token_map import token_map_section
from engine.cases.report.used_supports import used_supports_section
from engine.cases.review import Review
from engine.core.errors import RecordError
from engine.core.values import Analysis, Case

Draw = Callable[[Case, Analysis], list[Block]]
LONGEST = 200_000  # characters of stored JSON that are printed; the case file has the rest


def analysis_section(case: Case, analysis: Analysis, number: int, review: Review) -> Section:
    """One analysis, headed by its name, with the stamp that tells it from others of its kind."""
    stamp = analysis.stamp
    foot = f"By {stamp.model}{f', revision {stamp.revision}' if stamp.revision else ''}. {when(stamp.created)}".strip()
    blocks = (*_drawn(case, analysis, review), plain(foot, "note"))
    return Section(_title(case, analysis), blocks, id=f"analysis-{number}", level=3)


def _title(case: Case, analysis: Analysis) -> str:
    """The kind by its name; of several of a kind also the id, which says by whom."""
    name = NAMES.get(analysis.kind, analysis.kind)
    return name if sum(other.kind == analysis.kind for other in case.analyses) == 1 else f"{name}: {analysis.id}"


def _drawn(case: Case, analysis: Analysis, review: Review) -> list[Block]:
    try:
        if analysis.kind == "facts":
            return facts_section(case, analysis, review)
        draw = DRAW.get(analysis.kind) or (attribution_section if attributions_of(analysis) else stored_section)
        return draw(case, analysis)
    except RecordError as error:
        # What another version stored in another shape is shown as it is.
        return [Notice(str(error)), *stored_section(case, analysis)]


def reading_section(case: Case, analysis: Analysis) -> list[Block]:
    """The quoting reader: every sentence that it considered, those that it took first."""
    candidates = [c for c in analysis.result.get("candidates", []) if isinstance(c, dict)]
    if not candidates:
        return [plain("No sentence was considered.")]
    chosen = [c for c in candidates if c.get("chosen")]
    rest = sorted((c for c in candidates if not c.get("chosen")), key=lambda c: -c.get("score", 0.0))
    rule = str(analysis.result.get("rule") or "")
    blocks: list[Block] = [plain(rule)] if rule else []
    blocks.append(_candidates(case, chosen, f"Sentences that were quoted ({len(chosen)} of {len(candidates)})"))
    blocks.append(Fold(f"The other sentences ({len(rest)})", (_candidates(case, rest, "Not quoted, best first"),)))
    return blocks


def _candidates(case: Case, candidates: list[dict[str, Any]], caption: str) -> Table:
    parts = sorted({name for c in candidates for name in c.get("parts", {})})
    rows = []
    for c in candidates:
        number, start, end = int(c.get("number", 0)), int(c.get("start", 0)), int(c.get("end", 0))
        text = case.passages[number - 1].text[start:end] if 1 <= number <= len(case.passages) else ""
        values = [f"{c['parts'][name]:.3f}" if name in c.get("parts", {}) else "" for name in parts]
        rows.append(
            (
                Cell(name_of(case, number), link=f"passage-{number}"),
                Cell(text),
                Cell(f"{c.get('score', 0.0):.3f}"),
                *map(Cell, values),
            )
        )
    columns = ("Passage", "Sentence", "Score", *parts)
    return Table(caption, columns, tuple(rows), numeric=frozenset(range(2, len(columns))))


def labels_section(case: Case, analysis: Analysis) -> list[Block]:
    """Labels that came with an imported answer: spans of the answer, and what was said of it as a whole."""
    result = analysis.result
    rows = [
        cells(
            f"{s.get('start')} to {s.get('end')}",
            str(s.get("text", "")),
            str(s.get("label", "")),
            str(s.get("note", "")),
        )
        for s in result.get("spans", [])
    ]
    blocks: list[Block] = [
        plain(f"These labels came with the file ({result.get('source', 'unknown')}); no model made them.")
    ]
    if rows:
        blocks.append(Table("Labelled spans of the answer", ("Characters", "Text", "Label", "Note"), tuple(rows)))
    facts = tuple((str(name), short(value)) for name, value in result.get("facts", {}).items())
    return [*blocks, *([Facts(facts)] if facts else [])]


def stored_section(case: Case, analysis: Analysis) -> list[Block]:
    """Whatever was stored, as a folded table of its plain values and its JSON."""
    rows = [cells(path, short(value)) for path, value in leaves(analysis.result) if len(short(value)) <= 200][:200]
    text = msgspec.json.format(msgspec.json.encode(analysis.result, order="sorted"), indent=2).decode()
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}\n... cut here; the case file has all of it."
    table = Table("Stored values", ("Place", "Value"), tuple(rows))
    return [Fold("What was stored", (table, Code(shown, "Stored JSON")))]


DRAW: dict[str, Draw] = {
    "reading": reading_section,
    "labels": labels_section,
    "attr-rag": attr_rag_section,
    TOKEN_MAP: token_map_section,
    "refinement": refinement_section,
    "steps": steps_section,
    FAITHFULNESS: faithfulness_section,
    USED_SUPPORTS: used_supports_section,
}
NAMES = {
    "reading": "How the quoting reader chose",
    "labels": "Labels that came with the answer",
    OCCLUSION: "Occlusion: without each passage",
    SETS: "Occlusion: without each chunk set",
    SENTENCES: "Occlusion: without each sentence of the passages that mattered most",
    "input x gradient": "Input x gradient",
    "integrated gradients": "Integrated gradients",
    "value-weighted attention": "Value-weighted attention",
    TOKEN_MAP: "Token map: relevance of the passages' tokens",
    FAITHFULNESS: "Faithfulness of the attributions",
    USED_SUPPORTS: "Used x supports",
    "attr-rag": "Context selection (Attr-RAG)",
    "refinement": "Refinement",
    "facts": "Atomic facts (ARE)",
    "steps": "Step by step",
}
