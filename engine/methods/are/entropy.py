"""Entropy of atomic facts against sub-questions (ARE, 3 "Hypothesis" and 5.5).

H(X) = - sum P(x) log P(x), P(x) the product of the tokens' probabilities, over the texts of one kind. P of a sentence
is so small that the sum hardly sees it, and length alone moves it: the surprisal - log P(x) in nats stands beside it,
as a total and per token. Scored without passages, after the same short instruction for both kinds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.core.progress import Watch
from engine.core.values import Prompt, Segment, Value
from engine.models.protocols import LanguageModel, require

INSTRUCTION = "Text:"


class Entropy(Value, frozen=True):
    """Of `texts` texts: the paper's sum, the mean surprisal of a text and of a token (nats), tokens."""

    entropy: float
    surprisal: float
    per_token: float
    texts: int
    tokens: int
    model: str


def entropy(texts: Sequence[str], model: LanguageModel, watch: Watch | None = None) -> Entropy:
    """Entropy and surprisal of the texts under the model; raise `CannotDo` for one that gives no probabilities."""
    require(model, "score")
    prompt = model.encode(Prompt(segments=(Segment(kind="instruction", text=INSTRUCTION),)))
    totals, tokens = [], 0
    for text in texts:
        answer = model.encode_answer(f" {text}")
        scores = model.score([prompt], [token.id for token in answer.tokens], watch)[0]
        totals.append(float(scores.sum()))
        tokens += len(answer.tokens)
    return Entropy(
        entropy=-sum(math.exp(total) * total for total in totals),
        surprisal=-sum(totals) / len(totals) if totals else 0.0,
        per_token=-sum(totals) / tokens if tokens else 0.0,
        texts=len(totals),
        tokens=tokens,
        model=model.name,
    )


def entropies(
    facts: Sequence[str], questions: Sequence[str], model: LanguageModel, watch: Watch | None = None
) -> dict[str, Entropy]:
    """Of the facts, and of the yes/no questions that CCVER asks about the same answer (5.5): "facts", "sub_questions".

    Without questions the second is left out. Raise `CannotDo` for a model that gives no probabilities.
    """
    kinds = {"facts": facts, "sub_questions": questions}
    return {kind: entropy(texts, model, watch) for kind, texts in kinds.items() if texts}
