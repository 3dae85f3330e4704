"""attribute, faithfulness: white-box analyses of records; analyse: any analysis of a case of the library."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterator, Sequence
from typing import TextIO

import click
from msgspec.structs import replace

from engine.analyses.faithfulness import KIND as FAITHFULNESS, FaithfulnessReport, Rankings
from engine.analyses.kind import RunContext, options_of
from engine.analyses.registry import kind_named
from engine.cases.importers import imported_case
from engine.commands import shared
from engine.core.errors import GroundworkError, InputError, RecordError
from engine.core.settings import Settings
from engine.core.statistics import interval_or_none, mean_or_none
from engine.core.values import Answer, Attribution, AuditRecord, Case, Passage, Value
from engine.methods import both_ways, hierarchy, registry
from engine.methods.faithfulness import Curves
from engine.methods.regeneration import METHOD as REGENERATION
from engine.methods.spans import Span, content_mask, touched
from engine.methods.subject import subject
from engine.methods.word_overlap import UNIT as SHARE, in_words, word_overlap
from engine.workbench import Workbench

NAMES = {
    "occlusion-both-ways": both_ways.METHOD,
    "input-x-gradient": "input x gradient",
    "gradient-norm": "gradient norm",
    "integrated-gradients": "integrated gradients",
    "attention": "value-weighted attention",
    "hierarchy": hierarchy.METHOD,
}
KEEP_ONE = "keep-one"
WORD_OVERLAP = "word-overlap"
METHODS = ("occlusion", KEEP_ONE, REGENERATION, *NAMES, WORD_OVERLAP)


def case_of(record: AuditRecord) -> Case:
    """The record as a case of no library; raise `RecordError` without passages."""
    if not record.passages:
        raise RecordError("The record has no passages to attribute the answer to.")
    return imported_case(record.checked())


def spans_of(record: AuditRecord, answer: Answer, settings: Settings) -> tuple[Span, ...]:
    """The record's spans, by default the whole answer, each widened to the answer's tokens that it touches.

    Raise `RecordError` for one that touches none: no passage could make it more or less likely.
    """
    content = content_mask(answer, count_citation_markers=settings.occlusion.count_citation_markers)
    found: list[Span] = []
    for start, end in record.spans or ((0, len(record.answer)),):
        wide = touched(answer, (start, end), content)
        if wide is None:
            said = f"Span [{start}, {end}) of the answer, {record.answer[start:end]!r}, has no words of its own."
            raise RecordError(f"{said} Choose one that is more than blanks and citation markers.")
        found.append(wide)
    return tuple(found)


FLOORS = ("numerical_floor", "placebo_floor")
KEPT = ("model", "unit", "scores", "per_token", *FLOORS, "forwards", "backwards", "seconds", "notes")


def attribute_line(record: AuditRecord, name: str, model: str, bench: Workbench, context: RunContext) -> shared.Record:
    """One method on one record; `name` is one of `METHODS`, or a registered one's own."""
    kind, alone = kind_named("occlusion" if name == KEEP_ONE else NAMES.get(name, name)), name == KEEP_ONE
    case, fields = case_of(record), kind.options.__struct_fields__
    _, answer, _ = subject(case, bench.tools.scorer(model), bench.settings)
    asked = {"model": model, "tokens": name == "input-x-gradient", "alone": alone, "floors": not alone}
    if "spans" in fields:
        asked["spans"] = spans_of(record, answer, bench.settings)
    options = kind.options(**{field: asked[field] for field in fields if field in asked})
    found: Attribution = kind.read(bench.examine(case, kind.name, options, context).analyses[-1])
    if alone and not found.details.alone:
        most = bench.settings.occlusion.max_sources
        raise RecordError(f"keep-one scores up to {most} passages (occlusion.max_sources). Use hierarchy for more.")
    if alone:  # each passage as the only one: the token rows of leave-one-out do not belong to these totals
        found = replace(found, scores=found.details.alone, per_token=())
    line = {key: getattr(found, key) for key in KEPT}
    line |= {table: by_passage(line[table], found.sources, len(record.passages)) for table in ("scores", "per_token")}
    if found.details.delta is not None:
        line["delta"] = found.details.delta
    if found.per_token:
        places = ((token.start, token.end) for token in answer.tokens)
        line["tokens"] = [{"start": start, "end": end, "text": record.answer[start:end]} for start, end in places]
    return line


