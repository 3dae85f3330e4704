"""attribute, faithfulness: white-box analyses of records; analyse: any analysis of a case of the library."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, TextIO

import click
import numpy as np
from msgspec.structs import replace

from engine.analyses.faithfulness import FaithfulnessReport, faithfulness
from engine.analyses.kind import options_of
from engine.analyses.registry import kind_named
from engine.answer.citations import annotate
from engine.answer.prompt import build_prompt
from engine.commands.shared import (
    emit,
    file_argument,
    good_records,
    model_option,
    progress,
    run_records,
    seed_option,
    set_option,
)
from engine.commands.shared import workbench as open_workbench
from engine.core.errors import InputError, RecordError
from engine.core.progress import Watch
from engine.core.settings import Occlusion, Settings
from engine.core.statistics import interval_or_none
from engine.core.values import Answer, Attribution, AuditRecord, Details, Passage, Prompt
from engine.methods import registry
from engine.methods.aggregate import passage_attribution
from engine.methods.input_x_gradient import input_x_gradient
from engine.methods.occlusion import occlusion
from engine.methods.regeneration import regenerate
from engine.methods.spans import Span
from engine.methods.subject import banner
from engine.models.protocols import LanguageModel
from engine.workbench import Workbench

NAMES = {
    "input-x-gradient": "input x gradient",
    "gradient-norm": "gradient norm",
    "integrated-gradients": "integrated gradients",
    "attention": "value-weighted attention",
}
METHODS = ("occlusion", "keep-one", "occlusion-regenerate", *NAMES)


class Scored:
    """A record under a model: prompt, answer with the model's ids, spans; `placebos` are unrelated passages."""

    def __init__(
        self, record: AuditRecord, model: LanguageModel, settings: Settings, pool: Sequence[Passage] = ()
    ) -> None:
        passages = record.as_passages()
        if not passages:
            raise RecordError("The record has no passages, so there is nothing to attribute its answer to.")
        self.record = record
        self.passages = passages
        self.placebos = unrelated(passages, pool, settings.occlusion)
        self.prompt: Prompt = build_prompt(record.question, passages, settings.prompting)
        style = settings.prompting.citations
        self.answer: Answer = annotate(model.encode_answer(record.answer), len(passages), style)
        said = banner(record.model or "imported", model.name)
        self.notes = (said,) if said else ()
        self.spans: tuple[Span, ...] = record.spans or ((0, len(record.answer)),)
        for start, end in self.spans:
            if not 0 <= start < end <= len(record.answer):
                raise RecordError(f"Span [{start}, {end}) is not inside the answer of {len(record.answer)} characters.")


def unrelated(held: Sequence[Passage], pool: Sequence[Passage], how: Occlusion) -> tuple[Passage, ...]:
    """As many of `pool` as the settings ask for, drawn by their seed, none with a text that is held."""
    known = {passage.text for passage in held}
    others = list({p.text: p for p in pool if p.text not in known}.values())
    drawn = np.random.default_rng(how.seed).permutation(len(others))[: how.placebos]
    return tuple(others[i] for i in drawn)


def attribute_record(bench: Workbench, model: LanguageModel, scored: Scored, name: str, watch: Watch) -> Attribution:
    """One method on one record; `name` is one of `METHODS`, or a registered one's own."""
    prompt, answer, spans = scored.prompt, scored.answer, scored.spans
    counted = bench.settings.occlusion.count_citation_markers
    if name == "occlusion-regenerate":
        return _regenerated(bench, model, scored, watch)
    if name == "input-x-gradient":
        explain = partial(input_x_gradient, target=bench.settings.gradient.target, count_citation_markers=counted)
        found = explain(model, prompt, answer, spans=spans, tokens=range(len(answer.tokens)), watch=watch)
        return passage_attribution(found, model.encode(prompt))
    if name not in ("occlusion", "keep-one"):
        method = registry.method(NAMES.get(name, name), bench.settings.gradient, count_citation_markers=counted)
        return method.attribute(model, prompt, answer, spans, watch)
    settings = bench.settings.occlusion
    if name == "occlusion":
        texts = [passage.text for passage in scored.placebos]
        return occlusion(model, prompt, answer, spans=spans, placebos=texts, settings=settings, watch=watch)
    alone = occlusion(model, prompt, answer, spans=spans, alone=True, floors=False, settings=settings, watch=watch)
    # Each passage as the only one: the token rows of leave-one-out do not belong to these totals.
    return replace(alone, method="keep-one", scores=alone.details.alone, per_token=())


