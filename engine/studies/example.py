"""One example of a data set, whatever layout it came from: a question, and what is known about its answer.

Only `id` and `question` must be there. What an example lacks switches off what needs it, and nothing else: `lacks`
names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from engine.answer.write import Written
from engine.cases.importers import SpanLabel
from engine.core.files import now
from engine.core.values import Case, Hit, Json, Passage, Value, inputs_hash
from engine.corpus.store import Snapshot
from engine.corpus.worlds import GoldSpan, overlaps


class GoldStep(Value, frozen=True):
    """One step of a question that needs several, with its answer and where that stands."""

    question: str
    answer: str = ""
    gold_spans: tuple[GoldSpan, ...] = ()


class GoldClause(Value, frozen=True):
    """A molecular clause of `answer`, as a person cut it, with its atomic facts."""

    text: str
    facts: tuple[str, ...] = ()


class GoldError(Value, frozen=True):
    """A false span of `answer`: `wrong` occurs once in it, `right` replaces it (empty: to be deleted)."""

    wrong: str
    right: str
    kind: str = ""


class Example(Value, frozen=True):
    """A question with what its data set knows.

    `passages` are given with the question (`relevant` where labelled). `references` are whole answers.
    `short_answers` are what STR-EM looks for: one tuple of accepted spellings for each thing to be named.
    `correct` is the index of the right one of `options`. `gold` are ids of the passages that carry the answer, of
    `passages` or of the data set's corpus; `gold_spans` are characters of the corpus's documents. `passages_needed`
    counts the passages that the answer takes. `answer` is an answer to be checked (a draft, another system's), by
    `writer`, with its labelled stretches `spans` (None: nobody labelled it; empty: labelled, and nothing found), its
    planted `errors` and its gold `clauses`. `corpus` names the collection that the gold lies in. `about` holds what
    else the layout brings.
    """

    id: str
    question: str
    source: str = ""
    passages: tuple[Passage, ...] = ()
    references: tuple[str, ...] = ()
    short_answers: tuple[tuple[str, ...], ...] = ()
    options: tuple[str, ...] = ()
    correct: int | None = None
    gold: tuple[str, ...] = ()
    gold_spans: tuple[GoldSpan, ...] = ()
    passages_needed: int | None = None
    steps: tuple[GoldStep, ...] = ()
    answer: str = ""
    writer: str = ""
    spans: tuple[SpanLabel, ...] | None = None
    errors: tuple[GoldError, ...] | None = None
    clauses: tuple[GoldClause, ...] = ()
    domain: str = ""
    corpus: str = ""
    about: Json = {}


NEEDS: Mapping[str, Callable[[Example], bool]] = {
    "passages": lambda example: bool(example.passages),
    "relevance labels": lambda example: (
        bool(example.passages) and all(p.relevant is not None for p in example.passages)
    ),
    "a reference answer": lambda example: bool(example.references),
    "short answers": lambda example: bool(example.short_answers),
    "options": lambda example: len(example.options) > 1,
    "the right option": lambda example: example.correct is not None,
    "gold passages": lambda example: bool(example.gold or example.gold_spans),
    "the number of passages needed": lambda example: example.passages_needed is not None,
    "gold steps": lambda example: bool(example.steps),
    "an answer": lambda example: bool(example.answer),
    "labelled spans": lambda example: example.spans is not None,
    "planted errors": lambda example: example.errors is not None,
    "gold clauses": lambda example: bool(example.clauses),
    "a domain": lambda example: bool(example.domain),
    "a corpus": lambda example: bool(example.corpus),
}


def lacks(example: Example, needs: Iterable[str]) -> tuple[str, ...]:
    """Those of `needs` (names in `NEEDS`) that the example does not bring, in the order asked for.

    >>> lacks(Example(id="1", question="Who?"), ["passages", "a domain"])
    ('passages', 'a domain')
    """
    return tuple(name for name in needs if not NEEDS[name](example))


# What several studies share: an example and what was written of it as a case, gold in a corpus, tokens to expect.

CHARACTERS = 3.0  # of a token, on the low side: an estimate that is too high surprises nobody


def case_of(example: Example, passages: Sequence[Passage], written: Written, *, hits: Sequence[Hit] = ()) -> Case:
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
        options=example.options,
    )


def gold_in(example: Example, snapshot: Snapshot) -> frozenset[str]:
    """Ids of the passages that hold gold: named themselves, of a document named, or sharing a character with it.

    Only the documents that are named are read: a corpus can have millions of passages.
    """
    named = set(example.gold)
    documents = named.union(span.document for span in example.gold_spans)
    held = (passage for document in documents for _, passage in snapshot.rows_of(document))
    within = (p.id for p in held if p.document in named or any(overlaps(p, span) for span in example.gold_spans))
    return frozenset(within).union(snapshot.rows(named) if named else ())


def tokens_of(*texts: str) -> int:
    """About how many tokens the texts take."""
    return int(sum(map(len, texts)) / CHARACTERS)
