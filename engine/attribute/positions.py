"""Where the tokens of a prompt stand in its segments' text, and the sources that are smaller than a passage."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from engine.answer.prompt import passage_body
from engine.errors import AttributionError
from engine.models.offsets import spans_of_ids
from engine.models.protocols import LanguageModel, TokenPrompt
from engine.text import sentences
from engine.types import Prompt


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
            f"The tokens of {model.name} cannot be placed in the text of segment {segment + 1}. "
            "Attribute whole passages instead of words or sentences."
        )
    return tuple(Place(first + i, _anchor(text, start, end), end) for i, (start, end) in enumerate(spans))


def _spans(model: LanguageModel, text: str, ids: tuple[int, ...]) -> tuple[tuple[int, int], ...] | None:
    """Characters of each of `ids` in `text`: from the tokenizer, else from decoding; None if neither agrees."""
    tokens = model.encode_answer(text).tokens
    if tuple(token.id for token in tokens) == ids:
        return tuple((token.start, token.end) for token in tokens)
    decode = getattr(model, "decode", None)  # a segment inside a prompt may lack the space that leads a text
    return spans_of_ids(ids, text, decode) if decode is not None and decode(ids) == text else None


def _anchor(text: str, start: int, end: int) -> int:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()) if piece.strip() else start


def divide(found: Sequence[Place], starts: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Indices into `found` for the part of each of the ascending `starts`: a partition, so that sums are kept.

    A token belongs to the last part that starts at or before its anchor, and to the first if there is none.
    """
    parts: list[list[int]] = [[] for _ in starts]
    for index, place in enumerate(found):
        parts[max(0, bisect_right(starts, place.start) - 1)].append(index)
    return tuple(map(tuple, parts))


def sentence_sources(
    model: LanguageModel, prompt: Prompt, coded: TokenPrompt, numbers: Sequence[int]
) -> tuple[SentenceSource, ...]:
    """The sentences of the passages `numbers`, in prompt order; what the template adds belongs to none."""
    found: list[SentenceSource] = []
    for index, segment in enumerate(prompt.segments):
        if segment.kind != "passage" or segment.number is None or segment.number not in numbers:
            continue
        offset, body = passage_body(segment)
        tokens = places(model, prompt, coded, index)
        for start, end in sentences(body):
            a, b = offset + start, offset + end
            inside = frozenset(place.position for place in tokens if a <= place.start < b)
            if inside:
                found.append(SentenceSource(segment.number, a, b, inside))
    return tuple(found)
