"""Relevance of every input token for stretches and single tokens of the answer: what the gradient methods return."""

from __future__ import annotations

from engine.types import Value


class Relevance(Value, frozen=True):
    """Signed relevance R_i of input position i; positive = pushes the target up.

    Inputs are the prompt's tokens, then the answer's tokens except the last: `inputs` positions in all, the first
    `prompt_tokens` of them the prompt's. `by_span[s]` explains the sum of the target over the content tokens of
    `spans[s]`, `by_token[k]` the target of answer token `tokens[k]`. `target` is "logit", "log_probability" or, for
    methods without one, a name of their own. `values[t]` is the target of answer token t; `argmax[t]` the token id
    that the model would have chosen there (the papers explain that one; where it differs from the answer's the
    page says so). Both empty where a method does not compute them.
    """

    method: str
    model: str
    target: str
    spans: tuple[tuple[int, int], ...]
    by_span: tuple[tuple[float, ...], ...]
    tokens: tuple[int, ...] = ()
    by_token: tuple[tuple[float, ...], ...] = ()
    prompt_tokens: int = 0
    values: tuple[float, ...] = ()
    argmax: tuple[int, ...] = ()
    forwards: int = 0
    backwards: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    details: dict[str, float] = {}

    @property
    def inputs(self) -> int:
        """Number of input positions."""
        return len(self.by_span[0])
