"""Faithfulness of a case: curves of two rankings, the passage-level curve, random rankings, diagnostics, agreement."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from engine.analyses.attribution import of_the_stamp, settings_of
from engine.analyses.floors import rounding, token_floor
from engine.analyses.kind import COSTS, FAITHFULNESS, ByModel, Kind, Outcome, RunContext, less, words_of
from engine.cases.blocks import Block, Cell, Facts, Fold, Table, notices, table
from engine.cases.review import Review
from engine.cases.store import added
from engine.core.errors import AttributionError, ModelError
from engine.core.progress import Watch, last
from engine.core.settings import Faithfulness, Settings
from engine.core.text import counted as number_of
from engine.core.values import Analysis, Answer, Attribution, Case, Prompt, Stamp, Value, inputs_hash
from engine.methods import registry
from engine.methods.aggregate import passage_attribution
from engine.methods.faithfulness import (
    Curves,
    Deletion,
    Pair,
    RandomABPC,
    agreement,
    diagnostics,
    first_source,
    passage_ranking,
    removable,
    token_ranking,
)
from engine.methods.input_x_gradient import Relevance, input_x_gradient
from engine.methods.occlusion import occlusion
from engine.methods.spans import Span, content_mask, passage_numbers
from engine.methods.subject import analysis_of, stamp_for, subject
from engine.models.hooks import count_forwards
from engine.models.memory import computed_otherwise
from engine.models.protocols import LanguageModel

TELLING = 9  # random rankings: above all of them and their reverses by chance in 1 of 20 cases
METHODS = ("input x gradient", "occlusion")  # what a report needs anyway
FURTHER = (registry.RECOMMENDED, "integrated gradients", "value-weighted attention")  # passes of their own
CHEAP = ("input x gradient", registry.RECOMMENDED, "value-weighted attention")  # at most one pass each way


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

    @property
    def whole_passages(self) -> Curves | None:
        """The curve of whole passages; None with one passage, which cannot be ranked."""
        return self.passages if len(self.passages.shares) > 2 else None

    def curve_of(self, ranking: str) -> Curves | None:
        """The curves of that ranking; None where it was not measured."""
        return next((curve for curve in self.curves if curve.ranking == ranking), None)

    def check_of(self, ranking: str) -> RankingCheck | None:
        """One ranking compared with random ones, and what does better on this case; None where it was not measured."""
        curve = self.curve_of(ranking)
        if curve is None:
            return None
        reach = self.random.reach  # of every random ranking and its reverse
        above = curve.abpc > reach if self.random.n >= TELLING else None
        better = [(c.ranking, c.abpc) for c in self.curves if above is False and c.abpc > reach and self._ranks(c)]
        return RankingCheck(curve.abpc, self.random, above, tuple(sorted(better, key=lambda pair: -pair[1])))

    def _ranks(self, curve: Curves) -> bool:
        """Whether the curve's order is a method's: with one passage, what ranks passages has the order of the text."""
        return self.whole_passages is not None or registry.method(curve.ranking).explain is not None


class RankingCheck(Value, frozen=True):
    """The ABPC of a ranking next to random ones of the same tokens.

    `above_random` is None where there are too few random rankings to tell. `better` are the rankings above random on
    this case with their ABPC, the best first, where this one is not.
    """

    abpc: float
    random_abpc: RandomABPC
    above_random: bool | None
    better: tuple[tuple[str, float], ...] = ()

    @property
    def sentence(self) -> str:
        """The comparison in words."""
        random = self.random_abpc
        spread = f"{number_of(random.n, 'random ranking')} (within ±{random.reach:.3f})"
        if self.above_random is None:
            return f"ABPC {self.abpc:+z.3f} next to {spread}. It takes {TELLING} to rule out chance."
        if self.above_random:
            return f"ABPC {self.abpc:+z.3f}, above all {spread}."
        named = ", ".join(f"{name} ({abpc:+z.3f})" for name, abpc in self.better)
        other = f"Better: {named}." if named else "No other ranking measured is above random either."
        return f"ABPC {self.abpc:+z.3f}, not above all {spread}. Do not rely on this map here. {other}"


class Rankings(ByModel, frozen=True):
    """The registered methods that a report measures, and those to try where the first is not above random."""

    methods: tuple[str, ...] = METHODS
    otherwise: tuple[str, ...] = ()


def rankings_beside(method: str, model: str) -> Rankings:
    """The method's ranking and occlusion's; cheap alternatives where the method's is not above random."""
    own = tuple(dict.fromkeys((method, "occlusion")))
    return Rankings(model=model, methods=own, otherwise=tuple(name for name in CHEAP if name not in own))


