"""ABPC by method: which ranking of the passages' tokens finds what the answer needs (grounded refinement, 4.2.6).

After Tables 6, 7 and 14 as far as they are about methods that are here: input x gradient, integrated gradients,
value-weighted attention and occlusion beside random rankings of the same tokens, on answers of the model itself.
The papers' figures are on other scales: compare sign and order. A unit holds all rankings of one answer, since they
stand on the same rows. `options.rankings` names the extra ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from engine.attribute.faithfulness_report import (
    FURTHER,
    METHODS,
    FaithfulnessReport,
    faithfulness_of,
    rows_needed,
)
from engine.errors import InputError
from engine.evaluate.config import Config
from engine.evaluate.example import Example
from engine.evaluate.studies._abpc_tables import abpc_tables
from engine.evaluate.studies._cases import case_of, tokens_of
from engine.evaluate.study import Study
from engine.evaluate.tools import Tools
from engine.evaluate.values import Estimate, Found, Results, Row, Unit
from engine.progress import Watch
from engine.refine.costs import metered


def extra(config: Config) -> tuple[str, ...]:
    """The rankings beside input x gradient, occlusion and random ones."""
    asked = tuple(config.options.get("rankings", FURTHER))
    strange = [name for name in asked if name not in FURTHER]
    if strange:
        raise InputError(f"{strange[0]!r} is no further ranking. Name of: {', '.join(FURTHER)}.")
    return asked


def run(tools: Tools, unit: Unit, example: Example, watch: Watch) -> Found:
    """Write an answer, rank the tokens of its passages by every method, remove them in that order."""
    settings, scorer = tools.settings(unit.seed), tools.scorer
    with metered(scorer) as meter:
        written = tools.write(unit.seed)(example.question, example.passages, None, watch)
        case = case_of(example, example.passages, written)
        analysis = faithfulness_of(case, scorer, settings, watch, (*METHODS, *extra(tools.config)))
    report = FaithfulnessReport.from_dict(analysis.result)
    found = {curve.ranking: curve for curve in report.curves}
    values: dict[str, Any] = {
        "abpc": {**{name: curve.abpc for name, curve in found.items()}, "random": report.random.mean},
        "abpc_nats": {name: curve.abpc_nats for name, curve in found.items()},
        "passage_abpc": report.passages.abpc,
        "random": report.random.to_dict(),
        "curves": {name: [curve.shares, curve.morf, curve.lerf] for name, curve in found.items()},
        "diagnostics": report.diagnostics,
        "tokens": len(case.answer.tokens),
    }
    cost = replace(meter.cost, written=len(written.answer.tokens))
    return Found(values=values, case=replace(case, analyses=(analysis,)), cost=cost)


def cost(tools: Tools, unit: Unit, example: Example) -> Estimate:
    """One answer, then the rows of every ranking; integrated gradients take a forward and a backward a step."""
    settings, names = tools.settings(unit.seed), extra(tools.config)
    steps = settings.gradient.integrated_steps if "integrated gradients" in names else 0
    rows = rows_needed(len(example.passages), settings.faithfulness) + len(names) * 2 * settings.faithfulness.steps
    read = tokens_of(example.question, *(passage.text for passage in example.passages))
    forwards = rows + steps + len(names)
    return Estimate(calls=1, forwards=forwards, backwards=1 + steps, tokens=(1 + forwards) * read)


def results(config: Config, rows: Sequence[Row]) -> Results:
    """ABPC by method with intervals, paired differences, curves, diagnostics."""
    return abpc_tables(rows, ("input x gradient", *extra(config), "occlusion", "random"))


STUDY = Study(
    name="abpc",
    title="Faithfulness of rankings by perturbation: ABPC by method",
    shows=("grounded refinement, Tables 6, 7 and 14",),
    methods=("rankings",),
    run=run,
    results=results,
    cost=cost,
    needs=("passages",),
    writes_first=lambda config, unit, example: True,
)
