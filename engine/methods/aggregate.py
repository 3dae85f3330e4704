"""Token -> sentence -> passage: every level partitions the one below, so that sums are kept.

Sums, never means: a passage's relevance is the signed sum over its token span (grounded refinement, section 4.3.2).
Ranks go by the sum of |R| of its tokens, which do not cancel out: the sign says little (bench/RESULTS.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.answer.prompt import passage_body
from engine.core.errors import AttributionError
from engine.core.text import sentences
from engine.core.values import Attribution, Details, Prompt, Segment
from engine.methods.input_x_gradient import Relevance
from engine.methods.spans import Floats, anchor, as_tuples, passage_numbers, passage_positions
from engine.models.offsets import spans_of_ids
from engine.models.protocols import LanguageModel, TokenPrompt


@dataclass(frozen=True)
class Place:
    """A token of a segment: its position in `TokenPrompt.ids` and its characters [start, end) in the segment."""

    position: int
    start: int
    end: int


@dataclass(frozen=True)
class SentenceSource:
    """A sentence of a passage: characters [start, end) of the passage segment's text, and its prompt positions."""

    number: int
    start: int
    end: int
    positions: frozenset[int]


def places(model: LanguageModel, prompt: Prompt, coded: TokenPrompt, segment: int) -> tuple[Place, ...]:
    """The tokens of segment `segment` with their characters, anchored at their first that is not white space.

    Raises `AttributionError` where the text tokenised again does not give the ids that are in the prompt.
    """
    text = prompt.segments[segment].text
    first, last = next(((s, e) for i, s, e in coded.spans if i == segment), (0, 0))
    spans = _spans(model, text, coded.ids[first:last])
    if spans is None:
        raise AttributionError(
            f"The tokens of {model.name} cannot be located in the text of segment {segment + 1}. Attribute whole "
            f"passages instead of words or sentences."
        )
    seen = [(anchor(text, start), start, end) for start, end in spans]
    return tuple(Place(first + i, at if at < end else start, end) for i, (at, start, end) in enumerate(seen))


def _spans(model: LanguageModel, text: str, ids: tuple[int, ...]) -> tuple[tuple[int, int], ...] | None:
    """Characters of each of `ids` in `text`: from the tokenizer, else from decoding; None if neither agrees."""
    tokens = model.encode_answer(text).tokens
    if tuple(token.id for token in tokens) == ids:
        return tuple((token.start, token.end) for token in tokens)
    decode = getattr(model, "decode", None)  # a segment inside a prompt may lack the space that leads a text
    return spans_of_ids(ids, text, decode) if decode is not None and decode(ids) == text else None


def passage_places(
    model: LanguageModel, prompt: Prompt, coded: TokenPrompt
) -> Iterator[tuple[int, Segment, tuple[Place, ...]]]:
    """Each passage's number, segment and tokens, in prompt order; raises what `places` raises."""
    for index, segment in enumerate(prompt.segments):
        if segment.kind == "passage" and segment.number is not None:
            yield segment.number, segment, places(model, prompt, coded, index)


def sentence_sources(
    model: LanguageModel, prompt: Prompt, coded: TokenPrompt, numbers: Sequence[int]
) -> tuple[SentenceSource, ...]:
    """The sentences of the passages `numbers`, in prompt order; what the template adds belongs to none."""
    found: list[SentenceSource] = []
    for number, segment, tokens in passage_places(model, prompt, coded):
        if number not in numbers:
            continue
        offset, body = passage_body(segment)
        for start, end in sentences(body):
            a, b = offset + start, offset + end
            inside = frozenset(place.position for place in tokens if a <= place.start < b)
            if inside:
                found.append(SentenceSource(number, a, b, inside))
    return tuple(found)


def passage_sums(rows: Sequence[Sequence[float]], prompt: TokenPrompt, groups: Sequence[Sequence[int]]) -> Floats:
    """Sums over each group of passages, shape (rows, groups). `rows`: relevance of each input position."""
    if not len(rows):
        return np.zeros((0, len(groups)))
    matrix = np.asarray(rows, dtype=np.float64)
    positions = [sorted(passage_positions(prompt, group)) for group in groups]
    return np.stack([matrix[:, where].sum(axis=1) for where in positions], axis=1)


def passage_attribution(relevance: Relevance, prompt: TokenPrompt) -> Attribution:
    """Relevance by passage as an `Attribution`: spans as explained, tokens as explained.

    `details.tokens` are the answer tokens of `per_token`; `details.elsewhere` the sum outside the sources;
    `details.absolute` the sums of |R|, shaped as `scores`: what sources are ranked by.
    """
    chosen = tuple((number,) for number in passage_numbers(prompt))
    scores = passage_sums(relevance.by_span, prompt, chosen)
    totals = np.asarray(relevance.by_span, dtype=np.float64).sum(axis=1)
    return Attribution(
        method=relevance.method,
        model=relevance.model,
        unit=relevance.target,
        spans=relevance.spans,
        sources=chosen,
        scores=as_tuples(scores),
        per_token=as_tuples(passage_sums(relevance.by_token, prompt, chosen)),
        forwards=relevance.forwards,
        backwards=relevance.backwards,
        seconds=relevance.seconds,
        notes=relevance.notes,
        details=Details(
            tokens=relevance.tokens,
            elsewhere=tuple((totals - scores.sum(axis=1)).tolist()),
            absolute=as_tuples(passage_sums(np.abs(relevance.by_span).tolist(), prompt, chosen)),
            delta=relevance.delta,
            steps=relevance.steps,
        ),
    )
