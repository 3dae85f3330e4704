"""Attributions over the passages of a case: any registered method, and what all kinds of attribution share.

The passages and unrelated ones, the tables and heatmaps of the report, the stamped model and settings of a replay."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from msgspec.structs import replace

from engine.analyses.floors import relevance_floors
from engine.analyses.kind import Again, ByModel, Floor, Given, Kind, Loaders, Outcome, RunContext, less
from engine.answer.prompt import stamp_of
from engine.cases.blocks import (
    Block,
    Cell,
    Facts,
    Fold,
    Heat,
    Table,
    cut,
    name_of,
    notices,
    of_passages,
    plain,
    signed,
    table,
)
from engine.cases.review import MARKED, Review
from engine.core.errors import CaseError, GroundworkError, RecordError
from engine.core.progress import last
from engine.core.settings import Settings
from engine.core.text import counted
from engine.core.values import Analysis, Attribution, Case, Details, Json, Passage, Stamp
from engine.corpus.samples import unrelated
from engine.methods import both_ways, registry
from engine.methods.flags import RANDOM_RANKINGS, Flags
from engine.methods.spans import Span
from engine.methods.subject import analysis_of, default_spans, subject
from engine.models.protocols import LanguageModel


class Spans(ByModel, frozen=True):
    """Which stretches of the answer are explained, in characters: () is the whole answer and each sentence.

    `tokens`: each token of the answer, too, by a method that has values for every input token.
    """

    spans: tuple[Span, ...] = ()
    tokens: bool = False


def placebos_for(held: Sequence[Passage], pool: Iterable[Passage], count: int, seed: int) -> tuple[Passage, ...]:
    """`count` passages of the pool, with a text and of a document that none of `held` has; drawn by `seed`."""
    documents, texts = {passage.document for passage in held}, {passage.text for passage in held}
    others = list({p.text: p for p in pool if p.document not in documents and p.text not in texts}.values())
    order = np.random.default_rng(seed).permutation(len(others))[:count]
    return tuple(others[i] for i in order)


def _run(method: str, case: Case, options: Spans, context: RunContext) -> Iterator[Analysis]:
    """Any registered method over the case's passages, for those stretches of the answer."""
    model, settings, watch = context.tools.scorer(options.model), context.settings, context.watch
    prompt, answer, notes = subject(case, model, settings)
    own, asked = registry.method(method, settings), options.spans or default_spans(case, answer, settings)
    if options.tokens and own.explain is not None:
        every = range(len(answer.tokens))
        found = registry.summed(own.explain, model, prompt, answer, spans=asked, tokens=every, watch=watch)
    else:
        found = own.attribute(model, prompt, answer, asked, watch)
    extra = {"gradient": settings.gradient.to_dict(), **for_stamp(options)}
    yield analysis_of(case, model, settings, method, replace(found, notes=(*notes, *found.notes)), extra)


def placebos_of(case: Case, context: RunContext) -> tuple[Passage, ...]:
    """Unrelated passages of the pool or the case's corpus, of the science primer where these have none; an empty pool
    asks for none.
    """
    if context.unrelated is not None:
        return context.unrelated
    collection = context.tools.collection_of(case) if context.pool is None else None
    pool = collection.snapshot().passages if collection else unrelated() if context.pool is None else context.pool
    count, seed = context.settings.occlusion.placebos, context.settings.occlusion.seed
    found = placebos_for(case.passages, pool, count, seed)
    return found or (placebos_for(case.passages, unrelated(), count, seed) if pool or collection else ())


COLUMNS = 5  # spans in one table
LARGEST_HEAT = 20_000  # pieces drawn in one analysis; above, only the strongest sources
UNDER_NUMERICAL = "below the numerical floor: may be rounding"
ALONE = "each alone"
WORDS_FROM = "Where the words come from: probability that each source adds to the others and alone, summed over tokens"
UNDER_PLACEBO = "no larger than the effect of an unrelated passage"


def attribution_of(analysis: Analysis) -> Attribution | None:
    """The result as an attribution, also of a kind that is not installed; None where it is something else."""
    with contextlib.suppress(RecordError):
        return Attribution.from_dict(analysis.stored())
    return None