def rows_needed(passages: int, settings: Faithfulness, rankings: int = len(METHODS)) -> int:
    """Rows that a report sends through the model, at most: what it costs, before it runs."""
    steps = 2 * settings.steps
    return 2 + (passages + 1) + rankings * steps + 2 * passages + settings.rankings * (steps - 2)


def rows_ahead(case: Case, options: Rankings, settings: Settings) -> int:
    """Rows that a run sends through the model, at most: without what the case's report has already."""
    inputs = inputs_hash(case.question, case.passages, case.answer.text)
    known = _to_add_to(report_by(case, options.model, settings, _decisive, inputs=inputs), options.methods, settings)
    if known is None:
        count = len(options.methods) + len(options.otherwise)
        return rows_needed(len(case.passages), settings.faithfulness, count)
    missing = [name for name in (*options.methods, *options.otherwise) if known.curve_of(name) is None]
    return 2 * settings.faithfulness.steps * len(missing)


def ranked_with(given: Settings, others: Settings = Settings()) -> Settings:
    """The settings that a ranking of tokens depends on from `given`, all others from `others`."""
    gradient = replace(others.gradient, target=given.gradient.target, integrated_steps=given.gradient.integrated_steps)
    occlusion = replace(others.occlusion, count_citation_markers=given.occlusion.count_citation_markers)
    return replace(others, prompting=given.prompting, gradient=gradient, occlusion=occlusion)


def _decisive(settings: Settings) -> Settings:
    """The settings that the numbers of a report depend on."""
    return replace(ranked_with(settings), faithfulness=replace(settings.faithfulness, check_maps=True))


def report_by(
    case: Case, model: str, settings: Settings, of: Callable[[Settings], Settings] = ranked_with, **stamped: str
) -> FaithfulnessReport | None:
    """The case's report by that model, if the settings that matter (`of`) were these, and its stamp says `stamped`.

    By default those matter that its rankings were computed with.
    """
    stored = case.analysis(f"{FAITHFULNESS}:{model}")
    if stored is None or of(settings_of(stored.stamp)) != of(settings):
        return None
    same = all(getattr(stored.stamp, name) == value for name, value in stamped.items())
    return FaithfulnessReport.from_dict(stored.result) if same else None


def _known(case: Case, stamp: Stamp) -> FaithfulnessReport | None:
    """The case's report, where the same model measured it with the same settings on the same inputs."""
    same = {name: getattr(stamp, name) for name in ("inputs", "revision", "dtype", "template")}
    return report_by(case, stamp.model, settings_of(stamp), _decisive, **same)


def _to_add_to(
    known: FaithfulnessReport | None, methods: Sequence[str], settings: Settings
) -> FaithfulnessReport | None:
    """The report, if it is whole and lacks one of the rankings; one that lacks none is asked for anew."""
    if known is None or known.random.n < settings.faithfulness.rankings:
        return None
    return known if any(known.curve_of(name) is None for name in methods) else None


def _run(case: Case, options: Rankings, context: RunContext) -> Iterator[Analysis]:
    """A report after each random ranking; only what the case's report with the same settings lacks is measured."""
    model, settings = context.tools.scorer(options.model), context.settings
    prompt, answer, notes = subject(case, model, settings)
    start = time.perf_counter()
    extra = {"faithfulness": settings.faithfulness.to_dict(), "gradient": settings.gradient.to_dict()}
    known = _to_add_to(_known(case, stamp_for(case, model, settings, extra)), options.methods, settings)
    with count_forwards(model) as count:
        wanted = options.methods, options.otherwise
        for found in measured(model, prompt, answer, settings, context.watch, *wanted, known):
            seconds = time.perf_counter() - start
            if known is None:
                report = replace(found, forwards=count.rows, seconds=seconds, notes=(*notes, *found.notes))
            else:
                report = replace(found, forwards=known.forwards + count.rows, seconds=known.seconds + seconds)
            yield analysis_of(case, model, settings, FAITHFULNESS, report, extra)


def _entered(case: Case, analysis: Analysis) -> Case:
    """The case with the report; rankings of an earlier one with the same settings stay in it."""
    known, report = _known(case, analysis.stamp), FaithfulnessReport.from_dict(analysis.result)
    kept = tuple(c for c in known.curves if report.curve_of(c.ranking) is None) if known else ()
    return added(case, replace(analysis, result=replace(report, curves=(*report.curves, *kept))))


