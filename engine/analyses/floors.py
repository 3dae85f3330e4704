"""How far a replayed number may move by rounding alone, measured on the models that compute it.

A value is computed in one way and in another: among others and alone, in the model's number format and in float64, in
bfloat16 and in float32. A floor is four times the largest difference: another processor was seen to round twice as
far as this one, and the stored and the replayed number may be off in opposite directions. It rounds each part of a sum
anew, so the rounding of a sum is the root of its parts' squared differences, where the sum's own is not larger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.cases.places import leaves
from engine.core.progress import Watch
from engine.core.values import Answer, Json, Prompt, T
from engine.methods.input_x_gradient import Relevance
from engine.models.embedder import embed_passages
from engine.models.memory import computed_otherwise, summed_otherwise
from engine.models.protocols import Embedder, Entailment, Floats, Judged, LanguageModel, Reranker, TokenPrompt

WIDE = 4  # times the rounding seen here
STEP = float(np.finfo(np.float32).eps)  # a cosine near 1 moves by no less, whatever a few texts show
FLOOR_TEXTS = 40  # texts that the embedder's rounding is measured on
FLOOR_PAIRS = 64  # pairs that the verifier's rounding is measured on
FLOOR_ROWS = 12  # rows that a language model's rounding is measured on


def embedding_floor(embedder: Embedder, question: str, texts: Sequence[str]) -> float:
    """Of the cosine of a question and a text, in [0, 2]."""

    query = embedder.embed([question])[0]

    def cosines(some: Sequence[str]) -> Floats:
        found: Floats = embed_passages(embedder, some) @ query
        return found

    # With a space at its end a text has the same tokens and is none that the embedder remembers.
    return _apart(texts, cosines, lambda text: cosines([f"{text} "]))


def reranking_floor(reranker: Reranker, question: str, texts: Sequence[str]) -> float:
    """Of a cross-encoder's score, on its own scale: alone against in one batch."""
    return _apart(
        texts, lambda some: reranker.rank_scores(question, some), lambda text: reranker.rank_scores(question, [text])
    )


def _apart(texts: Sequence[str], together: Callable[[Sequence[str]], Floats], alone: Callable[[str], Floats]) -> float:
    """The floor of numbers, one a text, computed together and each alone; 0 without texts."""
    ordered = sorted(set(texts), key=len)
    sample = _spread(ordered, FLOOR_TEXTS)
    if not sample:
        return 0.0
    once = together(ordered)[[ordered.index(text) for text in sample]]
    return WIDE * max(STEP, float(np.abs(once - np.concatenate([alone(text) for text in sample])).max()))


def entailment_floor(verifier: Entailment, pairs: Sequence[tuple[str, str]]) -> float:
    """Of each of the verifier's three probabilities for a (claim, evidence) pair, in [0, 1]."""
    each = list(dict.fromkeys(pairs))
    if not each:
        return 0.0
    said = _probabilities(verifier, each)
    # Rounded logits move a probability the most where it is near one half.
    chosen = np.argsort(np.abs(said - 0.5).min(axis=1), kind="stable")[:FLOOR_PAIRS]
    sample, said = [each[i] for i in chosen], said[chosen]
    # A few pairs of like length would be computed together as they are apart: longer ones beside them pad them.
    longer = [(claim, f"{evidence} {evidence}") for claim, evidence in sample[-1:]]
    longer += [(f"{claim} {claim}", evidence) for claim, evidence in sample[:1]]
    others = [_probabilities(verifier, [*sample, *longer])[: len(sample)]]
    others += [np.concatenate([_probabilities(verifier, [pair]) for pair in sample])]
    # What multiplies bfloat16 here may have multiplied float32 where the case was made, and the other way round.
    others += [_probabilities(verifier.in_other_format(), sample)] if hasattr(verifier, "in_other_format") else []
    return WIDE * max(STEP, *(float(np.abs(said - other).max()) for other in others))


def _probabilities(verifier: Entailment, pairs: Sequence[tuple[str, str]]) -> Floats:
    return np.array([list(judged.scores.values()) for judged in verifier.judge(pairs)])