def seen_otherwise(attribution: Attribution) -> dict[str, Attribution]:
    """By method what an occlusion measured besides its drops: both ways, which has no floors, and `ALONE`."""
    details, bare = attribution.details, replace(attribution, per_token=(), notes=(), details=Details())
    gains = replace(bare, unit=both_ways.UNIT, numerical_floor=None, placebo_floor=None)
    views = ((both_ways.METHOD, gains, details.gained), (ALONE, bare, details.alone))
    return {name: replace(view, method=name, scores=scores) for name, view, scores in views if scores}


def attribution_blocks(case: Case, attribution: Attribution, review: Review | None = None) -> list[Block]:
    """Cost and floors, tables of sources by spans, the answer's tokens by source."""
    blocks: list[Block] = [Facts(_facts(attribution)), *notices(attribution.notes)]
    tables = _tables(case, attribution)
    blocks += [*tables[:1], _spans(case, attribution)]
    if tables[1:]:
        blocks.append(Fold("The other sentences of the answer", tuple(tables[1:])))
    if gains := seen_otherwise(attribution).get(both_ways.METHOD):
        blocks.append(Fold(WORDS_FROM, tuple(_tables(case, gains))))
    if heats := _token_heats(case, attribution):
        blocks.append(Fold("The answer's tokens, source by source", tuple(heats)))
    return blocks


def _facts(attribution: Attribution) -> tuple[tuple[str, str], ...]:
    unit = attribution.unit
    passes = f"{attribution.forwards:,} forwards, {attribution.backwards:,} backwards, "
    cost = f"{passes if attribution.forwards else ''}{attribution.seconds:.1f} s"
    return (
        ("Method", attribution.method),
        ("Scored by", attribution.model),
        ("Unit", f"{unit}; positive = the source makes the answer more likely" if unit == "nats" else unit),
        ("Numerical floor", _floor(attribution.numerical_floor, unit)),
        ("Placebo floor", _floor(attribution.placebo_floor, unit)),
        ("Cost", cost),
    )


def _floor(value: float | None, unit: str) -> str:
    return "not measured" if value is None else f"{value:.4g} {unit}"


def floors(attribution: Attribution, span: int) -> tuple[float | None, float | None]:
    """(numerical, placebo) floor of a span, the span's own where it was measured."""
    numerical = attribution.details.numerical_floor_by_span[span : span + 1] or (attribution.numerical_floor,)
    placebo = attribution.details.placebo_floor_by_span[span : span + 1] or (attribution.placebo_floor,)
    return numerical[0], placebo[0]


def under_floor(value: float, numerical: float | None, placebo: float | None) -> str:
    """The floor that an effect does not exceed, in words; empty if it exceeds both or none was measured."""
    if numerical is not None and abs(value) <= numerical:
        return UNDER_NUMERICAL
    return UNDER_PLACEBO if placebo is not None and abs(value) <= placebo else ""


def _tables(case: Case, attribution: Attribution) -> list[Table]:
    """The scores, `COLUMNS` spans in each table."""
    every = range(len(attribution.spans))
    return [_table(case, attribution, tuple(every[first : first + COLUMNS])) for first in every[::COLUMNS]]


def _table(case: Case, attribution: Attribution, spans: tuple[int, ...]) -> Table:
    order = sorted(range(len(attribution.sources)), key=lambda j: -attribution.scores[0][j])

    def score(j: int, span: int) -> Cell:
        value = attribution.scores[span][j]
        said = under_floor(value, *floors(attribution, span))
        return Cell(signed(value), note=said, faint=bool(said))

    return table(
        f"{attribution.method}: score of each source, {attribution.unit}, strongest for the first column first",
        ("Passage", *(_span_name(case, attribution, span) for span in spans)),
        ((_source(case, attribution, j), *(score(j, span) for span in spans)) for j in order),
        numeric=range(1, len(spans) + 1),
    )


def flags_table(flags: Flags, case: Case, top: int) -> Table:
    """One row per passage: on how many tokens it is in the `top`, its label, its flag; and the chance rates."""
    caption = (
        f"The first {flags.tokens} tokens count. By chance a passage ranks high at a rate of {flags.chance:.2f}. In"
        f" {RANDOM_RANKINGS} random rankings of this case, {flags.random_rate:.0%} of the passages ranked high and"
        f" {flags.random_flag_rate:.0%} of the rankings flagged a passage. {flags.sentence}"
    )
    rows = (
        (
            Cell(name_of(case, flag.number), places=of_passages(flag.number)),
            f"{flag.times} of {counted(flags.tokens, 'token')}",
            "high" if flag.high else "no",
            MARKED[flag.relevant],
            "flagged" if flag.flagged else "no",
        )
        for flag in flags.passages
    )
    return table(caption.strip(), ("Passage", f"In the top {top}", "High in the ranking", "Marked", "Flag"), rows)


