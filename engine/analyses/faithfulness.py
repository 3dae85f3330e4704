"""Faithfulness of a case: curves of two rankings, the passage-level curve, random rankings, diagnostics, agreement."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from engine.analyses.attribution import of_the_stamp
from engine.analyses.floors import rounding, token_floor
from engine.analyses.kind import COSTS, FAITHFULNESS, ByModel, Kind, Outcome, RunContext, less, words_of
from engine.cases.blocks import Block, Facts, Fold, notices, table
from engine.cases.review import Review
from engine.core.progress import Watch, last
from engine.core.settings import Faithfulness, Occlusion, Settings
from engine.core.values import Analysis, Answer, Case, Prompt, Value
from engine.methods import registry
from engine.methods.aggregate import passage_attribution
from engine.methods.faithfulness import (
    Curves,
    Pair,
    RandomABPC,
    agreement,
    curves,
    diagnostics,
    passage_curves,
    passage_ranking,
    random_abpcs,
    removable,
    token_ranking,
)
from engine.methods.input_x_gradient import input_x_gradient
from engine.methods.occlusion import occlusion
from engine.methods.spans import content_mask
from engine.methods.subject import analysis_of, subject
from engine.models.hooks import count_forwards
from engine.models.memory import computed_otherwise
from engine.models.protocols import LanguageModel

TELLING = 19  # random rankings: above all of them by chance in 1 of 20 cases
METHODS = ("input x gradient", "occlusion")  # what a report needs anyway
FURTHER = (registry.RECOMMENDED, "integrated gradients", "value-weighted attention")  # passes of their own


class FaithfulnessReport(Value, frozen=True):
    """Curves of the gradient and the occlusion ranking, the passage-level curve, random rankings, diagnostics."""

    model: str
    curves: tuple[Curves, ...]
    passages: Curves
    random: RandomABPC
    diagnostics: dict[str, float | None]
    agreement: tuple[Pair, ...]
    forwards: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    def curve_of(self, ranking: str) -> Curves | None:
        """The curves of that ranking; None where it was not measured."""
        return next((curve for curve in self.curves if curve.ranking == ranking), None)

    def is_above_random(self, curve: Curves) -> bool:
        """Whether its ABPC is above that of every random ranking, of which there are enough to tell (`can_tell`)."""
        return self.can_tell and curve.abpc > self.random.high

    @property
    def can_tell(self) -> bool:
        """Whether being above all random rankings happens by chance in at most 1 of 20 cases."""
        return self.random.n >= TELLING


class Rankings(ByModel, frozen=True):
    """Which rankings a report measures; the names are those of registered methods."""

    methods: tuple[str, ...] = METHODS


def rankings_beside(method: str, model: str) -> Rankings:
    """The method's ranking and cheap alternatives, to find a better one on this case."""
    names = dict.fromkeys((*METHODS, registry.RECOMMENDED, "value-weighted attention", method))
    return Rankings(model=model, methods=tuple(names))


def rows_needed(passages: int, settings: Faithfulness, rankings: int = len(METHODS)) -> int:
    """Rows that a report sends through the model, at most: what it costs, before it runs."""
    steps = 2 * settings.steps
    return 2 + (passages + 1) + rankings * steps + 2 * passages + settings.rankings * (steps - 2)


def _run(case: Case, options: Rankings, context: RunContext) -> Iterator[Analysis]:
    """MoRF, LeRF and ABPC of the rankings on the case's passages and of random ones; a value after each random one."""
    model, settings = context.tools.scorer(options.model), context.settings
    prompt, answer, notes = subject(case, model, settings)
    start = time.perf_counter()
    extra = {"faithfulness": settings.faithfulness.to_dict(), "gradient": settings.gradient.to_dict()}
    with count_forwards(model) as count:
        for found in measured(model, prompt, answer, settings, context.watch, options.methods):
            seconds = time.perf_counter() - start
            report = replace(found, forwards=count.rows, seconds=seconds, notes=(*notes, *found.notes))
            yield analysis_of(case, model, settings, FAITHFULNESS, report, extra)


