"""What people said of a case: status, overrides beside the machine's verdicts, labels, notes, the whole history."""

from __future__ import annotations

from collections.abc import Sequence

from engine.cases.blocks import (
    Block,
    Facts,
    Fold,
    Table,
    cells,
    plain,
    when,
)
from engine.cases.review import Chain, Mark, review_of


def review_blocks(history: Sequence[Mark], chain: Chain) -> tuple[Block, ...]:
    """The review section."""
    review = review_of(history)
    facts = [("Status", review.status)]
    if review.reviewer:
        facts.append(("Set by", f"{review.reviewer}, {when(review.time)}"))
    facts += [("Protection", chain.protection), ("Head hash, to be kept elsewhere", chain.head or "none")]
    blocks: list[Block] = [Facts(tuple(facts))]
    if review.verdicts:
        rows = tuple(
            cells(m.target, m.machine or "none given", m.value, m.reason, m.author, when(m.time))
            for m in review.verdicts.values()
        )
        columns = ("Place", "Machine's verdict", "Reviewer's verdict", "Reason", "Reviewer", "Time")
        blocks.append(Table("Overrides, next to the verdict of the machine", columns, rows))
    if review.edit_decisions:
        rows = tuple(
            cells(m.target, m.machine, m.value, m.reason, m.author, when(m.time))
            for m in review.edit_decisions.values()
        )
        columns = ("Edit", "Change", "Decision", "Reason", "Reviewer", "Time")
        blocks.append(Table("Decisions on edits", columns, rows))
    if review.labels:
        rows = tuple(
            cells(f"Passage {n}", m.value, m.reason, m.author, when(m.time)) for n, m in sorted(review.labels.items())
        )
        blocks.append(Table("Relevance labels", ("Passage", "Label", "Reason", "Reviewer", "Time"), rows))
    if review.notes:
        rows = tuple(cells(m.target, m.value, m.author, when(m.time)) for m in review.notes)
        blocks.append(Table("Notes", ("Place", "Note", "Reviewer", "Time"), rows))
    if history:
        blocks.append(Fold(f"The whole history ({len(history)} entries)", (_history(history),)))
    else:
        blocks.append(plain("Nobody has reviewed this case yet."))
    return tuple(blocks)


def _history(history: Sequence[Mark]) -> Table:
    rows = tuple(
        cells(
            str(m.number),
            when(m.time),
            m.author,
            m.kind,
            m.target,
            m.value,
            m.reason,
            m.hash[:16],
            f"key {m.key}" if m.signature else "not signed",
        )
        for m in history
    )
    return Table(
        "Entries, oldest first", ("No.", "Time", "Who", "Kind", "Place", "Value", "Reason", "Hash", "Signature"), rows
    )