def passages_cell(case: Case, numbers: Sequence[int], note: str = "") -> Cell:
    """Passages by their names, with links to them."""
    return Cell("; ".join(name_of(case, number) for number in numbers), note=note, places=of_passages(*numbers))


def _source(case: Case, attribution: Attribution, j: int) -> Cell:
    numbers = attribution.sources[j]
    where = attribution.details.source_spans
    note = f"characters {where[j][1]} to {where[j][2]} of its segment" if j < len(where) else ""
    return passages_cell(case, numbers, note)


def _span_name(case: Case, attribution: Attribution, span: int) -> str:
    start, end = attribution.spans[span]
    if (start, end) == (0, len(case.answer.text)):
        return "Whole answer"
    sentences = case.answer.sentences
    return f"Sentence {sentences.index((start, end)) + 1}" if (start, end) in sentences else f"Span {span}"


def _spans(case: Case, attribution: Attribution) -> Block:
    rows = []
    for span, (start, end) in enumerate(attribution.spans):
        text = case.answer.text[start:end]
        shown = text if len(text) <= 240 else text[:200] + " ..."
        rows.append((_span_name(case, attribution, span), f"{start} to {end}", shown))
    return Fold("Columns", (table("Spans of the answer", ("Column", "Characters", "Text"), rows),))


def token_spans(case: Case, attribution: Attribution) -> list[tuple[int, int]]:
    """The characters of each row of `per_token`, where they are known."""
    tokens = [(token.start, token.end) for token in case.answer.tokens]
    chosen = attribution.details.token_spans or attribution.details.tokens
    if chosen and len(chosen) == len(attribution.per_token):
        own = dict(enumerate(tokens))
        known = [t if isinstance(t, tuple) else own[t] for t in chosen if isinstance(t, tuple) or t in own]
        if len(known) == len(chosen):
            return known
    # The tokens of another model's answer are not those of the scorer.
    same = attribution.model == case.stamp.model and len(tokens) == len(attribution.per_token)
    return tokens if same else []


