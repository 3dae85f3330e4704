"""Occlusion by regeneration (Attr-RAG, section IV-B-c): what would the writer say without each source.

A_full is the answer from all sources, A_-j the one from all but j; for six metrics alpha_M(j) = 1 - sim_M(A_full,
A_-j). Written greedily, so that a difference comes from the source and not from sampling. Ours: citation markers are
left out of the texts compared, equal texts have alpha 0 in every metric (two equal one-word answers share no bigram),
and a floor says how much alpha moves when nothing of substance changed: A_full written a second time, and with
unrelated passages inserted, the median of three. Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import numpy as np
from msgspec.structs import replace

from engine.answer.citations import all_said
from engine.answer.write import Write, Written
from engine.core.errors import AttributionError
from engine.core.metrics import LEXICAL, cosine, terms
from engine.core.progress import Watch, whole
from engine.core.text import counted
from engine.core.values import Answer, Attribution, Details, Passage, Value
from engine.models.protocols import Embedder

Answering = Callable[[str, Sequence[Passage]], Answer]
"""(question, passages) to the answer of any writer: the quoting reader, a local model, a server."""


def answering(write: Write, watch: Watch = Watch(), kept: list[Written] | None = None) -> Answering:
    """A `Write` that gives the answer alone; what it wrote is added to `kept`."""

    def answer(question: str, passages: Sequence[Passage]) -> Answer:
        written = write(question, passages, watch)
        if kept is not None:
            kept.append(written)
        return written.answer

    return answer


METHOD = "occlusion-regenerate"
METRICS = ("cosine", *LEXICAL)
PLACEBOS = 3  # unrelated passages inserted for the floor


class Regeneration(Value, frozen=True):
    """Every answer that was written, and alpha_M of each source in [0, 1] (cosine: up to 2).

    `alphas[M][j]` and `ablated[j]` belong to source j. `repeats` are A_full again, then with each placebo; `floors[M]`
    see `floor_of`, 0 without: an alpha at or under it shows nothing. A run that is not over has no floors.
    """

    full: Answer
    ablated: tuple[Answer, ...]
    repeats: tuple[Answer, ...]
    alphas: dict[str, tuple[float, ...]]
    floors: dict[str, float]
    written: int
    notes: tuple[str, ...] = ()


def similarities(reference: str, text: str, embedder: Embedder) -> dict[str, float]:
    """sim_M of two answers for every metric."""
    if terms(reference) == terms(text):
        return dict.fromkeys(METRICS, 1.0)
    first, second = embedder.embed([reference, text])
    return {"cosine": cosine(first, second), **{name: metric(reference, text) for name, metric in LEXICAL.items()}}


def alphas(full: Answer, answers: Sequence[Answer], embedder: Embedder) -> dict[str, tuple[float, ...]]:
    """alpha_M = 1 - sim_M(full, answer) for each answer, citation markers left out."""
    reference = all_said(full.text)
    rows = [similarities(reference, all_said(answer.text), embedder) for answer in answers]
    return {name: tuple(max(0.0, 1 - row[name]) for row in rows) for name in METRICS}


Floor = Literal["median", "largest", "none"]


def floor_of(repeats: Sequence[float], how: Floor = "median") -> float:
    """The floor of one metric from alpha of A_full written again and alphas with placebos; 0 without either.

    The median of the placebos, so that one placebo which turns the answer around does not close the selection (for
    "none", too, where the selection does without it), or the largest; never under what writing A_full again changes.

    >>> floor_of([0.0, 0.1, 0.9, 0.2]), floor_of([0.0, 0.1, 0.9, 0.2], "largest"), floor_of([0.3, 0.1])
    (0.2, 0.9, 0.3)
    """
    again, placebos = max(repeats[:1], default=0.0), repeats[1:]
    if not placebos:
        return again
    return max(again, max(placebos) if how == "largest" else float(np.median(placebos)))


def regenerating(
    question: str,
    sources: Sequence[Sequence[Passage]],
    write: Answering,
    embedder: Embedder,
    *,
    placebos: Sequence[Passage] = (),
    floor: Floor = "median",
    seed: int = 1337,
    watch: Watch = Watch(),
) -> Iterator[Regeneration]:
    """Write A_full, every A_-j and the answers of the floor: len(sources) + 2 + placebos answers in all.

    Yields a value without floors after each A_-j, then the whole one. Raises `AttributionError` without sources.
    """
    if not sources:
        raise AttributionError("There is no source to leave out. Answer with at least one passage first.")
    used, end = placebos[:PLACEBOS], len(sources) + 1
    everything = [passage for source in sources for passage in source]
    ablations = [[p for k, source in enumerate(sources) if k != j for p in source] for j in range(len(sources))]
    contexts = [everything, *ablations, *_repeats(everything, used, seed)]
    answers = list[Answer]()
    changes: dict[str, tuple[float, ...]] = dict.fromkeys(METRICS, ())  # the alphas of all answers so far
    for context in contexts:
        watch.step("writing without each source", len(answers), len(contexts))
        answers.append(write(question, context))
        newest = alphas(answers[0], answers[-1:], embedder)
        changes = {name: values + newest[name] for name, values in changes.items()}
        found = Regeneration(
            full=answers[0],
            ablated=tuple(answers[1:end]),
            repeats=tuple(answers[end:]),
            alphas={name: values[1:end] for name, values in changes.items()},
            floors={},
            written=len(answers),
        )
        if 1 < len(answers) <= end:
            missing = ", ".join([*(f"source {number}" for number in range(len(answers), end)), "the floors"])
            yield replace(found, notes=(f"Not scored, because the run has not reached them: {missing}.",))
    watch.report("writing without each source", len(answers), len(contexts))
    said = f"The floor uses {len(used)} unrelated passages instead of {PLACEBOS}."
    floors = {name: floor_of(values[end:], floor) for name, values in changes.items()}
    yield replace(found, floors=floors, notes=(said,) if len(used) < PLACEBOS else ())


regenerate = whole(regenerating)


def _repeats(passages: list[Passage], placebos: Sequence[Passage], seed: int) -> Iterator[list[Passage]]:
    """The passages again, then with each placebo at a random place."""
    rng = np.random.default_rng(seed)
    yield passages
    for placebo in placebos:
        place = int(rng.integers(0, len(passages) + 1))
        yield [*passages[:place], placebo, *passages[place:]]


WRITTEN = "Compared with the answer written here: "


def attribution_of(result: Regeneration, model: str) -> Attribution:
    """Each source's effect on the whole of A_full, whose text is in a note: the mean of its alphas over the metrics."""
    rows = tuple(zip(*result.alphas.values(), strict=True))
    return Attribution(
        method=METHOD,
        model=model,
        unit="1 - similarity",
        spans=((0, len(result.full.text)),),
        sources=tuple((number,) for number in range(1, len(rows) + 1)),
        scores=(tuple(sum(row) / len(row) for row in rows),),
        per_token=(),
        placebo_floor=sum(result.floors.values()) / len(result.floors) if result.floors else None,
        notes=(f"{WRITTEN}{result.full.text}", f"{counted(result.written, 'answer')} written.", *result.notes),
        details=Details(alphas=result.alphas, floors=result.floors),
    )
