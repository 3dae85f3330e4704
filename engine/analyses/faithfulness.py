"""Faithfulness of a case: curves of two rankings, the passage-level curve, random rankings, diagnostics, agreement."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec.structs import replace

from engine.analyses.kinds import FAITHFULNESS
from engine.core.errors import Cancelled
from engine.core.progress import Watch
from engine.core.settings import Faithfulness, Occlusion, Settings
from engine.core.values import (
    Analysis,
    Answer,
    Attribution,
    Case,
    Prompt,
    Value,
)
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
    random_abpc,
    removable,
    token_ranking,
)
from engine.methods.input_x_gradient import Relevance, input_x_gradient
from engine.methods.occlusion import occlusion
from engine.methods.spans import content_mask
from engine.methods.subject import analysis_of, kept, subject
from engine.models.hooks import count_forwards
from engine.models.protocols import LanguageModel

METHODS = ("input x gradient", "occlusion")  # what a report needs anyway
FURTHER = ("integrated gradients", "value-weighted attention")  # rankings that cost passes of their own


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
        """Whether its ABPC is above that of every random ranking: with 20 of them, by chance in 1 of 21 cases."""
        return curve.abpc > self.random.high


class Rankings(Value, frozen=True):
    """Which rankings a report measures; the names are those of registered methods."""

    methods: tuple[str, ...] = METHODS


def rankings_beside(method: str) -> Rankings:
    """The method's ranking with those that cost little beside it, so that a better one on this case is found."""
    return Rankings(methods=tuple(dict.fromkeys((*METHODS, registry.RECOMMENDED, "value-weighted attention", method))))


def rows_needed(passages: int, settings: Faithfulness, rankings: int = len(METHODS)) -> int:
    """Rows that a report sends through the model, at most: what it costs, before it runs."""
    steps = 2 * settings.steps
    return 2 + (passages + 1) + rankings * steps + 2 * passages + settings.rankings * (steps - 2)


def faithfulness_of(
    case: Case,
    model: LanguageModel,
    settings: Settings,
    watch: Watch | None = None,
    methods: Sequence[str] = METHODS,
) -> Analysis:
    """MoRF, LeRF and ABPC of the rankings on the case's passages, beside random rankings.

    `Cancelled` carries the analysis where random rankings were left out.
    """
    prompt, answer, notes = subject(case, model, settings)
    start = time.perf_counter()

    def keep(report: FaithfulnessReport) -> Analysis:
        seconds = time.perf_counter() - start
        whole = replace(report, forwards=count.rows, seconds=seconds, notes=(*notes, *report.notes))
        extra = {"faithfulness": settings.faithfulness.to_dict(), "gradient": settings.gradient.to_dict()}
        return analysis_of(case, model, settings, FAITHFULNESS, whole.to_dict(), extra)

    with count_forwards(model) as count:
        try:
            return keep(faithfulness(model, prompt, answer, settings, watch, methods))
        except Cancelled as stopped:
            raise kept(stopped, keep) from stopped


def faithfulness(
    model: LanguageModel,
    prompt: Prompt,
    answer: Answer,
    settings: Settings,
    watch: Watch | None = None,
    methods: Sequence[str] = METHODS,
) -> FaithfulnessReport:
    """The report of one prompt and answer, a curve a method; without gradients (`CannotDo`) there is none.

    `methods` are names of registered methods (`InputError` for another); the diagnostics are those of input x gradient.
    A run that is stopped among the random rankings raises `Cancelled` whose `partial` is the report with fewer.
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
    rankings = {name: _ranking(name, model, prompt, answer, settings, relevance, left_out, watch) for name in methods}
    found = curves(model, coded, ids, explained, rankings, settings.faithfulness.steps, watch)
    by_passage = passage_curves(model, coded, ids, explained, left_out.scores[0], watch)
    explained_target = float(sum(v for v, e in zip(relevance.values, explained, strict=True) if e))
    by_gradient = passage_attribution(relevance, coded)

    def report(random: RandomABPC, notes: tuple[str, ...] = ()) -> FaithfulnessReport:
        return FaithfulnessReport(
            model=model.name,
            curves=tuple(found.values()),
            passages=by_passage,
            random=random,
            diagnostics=diagnostics(relevance.by_span[0], coded, explained_target),
            agreement=agreement({"input x gradient": by_gradient, "occlusion": left_out}),
            notes=notes,
        )

    try:
        return report(random_abpc(model, coded, ids, explained, settings.faithfulness, watch))
    except Cancelled as stopped:
        if not isinstance(stopped.partial, RandomABPC):
            raise
        said = f"Stopped after {stopped.partial.n} of {settings.faithfulness.rankings} random rankings."
        raise Cancelled(str(stopped), report(stopped.partial, (said,))) from stopped


def _ranking(
    name: str,
    model: LanguageModel,
    prompt: Prompt,
    answer: Answer,
    settings: Settings,
    gradient: Relevance,
    left_out: Attribution,
    watch: Watch | None,
) -> Sequence[int]:
    """Passage tokens, most relevant first, by a registered method; the two that a report needs are not run again."""
    coded = model.encode(prompt)
    own = registry.method(name, settings.gradient, count_citation_markers=settings.occlusion.count_citation_markers)
    if own.explain is None:
        ranked = left_out if name == left_out.method else own.attribute(model, prompt, answer, left_out.spans, watch)
        return passage_ranking(coded, ranked.scores[0], ranked.sources)
    found = gradient if name == gradient.method else own.explain(model, prompt, answer, watch=watch)
    return token_ranking(found.by_span[0], removable(coded))