def _token_heats(case: Case, attribution: Attribution) -> list[Block]:
    spans = token_spans(case, attribution)
    if not spans or not attribution.per_token:
        return []
    largest = max((abs(v) for row in attribution.per_token for v in row), default=0.0)
    order = sorted(range(len(attribution.sources)), key=lambda j: -abs(attribution.scores[0][j]))
    kept = order[: max(1, LARGEST_HEAT // len(spans))]
    blocks: list[Block] = [plain(legend(largest, attribution.unit), "note")]
    for j in kept:
        values = [row[j] for row in attribution.per_token]
        title = f"By passage {passages_cell(case, attribution.sources[j]).text}"
        blocks.append(Heat(title, pieces_of(case.answer.text, spans, values), largest, attribution.unit))
    if len(kept) < len(order):
        blocks.append(plain(f"The {len(kept)} strongest of {len(order)} sources are shown.", "note"))
    return blocks


def legend(largest: float, unit: str) -> str:
    """The meaning of a heatmap's colours, in words."""
    return (
        f"Orange, underlined: more likely with it. Blue, dotted underline: less likely. Five steps; the full colour is"
        f" {largest:.3g} {unit}. Hover over a piece to see its number."
    )


def pieces_of(text: str, spans: Sequence[tuple[int, int]], values: Sequence[float]) -> tuple[tuple[str, float], ...]:
    """The text cut at the spans, each with its value; what lies in no span has 0."""
    valued = sorted((*span, value) for span, value in zip(spans, values, strict=True))
    return tuple((piece, value or 0.0) for piece, value in cut(text, valued))


Asked = TypeVar("Asked", bound=ByModel)
WithModel = Callable[[Case, Analysis, LanguageModel, RunContext], Outcome]
STAGES = ("prompting", "decoding", "occlusion", "gradient", "faithfulness")
PLACEBOS_GONE = "the unrelated passages of the placebo floor are no longer available"


def check_stamped(stamp: Stamp, model: Any) -> None:
    """Raise `CaseError` for a model that is not the stamped one: another revision, number format or template."""
    settings = settings_of(stamp)
    here = stamp_of(model, settings.prompting, settings.decoding)
    if stamp.revision != here.revision:
        raise CaseError(other_revision(stamp.model, stamp.revision, here.revision))
    for name in ("dtype", "template"):
        was, now = getattr(stamp, name), getattr(here, name)
        if was != now:
            raise CaseError(f"the model's {name} was {was or 'none'}, here it is {now or 'none'}")


def other_revision(model: str, was: str, now: str) -> str:
    """Why numbers of a model's revision `was` cannot be computed with `now`."""
    was, now = was or "without a name", now or "without a name"
    return f"scored by another revision of {model} ({was}), which is not installed; the installed one is {now}"


def settings_of(stamp: Stamp) -> Settings:
    """The stamped settings of the stages that scores depend on."""
    return Settings.from_dict({name: stamp.settings[name] for name in STAGES if name in stamp.settings})


def placebos(case: Case, stamp: Stamp, tools: Loaders) -> tuple[tuple[Passage, ...], str]:
    """The unrelated passages of a floor, and why they are not available (empty if they are)."""
    wanted: Sequence[str] | None = stamp.settings.get("placebos")
    if wanted is None:
        return (), "the stamp does not list the unrelated passages of the placebo floor"
    known = {passage.id: passage for passage in unrelated()}
    with contextlib.suppress(GroundworkError):
        known |= tools.collection(case.corpus).snapshot().named(wanted) if case.corpus and wanted else {}
    found = tuple(known[name] for name in wanted if name in known)
    return (found, "") if len(found) == len(wanted) else ((), PLACEBOS_GONE)


def for_stamp(options: ByModel) -> Json:
    """The stamp's entry for the options of a run besides the model; none for the defaults, as in older stamps."""
    own, usual = (less(one.to_dict(), {"model"}) for one in (options, type(options)()))
    return {"options": own} if own != usual else {}


def stamped(options: type[Asked], analysis: Analysis) -> Asked:
    """The options of the run that the analysis is from."""
    return options.from_dict({**analysis.stamp.settings.get("options", {}), "model": analysis.stamp.model})


def of_the_stamp(again: WithModel, given: Given | None = None, by_placebos: frozenset[str] = frozenset()) -> Again:
    """A replay by the stamped model with its settings; where the model here is another one, it says so.

    `by_placebos`: the fields that unrelated passages decide, which are not compared where these are gone.
    """

    def run(case: Case, analysis: Analysis, tools: Loaders) -> Outcome:
        model = tools.scorer(analysis.stamp.model)
        check_stamped(analysis.stamp, model)
        found, missing = placebos(case, analysis.stamp, tools) if by_placebos else (None, "")
        outcome = again(case, analysis, model, RunContext(settings_of(analysis.stamp), tools, unrelated=found))
        return replace(outcome, values=less(outcome.values, by_placebos), why=missing) if missing else outcome

    return Again(run, given)


def _method_again(case: Case, analysis: Analysis, model: LanguageModel, context: RunContext) -> Outcome:
    settings = context.settings
    values = less(last(_run(analysis.kind, case, stamped(Spans, analysis), context)).result)
    explain = registry.method(analysis.kind, settings).explain
    if explain is None:
        return Outcome(values=values)
    prompt, answer, _ = subject(case, model, settings)
    asked = stamped(Spans, analysis).spans or default_spans(case, answer, settings)
    rows, _ = relevance_floors(explain, model, prompt, answer, asked)
    floors: dict[str, Floor] = {"scores": rows, "elsewhere": rows}
    if "delta" in values["details"]:  # a share of what the row explains
        totals = [
            abs(sum(row) + rest) for row, rest in zip(values["scores"], values["details"]["elsewhere"], strict=True)
        ]
        floors["delta"] = max(floor / total for floor, total in zip(rows, totals, strict=True) if total)
    return Outcome(values=values, floors=floors)


def method_kind(method: registry.Method) -> Kind[Attribution]:
    """A registered method as a kind of analysis."""
    return Kind(
        name=method.name,
        title=method.name[:1].upper() + method.name[1:],
        result=Attribution,
        blocks=attribution_blocks,
        options=Spans,
        run=partial(_run, method.name),
        cost=lambda case, options, settings: method.about,
        again=of_the_stamp(_method_again),
    )