def token_floor(model: LanguageModel, rows: Sequence[tuple[TokenPrompt, Sequence[int]]]) -> float:
    """Of the log-probability (nats) of one token: by other sums, in float64, and token by token as in writing."""
    largest = 0.0
    for coded, ids in _spread(list(rows), FLOOR_ROWS):
        tokens = len(coded.ids) + len(ids)
        once = model.score([coded], ids)[0]
        with summed_otherwise(model, tokens):
            others = [model.score([coded], ids)[0]]
        with computed_otherwise(model, tokens) as other:
            others += [other.score([coded], ids)[0]]
        others += [_as_written(model, coded, ids)] if hasattr(model, "module") else []
        largest = max(largest, *(float(np.abs(once - again).max(initial=0.0)) for again in others))
    return WIDE * largest


def drop_floor(model: LanguageModel, coded: TokenPrompt, ids: Sequence[int]) -> float:
    """Of the difference (nats) that removed passages make to the log-probability of `ids` or of a part of them.

    Measured on the whole prompt, the prompt without passages, and with one passage alone, each in turn.
    """
    numbers = {number for number in coded.numbers if number is not None}
    alone = [coded.without(numbers - {number}) for number in sorted(numbers)]
    rows = [coded, coded.without(numbers), *_spread(alone, FLOOR_ROWS)]
    with computed_otherwise(model, len(coded.ids) + len(ids)) as other:
        parts = model.score(rows, ids) - other.score(rows, ids)
    return 2 * _sum_floor(parts)  # a difference of two rows


def relevance_floors(
    explain: Callable[..., Relevance],
    model: LanguageModel,
    prompt: Prompt,
    answer: Answer,
    spans: Sequence[tuple[int, int]],
    tokens: Sequence[int] = (),
) -> tuple[tuple[float, ...], float]:
    """Of a method's relevance, in the target's unit: each of `spans` its own, one for all answer tokens `tokens`.

    One floor holds for an input and for a sum over inputs: the rounding of all inputs of the row.
    """
    once = explain(model, prompt, answer, spans=spans, tokens=tokens)
    with computed_otherwise(model, len(once.by_span[0])) as other:
        again = explain(other, prompt, answer, spans=spans, tokens=tokens)
    by_span = tuple(_sum_floor(np.subtract(row, same)) for row, same in zip(once.by_span, again.by_span, strict=True))
    return by_span, _sum_floor(np.subtract(once.by_token, again.by_token)) if tokens else 0.0


def _sum_floor(parts: NDArray[np.float64]) -> float:
    """The largest floor of sums over the last axis, from the differences of their parts."""
    roots, sums = np.linalg.norm(parts, axis=-1), np.abs(parts.sum(axis=-1))
    return WIDE * float(max(roots.max(), sums.max()))


def rounding(values: Json, again: Json, least: float) -> dict[str, float]:
    """The floors of the fractions under each name, at any depth, from their differences; at least `least`."""
    found: dict[str, float] = {}
    others = dict(leaves(again))
    for path, value in leaves(values):
        if isinstance(value, float) and isinstance(other := others.get(path), float):
            name = path.rpartition(".")[2].partition("[")[0]
            found[name] = max(found.get(name, least), WIDE * abs(value - other))
    return found


class Listening:
    """A verifier that keeps the pairs it is asked, whose rounding is that of the numbers to be compared."""

    def __init__(self, verifier: Entailment) -> None:
        self.name, self.verifier = verifier.name, verifier
        self.pairs: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> Any:
        """The words shown with a verdict are the verifier's."""
        return getattr(self.__dict__["verifier"], name)

    def judge(self, pairs: Sequence[tuple[str, str]], watch: Watch = Watch()) -> list[Judged]:
        """The verifier's verdict."""
        self.pairs += pairs
        return self.verifier.judge(pairs, watch)

    def entailment(self, pairs: Sequence[tuple[str, str]], watch: Watch = Watch()) -> Floats:
        """The verifier's verdict."""
        self.pairs += pairs
        return self.verifier.entailment(pairs, watch)

    @property
    def floor(self) -> float:
        """The rounding of a probability that it gave, in [0, 1]."""
        return entailment_floor(self.verifier, self.pairs)


def _as_written(model: Any, coded: TokenPrompt, ids: Sequence[int]) -> NDArray[np.float64]:
    """The tokens' log-probabilities as writing computes them: one at a time, on what the cache holds."""
    from engine.models.writing import write_tokens

    given = iter(ids)
    with model.hold() as module:
        written = write_tokens(module, coded.ids, lambda _: next(given), len(ids), Watch())
        return np.array([logprob for _, logprob in written])


def _spread(values: list[T], most: int) -> list[T]:
    """At most about `most` of the values, spread evenly."""
    return values[:: max(1, -(-len(values) // most))]
