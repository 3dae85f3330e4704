"""Sentences that nothing found speaks of, offered for deletion.

ARE leaves such text as it is (4.3) and so does a run here: the verdict is "nothing found that settles it", in every
denominator. What a run can do is to offer the sentence to the reader; it goes only where somebody accepts that.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.answer.citations import cited_sentences
from engine.verify.facts import Decomposition
from engine.verify.values import FactRecord, Placed

WHY = "nothing found speaks of it: take the sentence out, or name its source"


def offered(answer: str, found: Decomposition, records: Sequence[FactRecord], first: int) -> list[Placed]:
    """A suggestion, numbered from `first` on, for each clause that is a whole sentence with nothing settled in it."""
    whole = {span for style in ("alce", "garage") for span in cited_sentences(answer, style)}
    result: list[Placed] = []
    for number, clause in enumerate(found.clauses):
        mine = [place for place, record in enumerate(records) if record.clause == number]
        open_ones = [place for place in mine if records[place].outcome == "unsettled"]
        evidence = records[mine[0]].evidence if mine else None
        if not mine or open_ones != mine or evidence is None or (clause.start, clause.end) not in whole:
            continue
        result.append(
            Placed(
                id=str(first + len(result)),
                clause=number,
                fact=mine[0],
                start=clause.start,
                end=clause.end,
                old=clause.text,
                new="",
                status="suggestion",
                why=WHY,
                evidence=evidence,
                ruling=None,
            )
        )
    return result