def _regenerated(bench: Workbench, model: LanguageModel, scored: Scored, watch: Watch) -> Attribution:
    """Alpha of each passage by regeneration: mean over the six metrics, whole answer."""
    write = bench.writer(model.name, scored.passages)
    sources = [(passage,) for passage in scored.passages]
    floor = bench.settings.selection.floor
    result = regenerate(
        scored.record.question,
        sources,
        lambda q, p: write(q, p, None, watch).answer,
        bench.embedder,
        placebos=scored.placebos,
        floor="largest" if floor == "largest" else "median",
        seed=bench.settings.occlusion.seed,
        watch=watch,
    )
    rows = list(zip(*result.alphas.values(), strict=True))
    return Attribution(
        method="occlusion-regenerate",
        model=model.name,
        unit="1 - similarity",
        spans=((0, len(result.full.text)),),
        sources=tuple((number,) for number in range(1, len(sources) + 1)),
        scores=(tuple(sum(row) / len(row) for row in rows),),
        per_token=(),
        numerical_floor=max(result.floors.values()),
        forwards=result.written,
        notes=(f"Compared with the answer written here: {result.full.text}", *result.notes),
        details=Details(alphas=result.alphas, floors=result.floors),
    )


def _line(scored: Scored, name: str, found: Attribution) -> dict[str, Any]:
    kept = ("model", "unit", "scores", "per_token", "numerical_floor", "placebo_floor", "forwards", "backwards")
    data = found.to_dict()
    return {
        "id": scored.record.id,
        "method": name,
        **{key: data[key] for key in kept},
        "seconds": found.seconds,
        "notes": [*scored.notes, *data["notes"]],
    }


