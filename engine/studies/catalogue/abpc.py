"""ABPC by method: which ranking of tokens finds what the answer needs (grounded refinement, section 4.2.6).

After Tables 6, 7 and 14 as far as they are about methods that are here: input x gradient, gradient norm, integrated
gradients, value-weighted attention and occlusion next to random rankings of the same tokens, on answers of the model
itself.
The papers' figures are on other scales: compare sign and order. A unit holds all rankings of one answer, since they
use the same rows. `options.rankings` names the extra ones: any registered attribution method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from engine.analyses.faithfulness import FURTHER, KIND, METHODS, Rankings, rows_needed
from engine.analyses.kind import examine
from engine.core.errors import InputError
from engine.core.progress import Watch
from engine.core.values import Json
from engine.methods import registry
from engine.methods.refinement.costs import metered
from engine.studies import summary
from engine.studies.config import Config
from engine.studies.example import Example, case_of, tokens_of
from engine.studies.tools import Study, StudyTools
from engine.studies.values import Cell, Estimate, Figure, Found, Results, Row, Series, StudyTable, Unit

# ABPC from rows: by method with intervals, paired differences, mean curves, diagnostics.

BASE = "input x gradient"
SCALE = "Normalised, passage tokens only, in [-1, 1]. The papers use other scales, so compare sign and order."


def _by_method(rows: Sequence[Row], values: Mapping[str, Mapping[str, float]]) -> tuple[StudyTable, Figure]:
    means = {name: summary.measured(own) for name, own in values.items()}

    def line_of(name: str, own: Mapping[str, float]) -> tuple[Cell, ...]:
        nats = summary.measure(rows, ("abpc_nats", name), None)
        return name, means[name], sum(v > 0 for v in own.values()), len(own), nats

    rankings = summary.table(
        "abpc",
        "ABPC by ranking",
        "ranking | ABPC (probability) ↑ | positive (questions) ↑ | of (questions) | ABPC (nats) ↑",
        (line_of(*each) for each in values.items()),
        rows,
        SCALE,
        "Random: mean over random rankings of the same tokens.",
        shows="grounded refinement, Tables 6 and 7",
    )
    axes, shows = ("ranking", "ABPC (probability)"), "grounded refinement, Table 7"
    bars = summary.figure(
        "bars", "abpc", "ABPC by ranking", *axes, [summary.line("ABPC", means)], shows, notes=(SCALE,)
    )
    return rankings, bars


def _differences(rows: Sequence[Row], values: Mapping[str, Mapping[str, float]]) -> StudyTable:
    asked = [(name, "random") for name in values if name != "random"]
    asked += [(name, BASE) for name in values if name not in ("random", BASE)]
    found = summary.corrected(
        [summary.pair(f"{first} - {second}", values[first], values[second]) for first, second in asked]
    )
    return summary.table(
        "differences",
        "Paired differences in ABPC",
        "comparison | difference (probability) ↑ | higher (questions) | lower (questions) | p, Holm | effect (d_z)",
        ((one.method, one.difference, one.higher, one.lower, one.p, one.effect) for one in found),
        rows,
        shows="grounded refinement, Table 7",
        intervals=(summary.PAIRED, summary.CORRECTION, SCALE),
    )


def _diagnostics(rows: Sequence[Row]) -> StudyTable:
    names = {
        "conservation": "sum of relevance over target",
        "first_token_share": "share of |relevance|",
        "density_ratio": "mean |relevance|, passages over elsewhere",
    }
    means = {name: summary.measure(rows, ("diagnostics", name), None) for name in names}
    body = ((name.replace("_", " "), what, means[name]) for name, what in names.items())
    title, shows = f"What a map of {BASE} looks like", "grounded refinement, Table 14"
    return summary.table("diagnostics", title, "figure | what it is | mean", body, rows, shows=shows)


def _points(rows: Sequence[Row], names: Sequence[str]) -> Figure:
    done = [row for row in rows if row.state == "done"]
    points = (summary.points_of(name, ((row, name, row.values["abpc"].get(name)) for row in done)) for name in names)
    axes, shows = ("ranking", "ABPC (probability)"), "grounded refinement, Table 7"
    return summary.figure("points", "abpc_by_question", "ABPC of every question", *axes, points, shows)


def _curves(rows: Sequence[Row], names: Sequence[str]) -> Figure:
    """Mean MoRF and LeRF over the shares removed; answers with other steps are brought to a common grid."""
    grid = np.linspace(0, 1, 11)
    series = []
    for name in names:
        own = [curve for row in rows if (curve := row.value("curves", name))]
        for place, way in ((1, "MoRF"), (2, "LeRF")):
            if own:
                mean = np.mean([np.interp(grid, curve[0], curve[place]) for curve in own], axis=0)
                x, y = tuple(map(float, grid)), tuple(map(float, mean))
                series.append(Series(name=f"{name}, {way}", x=x, y=y, n=(len(own),) * len(x)))
    title = "Probability of the answer as passage tokens are removed"
    axes = "removed (share of passage tokens)", "mean probability of the explained tokens"
    return summary.figure("lines", "curves", title, *axes, series, "grounded refinement, section 4.2")


def extra(config: Config) -> tuple[str, ...]:
    """The rankings besides input x gradient, occlusion and random ones."""
    asked = config.option("rankings", tuple[str, ...], FURTHER)
    known = [method.name for method in registry.methods() if method.name not in METHODS]
    strange = [name for name in asked if name not in known]
    if strange:
        raise InputError(f"{strange[0]!r} is not an available ranking. Choose from: {', '.join(known)}.")
    return asked


def run(tools: StudyTools, unit: Unit, example: Example, watch: Watch) -> Found:
    """Write an answer, rank the tokens of its passages by every method, remove them in that order."""
    settings, scorer = tools.config.stages(unit.seed), tools.scorer
    with metered(scorer) as meter:
        written = tools.write(unit.seed)(example.question, example.passages, watch)
        case = case_of(example, example.passages, written)
        rankings = Rankings(model=scorer.name, methods=(*METHODS, *extra(tools.config)))
        case = examine(case, KIND, rankings, tools.context(settings, watch, scorer))
    (report,) = KIND.of(case)
    found = {curve.ranking: curve for curve in report.curves}
    values: Json = {
        "abpc": {**{name: curve.abpc for name, curve in found.items()}, "random": report.random.mean},
        "abpc_nats": {name: curve.abpc_nats for name, curve in found.items()},
        "passage_abpc": report.whole_passages and report.whole_passages.abpc,
        "random": report.random.to_dict(),
        "curves": {name: [curve.shares, curve.morf, curve.lerf] for name, curve in found.items()},
        "diagnostics": report.diagnostics,
        "tokens": len(case.answer.tokens),
    }
    cost = replace(meter.cost, written=len(written.answer.tokens))
    return Found(values=values, case=case, cost=cost)


def cost(tools: StudyTools, unit: Unit, example: Example) -> Estimate:
    """One answer, then the rows of every ranking; integrated gradients take a forward and a backward a step."""
    settings, names = tools.config.stages(unit.seed), extra(tools.config)
    steps = settings.gradient.integrated_steps if "integrated gradients" in names else 0
    rows = rows_needed(len(example.passages), settings.faithfulness, len(METHODS) + len(names))
    read = tokens_of(example.question, *(passage.text for passage in example.passages))
    forwards = rows + steps + len(names)
    return Estimate(calls=1, forwards=forwards, backwards=1 + steps, tokens=(1 + forwards) * read)


def results(config: Config, rows: Sequence[Row]) -> Results:
    """ABPC by method with intervals, paired differences, curves, diagnostics; of the rankings that the rows have."""
    there = {name for row in rows for name in row.values.get("abpc", {})}
    names = [name for name in (BASE, *extra(config), "occlusion", "random") if name in there]
    values = {name: summary.by_question(rows, ("abpc", name), None) for name in names}
    rankings, bars = _by_method(rows, values)
    return Results(
        tables=(rankings, _differences(rows, values), _diagnostics(rows)),
        figures=(bars, _points(rows, names), _curves(rows, names)),
    )


STUDY = Study(
    name="abpc",
    title="Faithfulness of rankings by perturbation: ABPC by method",
    shows=("grounded refinement, Tables 6, 7 and 14",),
    methods=("rankings",),
    options=("rankings",),
    check=extra,
    models=("scorer",),
    run=run,
    results=results,
    cost=cost,
    needs=("passages",),
)
