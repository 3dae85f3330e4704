"""Whether a prompt fits a model's window; what would have to go where it does not (never cut silently)."""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import PromptTooLong
from engine.models.protocols import TokenPrompt

LEAST_ROOM = 64  # tokens that an answer needs for the prompt to count as fitting


def check_fits(prompt: TokenPrompt, window: int, answer: int, name: str, *, least: bool = False) -> int:
    """Tokens left for the answer, at most `answer`; raise `PromptTooLong` where that is too few.

    Scoring needs room for all of `answer`; writing (`least`) for `LEAST_ROOM` of it, and says afterwards that
    the answer was cut.
    """
    needed = min(answer, LEAST_ROOM) if least else answer
    if len(prompt.ids) + needed > window:
        raise too_long(prompt, window, needed, name)
    return min(answer, window - len(prompt.ids))


def check_each_fits(prompts: Sequence[TokenPrompt], window: int, answers: Sequence[int], name: str) -> list[int]:
    """Tokens left for each answer that is to be written; `PromptTooLong` says which of several prompts is."""
    limits = []
    for place, (prompt, answer) in enumerate(zip(prompts, answers, strict=True), start=1):
        try:
            limits.append(check_fits(prompt, window, answer, name, least=True))
        except PromptTooLong as error:
            if len(prompts) == 1:
                raise
            raise PromptTooLong(f"Prompt {place} of {len(prompts)}: {error}", passages=error.passages) from error
    return limits


def too_long(prompt: TokenPrompt, window: int, needed: int, name: str) -> PromptTooLong:
    """The refusal, with the count and the last passages whose removal would make the prompt fit."""
    gone = passages_to_drop(prompt, window - needed)
    count = f"The prompt has {len(prompt.ids)} tokens and the answer needs {needed}; {name} takes {window}."
    if gone is None:
        return PromptTooLong(f"{count} It would not fit without any passage: use a model with a longer window.")
    words = "passage" if len(gone) == 1 else "passages"
    return PromptTooLong(f"{count} It would fit without {words} {', '.join(map(str, gone))}.", passages=gone)


def passages_to_drop(prompt: TokenPrompt, room: int) -> tuple[int, ...] | None:
    """The fewest passages from the end whose removal brings the prompt to `room` tokens; None if none does."""
    over = len(prompt.ids) - room
    dropped: list[int] = []
    for (_, start, end), number in zip(reversed(prompt.spans), reversed(prompt.numbers), strict=True):
        if over <= 0:
            break
        if number is not None:
            dropped.append(number)
            over -= end - start
    return tuple(sorted(dropped)) if over <= 0 else None
