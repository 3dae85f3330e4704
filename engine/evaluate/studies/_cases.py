"""What several studies share: an example and what was written of it as a case, gold in a corpus, tokens to expect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from engine.answer.write import Written
from engine.clock import now
from engine.evaluate.example import Example
from engine.types import Analysis, Case, Hit, Passage, inputs_hash
from engine.worlds import overlaps

CHARACTERS = 3.0  # of a token, on the low side: an estimate that is too high surprises nobody


def case_of(
    example: Example,
    passages: Sequence[Passage],
    written: Written,
    *,
    hits: Sequence[Hit] = (),
    analyses: Iterable[Analysis] = (),
) -> Case:
    """The example as a case with that answer; its id is given when it is written."""
    stamp = replace(written.stamp, inputs=inputs_hash(example.question, tuple(passages)))
    return Case(
        id="",
        question=example.question,
        title=example.id,
        passages=tuple(passages),
        answer=written.answer,
        stamp=stamp,
        corpus=example.corpus or None,
        created=now(),
        hits=tuple(hits),
        prompt=written.prompt,
        analyses=tuple(analyses),
        options=example.options,
    )


def gold_in(example: Example, passages: Iterable[Passage]) -> frozenset[str]:
    """Ids of those passages that hold gold: named themselves, of a document named, or sharing a character with it."""
    named = set(example.gold)
    return frozenset(
        p.id
        for p in passages
        if p.id in named or p.document in named or any(overlaps(p, span) for span in example.gold_spans)
    )


def tokens_of(*texts: str) -> int:
    """About how many tokens the texts take."""
    return int(sum(map(len, texts)) / CHARACTERS)