def _listed(text: str, known: Collection[str]) -> tuple[str, ...]:
    """Names with commas between them; `InputError` for one that is not known, and for none."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    wrong = next((name for name in names if name not in known), None)
    if wrong is not None or not names:
        said = f"There is no attribution method {wrong!r}." if wrong else "No method is named."
        raise InputError(f"{said} Choose of: {', '.join(sorted(known))}.")
    return names


@click.command()
@file_argument
@click.option("--method", "methods", default="occlusion", show_default=True, help="One or more, with commas.")
@click.option("--corpus", metavar="NAME", help="Where unrelated passages come from; default: the file's other records.")
@model_option
@seed_option
@set_option
def attribute(
    file: TextIO, methods: str, corpus: str | None, model: str, seed: int | None, assignments: tuple[str, ...]
) -> None:
    """Score what each passage did to the answer, one line per method.

    The placebo floor stands on unrelated passages: of --corpus, or of the file's other records.

    Example: python -m engine attribute answers.jsonl --method occlusion,input-x-gradient --model embedded
    """
    names = _listed(methods, {*METHODS, *(method.name for method in registry.methods())})
    bench = open_workbench(assignments, seed)
    scorer = bench.scorer(model)
    watch = progress()
    lines = list(file)
    pool = bench.collection(corpus).snapshot().passages if corpus else _passages_in(lines)

    def work(record: AuditRecord) -> list[dict[str, Any]]:
        scored = Scored(record, scorer, bench.settings, pool)
        return [_line(scored, name, attribute_record(bench, scorer, scored, name, watch)) for name in names]

    run_records(lines, AuditRecord, work)


def _passages_in(lines: Sequence[str]) -> list[Passage]:
    """The passages of all records of a file that can be read."""
    found: list[Passage] = []
    for record in good_records(lines):
        with contextlib.suppress(RecordError):  # told in the record's own place
            found.extend(record.as_passages())
    return found


RANKED = ("occlusion", *NAMES)


@click.command("faithfulness")
@file_argument
@click.option("--method", "methods", default="input-x-gradient", show_default=True, help="One or more, with commas.")
@model_option
@seed_option
@set_option
def faithfulness_command(
    file: TextIO, methods: str, model: str, seed: int | None, assignments: tuple[str, ...]
) -> None:
    """Perturbation curves of a method's ranking of tokens, a line a method, and ABPC beside random rankings.

    Example: python -m engine faithfulness answers.jsonl --method input-x-gradient,occlusion --model embedded
    """
    names = _listed(methods, RANKED)
    bench = open_workbench(assignments, seed)
    scorer = bench.scorer(model)
    watch = progress()
    found: dict[str, list[float]] = {name: [] for name in names}

    def work(record: AuditRecord) -> list[dict[str, Any]]:
        scored = Scored(record, scorer, bench.settings)
        ranked = [NAMES.get(name, name) for name in names]
        report = faithfulness(scorer, scored.prompt, scored.answer, bench.settings, watch, ranked)
        for name, curve in zip(names, report.curves, strict=True):
            found[name].append(curve.abpc)
        return [_curve_line(record.id, name, i, report) for i, name in enumerate(names)]

    run_records(file, AuditRecord, work, lambda: emit({"summary": _summaries(found)}))


def _curve_line(identity: str, name: str, index: int, report: FaithfulnessReport) -> dict[str, Any]:
    curve = report.curves[index]
    return {
        "id": identity,
        "method": name,
        "model": report.model,
        "abpc": curve.abpc,
        "morf": curve.morf,
        "lerf": curve.lerf,
        "shares": curve.shares,
        "abpc_nats": curve.abpc_nats,
        "random_abpc": report.random.to_dict(),
        "passage_abpc": report.passages.abpc,
        "diagnostics": report.diagnostics,
    }


def _summaries(found: dict[str, list[float]]) -> dict[str, Any]:
    """The first method's summary, and every method's under its name where there are more."""
    all_of_them = {name: _summary(values) for name, values in found.items()}
    first = next(iter(all_of_them.values()))
    return first if len(found) == 1 else {**first, "methods": all_of_them}


def _summary(values: list[float]) -> dict[str, Any]:
    """Mean ABPC; an interval only from enough cases on (docs/methods/faithfulness.md)."""
    mean = sum(values) / len(values) if values else None
    summary: dict[str, Any] = {"n": len(values), "unit": "case", "abpc": mean, "interval": None}
    interval = interval_or_none(values)
    if interval is not None:
        summary["interval"] = [interval.low, interval.high]
    return summary


@click.command("analyse")
@click.argument("case")
@click.argument("kind")
@click.option("--with", "given", multiple=True, metavar="FIELD=VALUE", help="An option: model=embedded.")
@seed_option
@set_option
def analyse_case(case: str, kind: str, given: tuple[str, ...], seed: int | None, assignments: tuple[str, ...]) -> None:
    """Run an analysis on a case of the library and keep it there.

    KIND is a name as the report's JSON has it; a wrong one is answered with those there are.

    Example: python -m engine analyse 3f9c0a417b2e "token map" --with model=embedded
    """
    bench = open_workbench(assignments, seed)
    options = options_of(kind_named(kind), given)
    click.echo(bench.cost(bench.cases.load(case), kind, options), err=True)
    found = bench.analyse(case, kind, options, progress())
    emit({"case": found.id, **found.analyses[-1].to_dict()})


COMMANDS = (attribute, faithfulness_command, analyse_case)
