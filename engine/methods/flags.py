"""Distractor flag and concentration trigger (grounded refinement, sections 4.3.2 and 4.5.5), with their chance rates.

Over the first K content tokens a passage is *high in the gradient ranking* if it is among the top `used_top` by
|relevance| for at least `share` of them; it is flagged if it is also labelled not relevant. "Relied on" would say
more than a ranking shows. Ours: the rate at which either rule fires by chance, on random rankings of the same case.
Without labels the concentration trigger looks at shares of length-normalised relevance; the paper reports it as a
negative result, and chose 1.5 for five passages or fewer after seeing its data (section 4.5.6). Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import AttributionError
from engine.core.settings import Gradient
from engine.core.statistics import binomial_at_least
from engine.core.text import counted
from engine.core.values import Value
from engine.methods.spans import Floats

FEW = 10  # passages under which the rule says little
FEWEST_RANKED = 2  # passages under which both rules say nothing: one is always high and has all of the relevance
FEW_RATIO = 1.5  # concentration ratio for five passages or fewer
RANDOM_RANKINGS, SEED = 200, 1337


class PassageFlag(Value, frozen=True):
    """One passage: tokens (of K) in whose top it is, whether that is high, its label, and whether it is flagged."""

    number: int
    times: int
    high: bool
    relevant: bool | None
    flagged: bool


class Flags(Value, frozen=True):
    """`tokens` = K actually looked at. `chance` = probability that one passage is high under random rankings.

    `random_rate` = share of passages high over 200 random rankings of this case, `random_flag_rate` = share of those
    rankings in which the rule flags some passage labelled not relevant (0 without such labels). `sentence` says how
    much the rule tells with so many passages.
    """

    passages: tuple[PassageFlag, ...]
    tokens: int
    chance: float
    random_rate: float
    random_flag_rate: float
    sentence: str

    @property
    def flagged(self) -> tuple[int, ...]:
        """Numbers of the flagged passages."""
        return tuple(p.number for p in self.passages if p.flagged)


class Concentration(Value, frozen=True):
    """Whether the label-free trigger fires, for which passages, and on how many of the K tokens each exceeded.

    `random_rate` = share of 200 draws in which it fires, each with every token's shares shuffled over the passages.
    """

    fires: bool
    numbers: tuple[int, ...]
    times: tuple[int, ...]
    tokens: int
    ratio: float
    random_rate: float
    sentence: str


def times_in_top(relevance: Floats, top: int) -> NDArray[np.int64]:
    """For each passage the number of tokens in whose `top` it is by |relevance|. `relevance`: (tokens, passages).

    A passage without any relevance for a token is not in its top, however few others have some.
    """
    order = np.argsort(-np.abs(relevance), axis=1, kind="stable")[:, :top]
    matters = np.take_along_axis(relevance, order, axis=1) != 0
    return np.bincount(order[matters], minlength=relevance.shape[1])


def chance_rate(tokens: int, passages: int, settings: Gradient) -> float:
    """P(Binomial(K, used_top / n) >= share K): how often one passage is high when rankings are random.

    >>> [round(chance_rate(10, n, Gradient()), 2) for n in (15, 10, 5)]
    [0.32, 0.62, 0.99]
    """
    return binomial_at_least(settings.share * tokens, tokens, min(1.0, settings.used_top / passages))


def distractor_flags(
    relevance: Sequence[Sequence[float]],
    numbers: Sequence[int],
    labels: Mapping[int, bool | None],
    settings: Gradient = Gradient(),
) -> Flags:
    """Apply the rule. `relevance`: signed, (tokens, passages), of which the first K rows count.

    Fewer than K content tokens: the share is of those there are. Raises `AttributionError` without any.
    """
    matrix = _matrix(relevance, len(numbers), settings.first_tokens)
    tokens, count = matrix.shape
    times = times_in_top(matrix, settings.used_top)
    needed = settings.share * tokens - 1e-9
    distractor = np.array([labels.get(number) is False for number in numbers])
    high = times >= needed
    rng = np.random.default_rng(SEED)
    drawn = [times_in_top(rng.random((tokens, count)), settings.used_top) for _ in range(RANDOM_RANKINGS)]
    random_high = np.array(drawn) >= needed  # (rankings, passages)
    few = f"With {counted(count, 'passage')} this rule flags almost everything and says little."
    if count < FEWEST_RANKED:
        few = "One passage is always high in its ranking, so this rule only repeats its label."
    return Flags(
        passages=tuple(
            PassageFlag(number=n, times=int(t), high=bool(h), relevant=labels.get(n), flagged=bool(h and d))
            for n, t, h, d in zip(numbers, times, high, distractor, strict=True)
        ),
        tokens=tokens,
        chance=chance_rate(tokens, count, settings),
        random_rate=float(random_high.mean()),
        random_flag_rate=float((random_high & distractor).any(axis=1).mean()),
        sentence=few if count < FEW else "",
    )


def _matrix(relevance: Sequence[Sequence[float]], passages: int, first: int) -> Floats:
    matrix = np.asarray(relevance, dtype=np.float64)[:first]
    if matrix.ndim != 2 or not matrix.size or matrix.shape[1] != passages:
        raise AttributionError(
            "The answer has no content tokens, or there are no passages to rank. Choose an answer with both."
        )
    return matrix


def concentration(
    relevance: Sequence[Sequence[float]],
    numbers: Sequence[int],
    lengths: Sequence[int],
    settings: Gradient = Gradient(),
) -> Concentration:
    """share_p = |sum over p| / sum over passages of the same; fires where it reaches ratio x len_p / total length.

    `lengths` are the passages' token counts. A passage counts if that holds on at least `share` of the K tokens.
    """
    matrix = np.abs(_matrix(relevance, len(numbers), settings.first_tokens))
    ratio = min(settings.ratio, FEW_RATIO) if len(numbers) <= 5 else settings.ratio
    totals = matrix.sum(axis=1, keepdims=True)
    shares = np.divide(matrix, totals, out=np.zeros_like(matrix), where=totals > 0)
    expected = np.asarray(lengths, dtype=np.float64) / max(1, sum(lengths))
    needed = settings.share * len(matrix) - 1e-9
    times = (shares >= ratio * expected).sum(axis=0)
    hit = [n for n, t in zip(numbers, times, strict=True) if t >= needed]
    rng = np.random.default_rng(SEED)
    drawn = (rng.permuted(shares, axis=1) for _ in range(RANDOM_RANKINGS))
    random_fires = [((one >= ratio * expected).sum(axis=0) >= needed).any() for one in drawn]
    sentence = "The paper reports this trigger as a negative result."
    if len(numbers) <= 5:
        sentence += f" The ratio {FEW_RATIO} for five passages or fewer was chosen after seeing its data."
    if len(numbers) < FEWEST_RANKED:
        sentence = "One passage has all of the relevance and all of the text, so this trigger says nothing here."
    return Concentration(
        fires=bool(hit),
        numbers=tuple(hit),
        times=tuple(int(t) for t in times),
        tokens=len(matrix),
        ratio=ratio,
        random_rate=float(np.mean(random_fires)),
        sentence=sentence,
    )
