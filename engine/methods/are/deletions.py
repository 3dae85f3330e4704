"""Sentences and asides that no passage bears out or surely contradicts, offered for deletion.

ARE leaves such text as it is (4.3) and so does a run here: the verdict is "nothing found that settles it", in every
denominator. What a run can do is to offer it to the reader; it goes only where somebody accepts that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.answer.citations import cited_sentences
from engine.methods.are.clauses import blanked
from engine.methods.are.facts import Decomposition
from engine.methods.are.values import FactRecord, Placed

WHY = "no passage bears it out: take {} out, or name its source"
_OPENS = re.compile(r",\s+(?:(?:and|who|whom|whose|which|where|when)\s+)?$")
_CLOSES = re.compile(r"\s*(?:[.,;:]|$)")


def offered(answer: str, found: Decomposition, records: Sequence[FactRecord], first: int) -> list[Placed]:
    """A suggestion, numbered from `first` on, for each whole sentence and each aside with nothing settled in it."""
    whole = {span for style in ("alce", "garage") for span in cited_sentences(answer, style)}
    result: list[Placed] = []
    for number, clause in enumerate(found.clauses):
        mine = [place for place, record in enumerate(records) if record.clause == number]
        open_ones = [place for place in mine if _open(records[place])]
        evidence = records[open_ones[0]].evidence if open_ones else None
        if evidence is None:
            continue
        sentence = open_ones == mine and (clause.start, clause.end) in whole
        span = (clause.start, clause.end) if sentence else _aside(answer, [records[i] for i in mine])
        if span is None:
            continue
        result.append(
            Placed(
                id=str(first + len(result)),
                clause=number,
                fact=open_ones[0],
                start=span[0],
                end=span[1],
                old=answer[slice(*span)],
                new="",
                status="suggestion",
                why=WHY.format("the sentence" if sentence else "the aside"),
                evidence=evidence,
                ruling=None,
            )
        )
    return result


def _open(record: FactRecord) -> bool:
    """Did nothing settle the fact, or only a contradiction that a guard lowered."""
    lowered = record.outcome == "contradicted" and record.ruling is not None and record.ruling.lowered
    return record.outcome == "unsettled" or lowered


def _aside(answer: str, records: Sequence[FactRecord]) -> tuple[int, int] | None:
    """What only the unsettled facts of a clause say, where it stands between commas as one piece; with its commas.

    "Ann, who sold it in 2019, left": the part from the first comma up to the second, where that Ann left is settled.
    """
    said = [{p.answer + i for p in r.fact.pieces for i in range(p.length)} for r in records]
    settled = set().union(*(c for c, r in zip(said, records, strict=True) if not _open(r)))
    own = sorted(set().union(*(c for c, r in zip(said, records, strict=True) if _open(r))) - settled)
    if not own or not settled:
        return None
    start, end = own[0], own[-1] + 1
    opens, closes = _OPENS.search(answer, 0, start), _CLOSES.match(blanked(answer), end)
    left = re.sub(r"\W+", "", "".join(answer[i] for i in range(start, end) if i not in set(own)))
    if not opens or not closes or left:
        return None
    return opens.start(), end + (answer[end : end + 1] == ",")