def measured(
    model: LanguageModel,
    prompt: Prompt,
    answer: Answer,
    settings: Settings,
    watch: Watch = Watch(),
    methods: Sequence[str] = METHODS,
    otherwise: Sequence[str] = (),
    known: FaithfulnessReport | None = None,
) -> Iterator[FaithfulnessReport]:
    """The report of one prompt and answer, a curve a method; without gradients (`CannotDo`) there is none.

    `methods` are names of registered methods (`InputError` for another); the diagnostics are those of input x gradient.
    A report comes after each random ranking. `methods` are added to a report that is `known`: the random rankings, the
    curve of passages and the diagnostics are the same for every method. Where the first of `methods` is not above
    random, those of `otherwise` are added too, as far as the model can do them.
    """
    deleting = _Deleting(model, prompt, answer, settings, watch)
    report = known
    for report in deleting.report(methods) if known is None else (deleting.with_curves(known, methods),):
        yield report
    check = report.check_of(methods[0]) if report is not None and otherwise else None
    if report is None or check is None or check.above_random is not False:
        return
    for name in otherwise:
        with contextlib.suppress(ModelError, AttributionError):  # another ranking may do better, none has to
            report = deleting.with_curves(report, (name,))
    yield report


class _Deleting:
    """Deletion of one prompt's passage tokens in the order of registered methods' rankings."""

    def __init__(self, model: LanguageModel, prompt: Prompt, answer: Answer, settings: Settings, watch: Watch) -> None:
        self.given, self.watch = (model, prompt, answer), watch
        self.found: dict[str, Relevance | Attribution] = {}  # of the methods that have run
        self.counted = settings.occlusion.count_citation_markers
        self.explained = content_mask(answer, count_citation_markers=self.counted)
        self.coded, ids = model.encode(prompt), [token.id for token in answer.tokens]
        # Every passage is left out, however many there are: a curve by a surrogate would be another one.
        exact = replace(settings.occlusion, max_sources=max(1, len(passage_numbers(self.coded))))
        self.settings = replace(settings, occlusion=exact)
        self.deletion = Deletion(model, self.coded, ids, self.explained, watch)

    def with_curves(self, report: FaithfulnessReport, names: Iterable[str]) -> FaithfulnessReport:
        """The report with a curve for each of the methods that has none in it."""
        missing = [name for name in names if report.curve_of(name) is None]
        return replace(report, curves=(*report.curves, *self.curves(missing)))

    def curves(self, names: Iterable[str]) -> tuple[Curves, ...]:
        """The curves of the methods' rankings."""
        rankings = {name: self.ranking(name) for name in names}
        return tuple(self.deletion.curves(rankings, self.settings.faithfulness.steps).values())

    def ranking(self, name: str) -> Sequence[int]:
        """Passage tokens, most relevant first, by a registered method or by what it has found."""
        own, found = registry.method(name, self.settings), self.found.get(name)
        if own.explain is not None:
            explained = found if isinstance(found, Relevance) else own.explain(*self.given, watch=self.watch)
            return token_ranking(explained.by_span[0], removable(self.coded))
        whole = ((0, len(self.given[2].text)),)
        scored = found if isinstance(found, Attribution) else own.attribute(*self.given, whole, self.watch)
        return passage_ranking(self.coded, scored.scores[0], scored.sources)

    def report(self, methods: Sequence[str]) -> Iterator[FaithfulnessReport]:
        """The report as it grows with the random rankings; the two methods of `METHODS` run once."""
        settings, given = self.settings, self.given
        relevance = input_x_gradient(
            *given, target=settings.gradient.target, count_citation_markers=self.counted, watch=self.watch
        )
        left_out = occlusion(*given, spans=relevance.spans, floors=False, settings=settings.occlusion, watch=self.watch)
        self.found = {relevance.method: relevance, left_out.method: left_out}
        measured = self.curves(methods)
        by_passage = self.deletion.passage_curves(left_out.scores[0])
        target = float(sum(v for v, e in zip(relevance.values, self.explained, strict=True) if e))
        by_gradient = passage_attribution(relevance, self.coded)
        wanted = settings.faithfulness.rankings
        for random in self.deletion.random_abpcs(settings.faithfulness):
            said = f"Stopped after {random.n} of {wanted} random rankings."
            yield FaithfulnessReport(
                model=given[0].name,
                curves=measured,
                passages=by_passage,
                random=random,
                diagnostics=diagnostics(relevance.by_span[0], self.coded, target),
                agreement=agreement({"input x gradient": by_gradient, "occlusion": left_out}),
                notes=(said,) if random.n < wanted else (),
            )


