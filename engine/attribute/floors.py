"""What an effect has to exceed before it means anything (METHODS section 0).

*Numerical floor*: the same row scored in its batch and alone, the second time with eager attention. Two equal rows
inside one batch differ by exactly 0 and would be no floor; so does, on a CPU, most often a batched bf16 row against the
same row alone, since both sum in the same order, although each is 0.05 to 0.4 nats from float32. Eager attention sums
in another order: the two differ by as much as either differs from float32.
*Placebo floor*: passages from other documents, inserted one at a time; an effect no larger than an unrelated
passage's says nothing of the passage's content.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.answer.prompt import passage_body
from engine.attribute.spans import Mask
from engine.models.eager import summed_otherwise
from engine.models.protocols import LanguageModel, TokenPrompt
from engine.prompts import fill
from engine.text import words
from engine.types import Prompt, Segment

T = TypeVar("T")
Floats = NDArray[np.float64]


def insert_at(items: Sequence[T], item: T, place: int) -> list[T]:
    """`items` with `item` before index `place`.

    >>> insert_at("ac", "b", 1)
    ['a', 'b', 'c']
    """
    return [*items[:place], item, *items[place:]]


def cut_to_words(text: str, count: int) -> str:
    """The first `count` words of `text` with what stands between them."""
    spans = words(text)
    return text[: spans[count - 1][1]] if len(spans) > count > 0 else text


def placebo_prompts(prompt: Prompt, texts: Sequence[str], seed: int) -> tuple[Prompt, ...]:
    """The prompt once for each text, inserted among the passages at a random place, under a number of its own.

    Each text is cut to the median length of the prompt's passages, in words.
    """
    places = [i for i, segment in enumerate(prompt.segments) if segment.kind == "passage"]
    if not places:
        return ()
    lengths = [len(words(passage_body(prompt.segments[i])[1])) for i in places]
    number = max(prompt.numbers) + 1
    rng = np.random.default_rng(seed)
    prompts = []
    for text in texts:
        body = fill("passage", number=number, text=cut_to_words(text, int(np.median(lengths))))
        place = [*places, places[-1] + 1][int(rng.integers(0, len(places) + 1))]
        segment = Segment(kind="passage", text=body, number=number, role=prompt.segments[places[0]].role)
        prompts.append(Prompt(segments=tuple(insert_at(prompt.segments, segment, place))))
    return tuple(prompts)


def largest_change(rows: Floats, reference: Floats, masks: Mask) -> Floats:
    """max over rows of |sum over a span of (row - reference)|, shape (spans,). `rows`: (rows, tokens)."""
    changes: Floats = np.abs((rows - reference) @ masks.T.astype(np.float64))  # (rows, spans)
    largest: Floats = changes.max(axis=0)
    return largest


def numerical_rows(lengths: Sequence[int]) -> tuple[int, ...]:
    """Which rows to score alone: the full one (row 0) and the two shortest others."""
    return (0, *sorted(range(1, len(lengths)), key=lambda i: lengths[i])[:2])


def numerical_floor(
    model: LanguageModel, rows: Sequence[TokenPrompt], scored: Floats, ids: Sequence[int], masks: Mask
) -> Floats:
    """Largest |difference| between a row alone and in the batch that gave `scored`, shape (spans,), nats."""
    chosen = list(numerical_rows([len(row.ids) for row in rows]))
    with summed_otherwise(model, len(rows[0].ids) + len(ids)):
        alone = np.concatenate([model.score([rows[i]], ids) for i in chosen])
    return largest_change(alone, scored[chosen], masks)
