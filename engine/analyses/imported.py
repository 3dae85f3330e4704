"""The labels of an imported answer; they came with the case and are not computed."""

from __future__ import annotations

from engine.analyses.kind import Kind
from engine.cases.blocks import Block, Facts, plain, short, table
from engine.cases.importers import Labels
from engine.cases.review import Review
from engine.core.values import Case


def _labels(case: Case, found: Labels, review: Review) -> list[Block]:
    blocks: list[Block] = [plain(f"These labels came with the file ({found.source}), not from a model.")]
    if found.spans:
        rows = ((f"{s.start} to {s.end}", s.text, s.label, s.note) for s in found.spans)
        blocks.append(table("Labelled spans of the answer", ("Characters", "Text", "Label", "Note"), rows))
    facts = tuple((name, short(value)) for name, value in found.facts.items())
    return [*blocks, *([Facts(facts)] if facts else [])]


KIND = Kind(
    name="labels",
    title="Labels that came with the answer",
    result=Labels,
    blocks=_labels,
    terms=("labels",),
    not_again="these labels were imported, not computed",
    scores_answer=False,
)
