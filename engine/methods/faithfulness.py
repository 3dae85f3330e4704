"""Faithfulness of a ranking of passage tokens: MoRF, LeRF and ABPC (grounded refinement, section 4.2).

Passage tokens are deleted, positions closed up, in equal batches: most relevant first (MoRF) or least relevant
first (LeRF), by signed relevance. Confidence = probability of the target token, mean over the explained tokens.
ABPC = AUC(LeRF) - AUC(MoRF) by the trapezoid over the share removed, so it lies in [-1, 1]; positive = the
ranking finds what the answer needs. Published values are on other scales: compare sign and order. Next to it: random
rankings, the occlusion ranking, a curve that removes whole passages, since deleting single tokens makes text that no
model has seen, and how far methods agree. Left out: removing tokens outside the passages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, combinations

import numpy as np

from engine.core.errors import AttributionError
from engine.core.progress import Watch
from engine.core.settings import Faithfulness
from engine.core.statistics import rank_correlation, sign_agreement
from engine.core.values import Attribution, Value
from engine.methods.spans import Floats, Mask, Span, drop_positions, passage_numbers, passage_positions
from engine.models.protocols import LanguageModel, TokenPrompt, require


class Curves(Value, frozen=True):
    """Perturbation curves of one ranking.

    `shares` removed in [0, 1], ascending from 0 to 1; `morf` and `lerf` the mean probability of the explained tokens
    there, `morf_nats` and `lerf_nats` their mean log-probability. `abpc` in [-1, 1], `abpc_nats` in nats.
    """

    ranking: str
    shares: tuple[float, ...]
    morf: tuple[float, ...]
    lerf: tuple[float, ...]
    morf_nats: tuple[float, ...]
    lerf_nats: tuple[float, ...]
    abpc: float
    abpc_nats: float


class RandomABPC(Value, frozen=True):
    """ABPC over random rankings: mean, sample standard deviation, smallest, largest, number of rankings."""

    mean: float
    deviation: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, found: Sequence[float]) -> RandomABPC:
        """Of the rankings' ABPCs, at least one; the deviation of one is 0."""
        array = np.asarray(found, dtype=np.float64)
        deviation = float(array.std(ddof=1)) if array.size > 1 else 0.0
        low, high = float(array.min()), float(array.max())
        return cls(mean=float(array.mean()), deviation=deviation, low=low, high=high, n=array.size)

    @property
    def reach(self) -> float:
        """The largest ABPC of these rankings and their reverses: a reversed ranking swaps its curves, so its sign."""
        return max(self.high, -self.low)


def batches(ranking: Sequence[int], steps: int) -> tuple[frozenset[int], ...]:
    """The units gone after 0, 1, ..., `steps` equal batches of `ranking` (sizes differ by at most one)."""
    steps = min(steps, len(ranking))
    ends = [round(k * len(ranking) / steps) for k in range(steps + 1)]
    return tuple(frozenset(ranking[:end]) for end in ends)


def token_ranking(relevance: Sequence[float], positions: Sequence[int]) -> tuple[int, ...]:
    """`positions` from the largest signed relevance down; ties in text order. `relevance` is by input position."""
    return tuple(sorted(positions, key=lambda i: (-relevance[i], i)))