def _blocks(case: Case, found: FaithfulnessReport, review: Review) -> list[Block]:
    random = found.random
    rankings = (*found.curves, *filter(None, [found.whole_passages]))
    rows = [(c.ranking, f"{c.abpc:+z.3f}", f"{c.abpc_nats:+z.3f}") for c in rankings]
    rows.append((f"random, mean of {random.n}", f"{random.mean:+z.3f}", ""))
    rows.append(("random, smallest and largest", f"{random.low:+z.3f} to {random.high:+z.3f}", ""))
    cost = f"{found.forwards:,} forwards, {found.seconds:.1f} s"
    columns = ("Ranking", "ABPC, probability", "ABPC, nats")
    areas = table("Area between the perturbation curves", columns, rows, numeric={1, 2})
    curves = tuple(
        table(
            f"{c.ranking}: mean probability of the explained tokens while sources are removed",
            ("Share removed", "MoRF", "LeRF"),
            ((f"{s:.2f}", f"{m:.3f}", f"{least:.3f}") for s, m, least in zip(c.shares, c.morf, c.lerf, strict=True)),
            numeric={0, 1, 2},
        )
        for c in rankings
    )
    facts = Facts((("Scored by", found.model), ("Cost", cost)))
    notes = found.notes if found.whole_passages else (*found.notes, ONE_PASSAGE)
    return [facts, diagnostic_facts(found), *notices(notes), areas, Fold("The curves", curves)]


ONE_PASSAGE = "One passage cannot be ranked: occlusion removes its tokens in the order of the text."
AGREEMENT = (
    "ρ: Spearman's rank correlation of the passages, in [-1, 1]. Methods with a value per token rank by the sum of "
    "|relevance|, the others by score. Signs: share of passages on the same side of zero. First: whether both rank "
    "the same passage first. With few passages ρ is coarse."
)


def agreement_table(methods: Mapping[str, Attribution], span: Span) -> Table:
    """The methods pair by pair on one span of the answer, each with the passage that it ranks first."""
    names, pairs = list(methods), {(pair.first, pair.second): pair for pair in agreement(methods, span)}
    rows = (
        (_ranked_first(name, methods[name], span), *(_agreed(pairs.get((name, other))) for other in names[1:]))
        for name in names
    )
    return table(AGREEMENT, ("Method and its first passage", *names[1:]), rows, numeric=range(1, len(names)))


def _ranked_first(name: str, found: Attribution, span: Span) -> Cell:
    row = found.spans.index(span)
    best = first_source(found, row)
    score = found.scores[row][best]
    digits = 0 if abs(score) >= 100 else 2
    return Cell(name, note=f"passage {found.sources[best][0]} ({score:+,.{digits}f} {found.unit})")


def _agreed(pair: Pair | None) -> Cell:
    if pair is None:
        return Cell("")
    rho = "ρ not defined" if pair.rho is None else f"ρ {pair.rho:+z.2f}"
    signs = "signs not defined" if pair.signs is None else f"signs {pair.signs:.0%}"
    first = "same first" if pair.same_top else "different first"
    return Cell(rho, note=f"{signs}, {first}", tint=pair.rho or 0.0)


def diagnostic_facts(found: FaithfulnessReport) -> Facts:
    """The diagnostics of the relevance map."""
    values = found.diagnostics.items()
    return Facts(tuple((name.replace("_", " "), "not defined" if v is None else f"{v:.3f}") for name, v in values))


def _again(case: Case, analysis: Analysis, model: LanguageModel, context: RunContext) -> Outcome:
    """The report again, its rounding measured with a few random rankings."""
    settings = context.settings
    prompt, answer, _ = subject(case, model, settings)
    coded, methods = model.encode(prompt), Rankings.from_dict(analysis.result).methods
    values = less(last(measured(model, prompt, answer, settings, methods=methods)))
    # A probability moves by no more than its logarithm does.
    floor = token_floor(model, [(coded, [token.id for token in answer.tokens])])
    # Random rankings cost the most and no rounding turns them round.
    few = replace(settings, faithfulness=replace(settings.faithfulness, rankings=2))
    with computed_otherwise(model, len(coded.ids) + len(answer.tokens)) as other:
        again = less(last(measured(other, prompt, answer, few, methods=methods)), COSTS | {"random"})
    return Outcome(values=values, floor=floor, floors=rounding(values, again, floor))


def _cost(case: Case, options: Rankings, settings: Settings) -> str:
    rows = rows_ahead(case, options, settings)
    return f"up to {rows} forward passes, on average over half of {words_of(case):,} words"


KIND = Kind(
    name=FAITHFULNESS,
    title="Faithfulness of the attributions",
    result=FaithfulnessReport,
    blocks=_blocks,
    options=Rankings,
    run=_run,
    cost=_cost,
    entered=_entered,
    terms=("faithfulness",),
    again=of_the_stamp(_again, lambda report: Rankings(methods=tuple(curve.ranking for curve in report.curves))),
)
