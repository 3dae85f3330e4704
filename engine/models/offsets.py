"""Character spans of tokens, and what two token rows share from the start; nothing here needs torch.

A byte-level token may hold part of a character: it gets the smallest span that covers its bytes, and neighbours may
then share a character.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Span = tuple[int, int]
Decode = Callable[[Sequence[int]], str]


def common_length(first: Sequence[Any], second: Sequence[Any]) -> int:
    """How many characters, or ids, the two have in common from the start.

    >>> common_length("abc", "abd"), common_length((1, 2, 3), (1, 2, 3, 4))
    (2, 3)
    """
    shorter = min(len(first), len(second))
    if first[:shorter] == second[:shorter]:
        return shorter
    return next((i for i in range(shorter) if first[i] != second[i]), shorter)


def spans_of_ids(ids: Sequence[int], text: str, decode: Decode) -> tuple[Span, ...]:
    """Spans of generated tokens in `text` = decode(ids).

    After i tokens the first `done` characters are whole; a rest that does not match `text` yet (the replacement
    character of a cut byte sequence) means that the token ends inside character `done`.
    """
    spans: list[Span] = []
    done = 0
    for count in range(1, len(ids) + 1):
        so_far = decode(ids[:count])
        whole = common_length(so_far, text)
        end = min(whole + (whole < len(so_far)), len(text))
        spans.append((done, max(done, end)))
        done = max(done, whole)
    return tuple(spans)


def close_gaps(offsets: Sequence[Span], length: int) -> tuple[Span, ...]:
    """A tokenizer's offsets stretched back over what it trimmed (spaces), so that the spans cover the text.

    >>> close_gaps([(0, 5), (6, 11)], 12)
    ((0, 5), (5, 12))
    """
    spans: list[Span] = []
    covered = 0
    for start, end in offsets:
        first = min(start, covered)
        spans.append((first, max(end, first)))
        covered = max(covered, end)
    if spans and covered < length:
        spans[-1] = (spans[-1][0], length)
    return tuple(spans)


def stable_text(text: str) -> str:
    """Streamed text less the replacement characters of a character that is still being written."""
    return text.rstrip("�")