def passage_ranking(prompt: TokenPrompt, scores: Sequence[float], groups: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Token positions by their passage's score (the occlusion ranking), ties inside a passage in text order."""
    order = sorted(range(len(groups)), key=lambda j: (-scores[j], j))
    return tuple(i for j in order for i in sorted(passage_positions(prompt, groups[j])))


def removable(prompt: TokenPrompt) -> tuple[int, ...]:
    """All passage positions, in text order; `AttributionError` if there is none."""
    positions = sorted(passage_positions(prompt, passage_numbers(prompt)))
    if not positions:
        raise AttributionError("The prompt has no passages to remove. Answer with at least one passage first.")
    return tuple(positions)


@dataclass(frozen=True)
class Deletion:
    """Passage tokens deleted from one prompt before one answer; equal prompts are scored once.

    `explained` (tokens,) says which answer tokens count; `rows` are their log-probabilities (nats) by the positions
    that are gone. The methods raise `CannotDo`, `Cancelled`, `AttributionError` where a probability is not finite.
    """

    model: LanguageModel
    prompt: TokenPrompt
    answer_ids: Sequence[int]
    explained: Mask
    watch: Watch = field(default_factory=Watch)
    rows: dict[frozenset[int], Floats] = field(default_factory=dict)

    def curves(self, rankings: Mapping[str, Sequence[int]], steps: int = 10) -> dict[str, Curves]:
        """MoRF and LeRF of every ranking (passage positions, most relevant first), from one `score` call."""
        sides = {name: (batches(order, steps), batches(order[::-1], steps)) for name, order in rankings.items()}
        self._score(gone for pair in sides.values() for side in pair for gone in side)
        return {
            name: self._curves(name, pair, [len(gone) / len(rankings[name]) for gone in pair[0]])
            for name, pair in sides.items()
        }

    def passage_curves(self, scores: Sequence[float]) -> Curves:
        """As `curves`, one whole passage removed a step, in the order of `scores` (one a passage, in prompt order)."""
        passages = [passage_positions(self.prompt, (number,)) for number in passage_numbers(self.prompt)]
        order = sorted(range(len(passages)), key=lambda j: (-scores[j], j))
        ways = ((passages[j] for j in way) for way in (order, order[::-1]))
        sides = [list(accumulate(way, frozenset.union, initial=frozenset[int]())) for way in ways]
        self._score(gone for side in sides for gone in side)
        return self._curves("passages", sides, [k / len(passages) for k in range(len(passages) + 1)])

    def random_abpcs(self, settings: Faithfulness = Faithfulness()) -> Iterator[RandomABPC]:
        """ABPC of random rankings of the same tokens: what a ranking has to beat. About 0 by symmetry.

        A value comes after each ranking, from the second on. Rankings share the rows with nothing and with all gone.
        """
        rng = np.random.default_rng(settings.seed)
        positions = np.array(removable(self.prompt))
        found: list[float] = []
        silent, rows = Watch(cancel=self.watch.cancel), self.rows
        for number in range(settings.rankings):
            self.watch.step("random rankings", number, settings.rankings)
            rows = {gone: row for gone, row in rows.items() if len(gone) in (0, len(positions))}
            order = {"random": rng.permutation(positions).tolist()}
            one = replace(self, watch=silent, rows=rows)
            found.append(one.curves(order, settings.steps)["random"].abpc)
            if len(found) > 1 or settings.rankings == 1:
                yield RandomABPC.of(found)

    def _score(self, wanted: Iterable[frozenset[int]]) -> None:
        """Add the explained tokens' log-probabilities under each prompt, by the positions that are gone, to `rows`."""
        require(self.model, "score")
        new = [gone for gone in dict.fromkeys(wanted) if gone not in self.rows]
        prompts = [drop_positions(self.prompt, gone) for gone in new]
        scored = self.model.score(prompts, self.answer_ids, self.watch)[:, self.explained]
        if not np.isfinite(scored).all():
            raise AttributionError(f"{self.model.name} gave a probability that is not finite. Load it in float32.")
        self.rows.update(zip(new, scored, strict=True))

    def _curves(self, name: str, sides: Sequence[Sequence[frozenset[int]]], shares: Sequence[float]) -> Curves:
        most, least = (np.array([self.rows[gone] for gone in side]) for side in sides)
        morf, lerf = (tuple(np.exp(part).mean(axis=1).tolist()) for part in (most, least))
        morf_nats, lerf_nats = (tuple(part.mean(axis=1).tolist()) for part in (most, least))
        return Curves(
            ranking=name,
            shares=tuple(shares),
            morf=morf,
            lerf=lerf,
            morf_nats=morf_nats,
            lerf_nats=lerf_nats,
            abpc=float(np.trapezoid(lerf, shares) - np.trapezoid(morf, shares)),
            abpc_nats=float(np.trapezoid(lerf_nats, shares) - np.trapezoid(morf_nats, shares)),
        )


def diagnostics(relevance: Sequence[float], prompt: TokenPrompt, target: float) -> dict[str, float | None]:
    """The shape of a relevance map (grounded refinement, section 4.2.5). `target` is the explained sum of targets.

    `conservation` = sum of relevance / target; `first_token_share` = |R| of position 0 over all |R|;
    `density_ratio` = mean |R| on passage tokens over mean |R| elsewhere. None where a denominator is 0.
    """
    values = np.abs(np.asarray(relevance, dtype=np.float64))
    inside = np.zeros(len(values), dtype=bool)
    inside[list(removable(prompt))] = True
    elsewhere = float(values[~inside].mean()) if (~inside).any() else 0.0
    total = float(values.sum())
    return {
        "conservation": float(np.sum(relevance)) / target if target else None,
        "first_token_share": float(values[0]) / total if total else None,
        "density_ratio": float(values[inside].mean()) / elsewhere if elsewhere else None,
    }


class Pair(Value, frozen=True):
    """Two methods on the answer: Spearman's rho of the ranks in [-1, 1], share of equal signs, same first source.

    None where it is not defined (fewer than two sources, or equal scores everywhere). With few sources rho is
    coarse: `sources` says how many there are.
    """

    first: str
    second: str
    rho: float | None
    signs: float | None
    same_top: bool
    sources: int


def agreement(methods: Mapping[str, Attribution], span: Span | None = None) -> tuple[Pair, ...]:
    """All pairs of `methods` on a span, by default the first (whole answer); `AttributionError` on unlike sources."""
    sources = {attribution.sources for attribution in methods.values()}
    if len(sources) > 1:
        raise AttributionError("The methods ran on different sources. Run them on the same passages.")
    rows = {name: attribution.spans.index(span) if span else 0 for name, attribution in methods.items()}
    signed = {name: attribution.scores[rows[name]] for name, attribution in methods.items()}
    ranked = {name: ranked_by(attribution, rows[name]) for name, attribution in methods.items()}
    return tuple(
        Pair(
            first=a,
            second=b,
            rho=rank_correlation(ranked[a], ranked[b]),
            signs=sign_agreement(signed[a], signed[b]),
            same_top=bool(np.argmax(ranked[a]) == np.argmax(ranked[b])),
            sources=len(signed[a]),
        )
        for a, b in combinations(methods, 2)
    )


def ranked_by(attribution: Attribution, span: int = 0) -> tuple[float, ...]:
    """The values that rank the sources: sums of |R| if the method has a value for each token, else the scores."""
    rows = attribution.details.absolute
    return rows[span] if rows else attribution.scores[span]


def first_source(attribution: Attribution, span: int = 0) -> int:
    """The place of the source that is ranked first."""
    return int(np.argmax(ranked_by(attribution, span)))