def measured(
    model: LanguageModel,
    prompt: Prompt,
    answer: Answer,
    settings: Settings,
    watch: Watch | None = None,
    methods: Sequence[str] = METHODS,
) -> Iterator[FaithfulnessReport]:
    """The report of one prompt and answer, a curve a method; without gradients (`CannotDo`) there is none.

    `methods` are names of registered methods (`InputError` for another); the diagnostics are those of input x gradient.
    A report comes after each random ranking.
    """
    coded = model.encode(prompt)
    ids = [token.id for token in answer.tokens]
    counted = settings.occlusion.count_citation_markers
    explained = content_mask(answer, count_citation_markers=counted)
    relevance = input_x_gradient(
        model, prompt, answer, target=settings.gradient.target, count_citation_markers=counted, watch=watch
    )
    own = Occlusion(count_citation_markers=counted)
    left_out = occlusion(model, prompt, answer, spans=relevance.spans, floors=False, settings=own, watch=watch)

    def ranking(name: str) -> Sequence[int]:
        """Passage tokens, most relevant first; the two methods that the report needs anyway are not run again."""
        own = registry.method(name, settings)
        if own.explain is None:
            ranked = (
                left_out if name == left_out.method else own.attribute(model, prompt, answer, left_out.spans, watch)
            )
            return passage_ranking(coded, ranked.scores[0], ranked.sources)
        explained = relevance if name == relevance.method else own.explain(model, prompt, answer, watch=watch)
        return token_ranking(explained.by_span[0], removable(coded))

    rankings = {name: ranking(name) for name in methods}
    found = curves(model, coded, ids, explained, rankings, settings.faithfulness.steps, watch)
    by_passage = passage_curves(model, coded, ids, explained, left_out.scores[0], watch)
    explained_target = float(sum(v for v, e in zip(relevance.values, explained, strict=True) if e))
    by_gradient = passage_attribution(relevance, coded)

    for random in random_abpcs(model, coded, ids, explained, settings.faithfulness, watch):
        wanted = settings.faithfulness.rankings
        said = f"Stopped after {random.n} of {wanted} random rankings."
        yield FaithfulnessReport(
            model=model.name,
            curves=tuple(found.values()),
            passages=by_passage,
            random=random,
            diagnostics=diagnostics(relevance.by_span[0], coded, explained_target),
            agreement=agreement({"input x gradient": by_gradient, "occlusion": left_out}),
            notes=(said,) if random.n < wanted else (),
        )


def _blocks(case: Case, found: FaithfulnessReport, review: Review) -> list[Block]:
    """ABPC of every ranking, the curves behind it, and how far the methods agree."""
    random = found.random
    rankings = (*found.curves, found.passages)
    rows = [(c.ranking, f"{c.abpc:+z.3f}", f"{c.abpc_nats:+z.3f}") for c in rankings]
    rows.append((f"random, mean of {random.n}", f"{random.mean:+z.3f}", ""))
    rows.append(("random, smallest and largest", f"{random.low:+z.3f} to {random.high:+z.3f}", ""))
    cost = f"{found.forwards:,} forwards, {found.seconds:.1f} s"
    columns = ("Ranking", "ABPC, probability", "ABPC, nats")
    areas = table("Area between the perturbation curves", columns, rows, numeric={1, 2})
    pairs = tuple((name, "not defined" if v is None else f"{v:.3f}") for name, v in found.diagnostics.items())
    curves = tuple(
        table(
            f"{c.ranking}: mean probability of the explained tokens while sources are removed",
            ("Share removed", "MoRF", "LeRF"),
            ((f"{s:.2f}", f"{m:.3f}", f"{least:.3f}") for s, m, least in zip(c.shares, c.morf, c.lerf, strict=True)),
            numeric={0, 1, 2},
        )
        for c in rankings
    )
    return [
        Facts((("Scored by", found.model), ("Cost", cost), *pairs)),
        *notices(found.notes),
        areas,
        Fold("The curves", curves),
    ]


def _again(case: Case, analysis: Analysis, model: LanguageModel, context: RunContext) -> Outcome:
    """The report again, its rounding measured with a few random rankings."""
    settings = context.settings
    prompt, answer, _ = subject(case, model, settings)
    coded, methods = model.encode(prompt), RankingsGiven.from_dict(analysis.result).rankings
    values = less(last(measured(model, prompt, answer, settings, methods=methods)))
    # A probability moves by no more than its logarithm does.
    floor = token_floor(model, [(coded, [token.id for token in answer.tokens])])
    # Random rankings cost the most and no rounding turns them round.
    few = replace(settings, faithfulness=replace(settings.faithfulness, rankings=2))
    with computed_otherwise(model, len(coded.ids) + len(answer.tokens)) as other:
        again = less(last(measured(other, prompt, answer, few, methods=methods)), COSTS | {"random"})
    return Outcome(values=values, floor=floor, floors=rounding(values, again, floor))


class RankingsGiven(Value, frozen=True):
    """The names of the rankings that faithfulness was asked of."""

    rankings: tuple[str, ...]


def _cost(case: Case, options: Rankings, settings: Settings) -> str:
    rows = rows_needed(len(case.passages), settings.faithfulness, len(options.methods))
    return f"up to {rows} forward passes, on average over half of {words_of(case):,} words"


KIND = Kind(
    name=FAITHFULNESS,
    title="Faithfulness of the attributions",
    result=FaithfulnessReport,
    blocks=_blocks,
    options=Rankings,
    run=_run,
    cost=_cost,
    terms=("faithfulness",),
    again=of_the_stamp(_again, lambda report: RankingsGiven(rankings=tuple(c.ranking for c in report.curves))),
)
