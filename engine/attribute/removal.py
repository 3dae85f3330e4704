"""Prompts with some of their tokens removed: positions close up, nothing is tokenised again.

Removing ids is the reference. Masking them in place is the same only with position ids counted over what is
left; with plain position ids the answer's log-probability was 1.4 nats off, and hiding a passage from the answer
alone, while later passages still see it, is another quantity altogether (146 nats).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from engine.errors import AttributionError
from engine.models.protocols import TokenPrompt


def drop_positions(prompt: TokenPrompt, positions: Collection[int]) -> TokenPrompt:
    """The prompt without the tokens at `positions`; pieces that lose all their tokens disappear."""
    gone = frozenset(positions)
    ids: list[int] = []
    spans: list[tuple[int, int, int]] = []
    numbers: list[int | None] = []
    for (segment, start, end), number in zip(prompt.spans, prompt.numbers, strict=True):
        kept = [prompt.ids[i] for i in range(start, end) if i not in gone]
        if kept:
            spans.append((segment, len(ids), len(ids) + len(kept)))
            numbers.append(number)
            ids.extend(kept)
    return TokenPrompt(ids=tuple(ids), spans=tuple(spans), numbers=tuple(numbers))


def passage_positions(prompt: TokenPrompt, numbers: Iterable[int]) -> frozenset[int]:
    """Positions in `prompt.ids` of the passages `numbers`; `AttributionError` if one is not in the prompt."""
    wanted = set(numbers)
    missing = wanted - set(prompt.numbers)
    if missing:
        listed = ", ".join(map(str, sorted(missing)))
        raise AttributionError(f"The prompt holds no passage {listed}. Choose among its passages.")
    pieces = zip(prompt.spans, prompt.numbers, strict=True)
    return frozenset(i for (_, start, end), number in pieces if number in wanted for i in range(start, end))


def passage_numbers(prompt: TokenPrompt) -> tuple[int, ...]:
    """The passage numbers in prompt order, each once."""
    return tuple(dict.fromkeys(number for number in prompt.numbers if number is not None))