def by_passage(
    rows: Sequence[Sequence[float]], sources: Sequence[Sequence[int]], passages: int
) -> list[list[float | None]]:
    """The rows with a value for each passage, None for one that the method left unscored.

    >>> by_passage([[0.5, 2.0]], [(1,), (3,)], 3)
    [[0.5, None, 2.0]]
    """
    places = {number: place for place, (number,) in enumerate(sources)}
    wanted = [places.get(number) for number in range(1, passages + 1)]
    return [[None if place is None else row[place] for place in wanted] for row in rows]


def overlap_line(record: AuditRecord, settings: Settings) -> shared.Record:
    """The words of the record's spans in its passages: counts in place of scores, without a model."""
    case = case_of(record)
    spans = spans_of(record, in_words(case.answer), settings)
    found = word_overlap(record.answer, [passage.text for passage in case.passages], spans)
    counts = {"scores": found.shares, "word_for_word": found.word_for_word, "per_token": ()}
    return {"model": "", "unit": SHARE, **counts, **dict.fromkeys(FLOORS), "forwards": 0, "backwards": 0}


def _listed(text: str, known: Collection[str]) -> tuple[str, ...]:
    """Names with commas between them; `InputError` for one that is not known, and for none."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    wrong = next((name for name in names if name not in known), None)
    if wrong is not None or not names:
        said = f"There is no attribution method {wrong!r}." if wrong else "No method was given."
        raise InputError(f"{said} Choose from: {', '.join(sorted(known))}.")
    return names


@shared.main.command()
@shared.file_argument
@click.option("--method", "methods", default="occlusion", show_default=True, help="One or more, separated by commas.")
@click.option(
    "--corpus", metavar="NAME", help="Source of unrelated passages; default: the file's records of other questions."
)
@shared.model_option
@shared.with_workbench
def attribute(file: TextIO, methods: str, corpus: str | None, model: str, bench: Workbench) -> None:
    """Score the effect of each passage on the answer, one line per method.

    A record's `spans`, in characters, are widened to whole tokens. Where a line has `per_token`, `tokens` says which.
    A record's last lines say which of the `methods` failed and why.

    The placebo floor uses unrelated passages from --corpus, from the file's records of other questions, or from the
    science primer.

    Example: python -m engine attribute answers.jsonl --method occlusion,input-x-gradient --model embedded
    """
    names = _listed(methods, {*METHODS, *(method.name for method in registry.methods())})
    lines = list(file)
    if names != (WORD_OVERLAP,):
        bench.tools.scorer(model)  # a model that is none is told now
    watching, pooled = bench.context(shared.progress()), () if corpus else _passages_in(lines)
    searched = bench.collection(corpus).snapshot().passages if corpus else ()

    def line(record: AuditRecord, name: str) -> shared.Record:
        if name == WORD_OVERLAP:
            return overlap_line(record, bench.settings)
        others = searched or [passage for question, passage in pooled if question != record.question]
        context = dataclasses.replace(watching, pool=others or None)
        return attribute_line(record, name, model, bench, context)

    def work(record: AuditRecord) -> Iterator[shared.Record]:
        failed: dict[str, tuple[GroundworkError, list[str]]] = {}
        for name in names:
            try:
                yield {"id": record.id, "method": name, **line(record, name)}
            except GroundworkError as error:
                failed.setdefault(str(error), (error, []))[1].append(name)
        for why, without in failed.values():
            yield {"id": record.id, "methods": without, **shared.failure(why)}

    shared.run_records(lines, AuditRecord, work)


def _passages_in(lines: Sequence[str]) -> list[tuple[str, Passage]]:
    """The passages of all records of a file that can be read, each of them a document, with their questions.

    By their texts, so that what is drawn by a seed does not depend on the order of the records.
    """
    found: list[tuple[str, Passage]] = []
    for record in shared.good_records(lines):
        with contextlib.suppress(RecordError):  # told in the record's own place
            found += [(record.question, replace(passage, document=passage.id)) for passage in record.as_passages()]
    return sorted(found, key=lambda one: (one[1].text, one[1].title))


RANKED = ("occlusion", *NAMES)


@shared.main.command("faithfulness")
@shared.file_argument
@click.option(
    "--method", "methods", default="input-x-gradient", show_default=True, help="One or more, separated by commas."
)
@shared.model_option
@shared.with_workbench
def faithfulness_command(file: TextIO, methods: str, model: str, bench: Workbench) -> None:
    """Compare rankings of tokens with random ones: perturbation curves and ABPC, one line per method.

    Example: python -m engine faithfulness answers.jsonl --method input-x-gradient,occlusion --model embedded
    """
    names = _listed(methods, RANKED)
    options = Rankings(model=model, methods=tuple(NAMES.get(name, name) for name in names))
    context, _ = bench.context(shared.progress()), bench.tools.scorer(model)  # a model that is none is told now
    found: dict[str, list[float]] = {name: [] for name in names}

    def work(record: AuditRecord) -> Iterator[shared.Record]:
        (report,) = FAITHFULNESS.of(bench.examine(case_of(record), FAITHFULNESS.name, options, context))
        for name, curve in zip(names, report.curves, strict=True):
            found[name].append(curve.abpc)
            yield _curve_line(record.id, name, curve, report)

    shared.run_records(file, AuditRecord, work, lambda: shared.emit({"summary": _summaries(found)}))


def _curve_line(identity: str, name: str, curve: Curves, report: FaithfulnessReport) -> shared.Record:
    return {
        "id": identity,
        "method": name,
        "model": report.model,
        **{field: getattr(curve, field) for field in ("abpc", "morf", "lerf", "shares", "abpc_nats")},
        "random_abpc": report.random,
        "passage_abpc": report.whole_passages and report.whole_passages.abpc,
        "diagnostics": report.diagnostics,
    }


def _summaries(found: dict[str, list[float]]) -> shared.Record:
    """The first method's mean ABPC and its interval; every method's under its name where there are more.

    An interval only from enough cases on (docs/methods/faithfulness.md).
    """
    summaries = {}
    for name, values in found.items():
        interval = interval_or_none(values)
        ends = [interval.low, interval.high] if interval else None
        summaries[name] = {"n": len(values), "unit": "case", "abpc": mean_or_none(values), "interval": ends}
    first = next(iter(summaries.values()))
    return first if len(found) == 1 else {**first, "methods": summaries}


@shared.main.command("analyse")
@click.argument("case")
@click.argument("kind")
@click.option("--with", "given", multiple=True, metavar="FIELD=VALUE", help="An option, such as model=embedded.")
@shared.with_workbench
def analyse_case(case: str, kind: str, given: tuple[str, ...], bench: Workbench) -> None:
    """Run an analysis on a case of the library and store it.

    KIND is a kind's name as in the case file; an unknown kind prints the list. A token map comes with its `check`, the
    ABPC next to random rankings, unless faithfulness.check_maps is off or the check takes minutes.

    Example: python -m engine analyse 3f9c0a417b2e "token map" --with model=embedded
    """

    def ran(name: str, options: Value) -> Case:
        click.echo(bench.cost(bench.cases.load(case), name, options), err=True)
        return bench.analyse(case, name, options, shared.progress())

    own = kind_named(kind)
    found = ran(kind, options_of(own, given))
    made = found.analyses[-1]
    try:
        if due := own.check(found, own.read(made), bench.settings):
            found = ran(*due)
    finally:
        check = own.checked(found, own.read(made))
        extra = {"check": check} if check else {}
        shared.emit({"case": found.id, **own.figures(own.read(made)), **made.to_dict(), **extra})
