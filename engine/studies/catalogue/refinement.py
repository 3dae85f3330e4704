"""Grounded refinement: nine conditions on the same cases under three seeds (Tables 1 to 4, 10, 11, 13; section 4.7).

A unit is a question under a seed with all its conditions, since they stand on the same A. They run with the gate
always: each condition's own rule is asked of what is stored, so that one run gives the ungated comparison, the gated
one (an untriggered variant is A) and the flagged cases. D's threshold is the 40th percentile of S3 over the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from engine.analyses.refinement import (
    Report,
    analysis_of,
    refine_case,
    report_scores,
    request_for,
)
from engine.answer.write import Written
from engine.core.errors import InputError
from engine.core.progress import Watch, last
from engine.core.settings import Settings
from engine.core.values import Answer, Case, Stamp
from engine.methods.judge import Winner, judge_pair, judge_warning, tally
from engine.methods.refinement.conditions import VARIANTS, chosen
from engine.methods.refinement.gates import (
    concentration_of,
    concentration_trigger,
    flags_of,
    labels_trigger,
)
from engine.methods.refinement.request import Request, asked_limit
from engine.methods.refinement.values import Cost, Refinement
from engine.methods.signals import deployed_cost
from engine.studies.config import Config
from engine.studies.example import Example, case_of, tokens_of
from engine.studies.refinement_tables import VOTES, cost_table, fired, flag_table, quartiles_of, score_tables
from engine.studies.summary import line, measure, notes
from engine.studies.tools import Study, StudyTools
from engine.studies.values import (
    Axis,
    Cell,
    Column,
    Estimate,
    Figure,
    Found,
    Measure,
    Results,
    Row,
    StudyTable,
    Unit,
)

# Refinement's judge: pairs of conditions compared by grounding, over all runs and over the flagged ones.

Pairs = Sequence[tuple[str, str]]


def judge_tables(rows: Sequence[Row], pairs: Pairs) -> list[StudyTable]:
    """All runs (Table 2), then v2c on the runs that its own trigger flags (Tables 10 and 11)."""
    marks = fired(rows, "v2c")
    flagged = [row for row in rows if marks.get(row.unit)]
    tables = [_table("judge", "Pairs of conditions by the judge", rows, pairs, "grounded refinement, Table 2")]
    second = [names for names in pairs if names[0].startswith("v2")]
    if second:
        shows = "grounded refinement, Tables 10 and 11"
        tables.append(_table("judge_flagged", "Pairs by the judge on flagged runs", flagged, second, shows))
    return tables


def votes(rows: Sequence[Row], first: str, second: str) -> Measure:
    """Mean of +1 (first wins), 0, -1 over the runs whose orders agree, by question."""
    marked = [replace(row, values={"vote": VOTES.get(_winner(row, first, second) or "")}) for row in rows]
    return measure(marked, "vote", None)


def _winner(row: Row, first: str, second: str) -> Winner | None:
    found: Winner | None = row.values.get("judged", {}).get(f"{first}-{second}")
    return found


def _table(name: str, title: str, rows: Sequence[Row], pairs: Pairs, shows: str) -> StudyTable:
    lines: list[tuple[Cell, ...]] = []
    for first, second in pairs:
        winners = [_winner(row, first, second) for row in rows]
        found = tally([winner for winner in winners if winner is not None])
        lines.append(
            (
                f"{first} against {second}",
                found.wins,
                found.ties,
                found.losses,
                found.disagreed,
                found.unparsed,
                winners.count(None),
                found.win_share,
                votes(rows, first, second),
                found.p,
            )
        )
    return StudyTable(
        name=name,
        title=title,
        columns=(
            Column(name="comparison"),
            Column(name="first wins", unit="runs"),
            Column(name="ties", unit="runs"),
            Column(name="second wins", unit="runs"),
            Column(name="orders disagree", unit="runs"),
            Column(name="unparsed", unit="runs"),
            Column(name="not judged", unit="runs"),
            Column(name="wins, of decided", unit="share"),
            Column(name="mean vote", unit="+1 first, -1 second"),
            Column(name="p, binomial"),
        ),
        rows=tuple(lines),
        n=len(rows),
        unit="runs (question x seed)",
        shows=shows,
        notes=notes(rows, "Blinded, both orders, counted where they agree; p is not corrected over the rows."),
    )


def judge_figure(rows: Sequence[Row], pairs: Pairs) -> Figure:
    """Mean vote of every pair."""
    return Figure(
        name="judge",
        title="Mean vote of the judge",
        kind="bars",
        x=Axis(name="comparison"),
        y=Axis(name="mean vote", unit="+1 first, -1 second"),
        series=(line("all runs", {f"{a} against {b}": votes(rows, a, b) for a, b in pairs}),),
        shows="grounded refinement, Table 2",
    )


PAIRS = ("D-A", "D-E", "E-A", "v2c-A", "v2c-D", "v2c-E")  # Tables 1 to 3, then 10 and 11
CALLS = {"E": 2}  # of the writer; the other conditions take one


def conditions(config: Config) -> tuple[str, ...]:
    """The conditions of a run, A and B always; `options.conditions` names them."""
    asked = chosen(",".join(config.options.get("conditions", VARIANTS)))
    return tuple(name for name in VARIANTS if name in {*asked, "A", "B"})


def pairs(config: Config) -> tuple[tuple[str, str], ...]:
    """The comparisons of a run, by default those of the paper whose conditions are run; `options.pairs` names them."""
    there = conditions(config)
    named = [tuple(pair.split("-")) for pair in config.options.get("pairs", PAIRS)]
    if any(len(pair) != 2 or not set(pair) <= VARIANTS.keys() for pair in named):
        raise InputError(f"A pair of conditions is written like D-A; conditions are {', '.join(VARIANTS)}.")
    return tuple((first, second) for first, second in named if first in there and second in there)


def run(tools: StudyTools, unit: Unit, example: Example, watch: Watch) -> Found:
    """All conditions of one question under one seed, scored, and compared where there is a judge."""
    settings = tools.settings(unit.seed)
    names = conditions(tools.config)
    plain = case_of(example, example.passages, Written(answer=Answer(text=""), stamp=Stamp(model=tools.writer.name)))
    request = request_for(plain, tools.writer, settings, variants=names, gate="always")
    report = last(refine_case(plain, request, verifier=tools.verifier, watch=watch))
    value = report.refinement
    golds = [spelling for thing in example.short_answers for spelling in thing]
    scores = report_scores(report, example.passages, golds)
    judged, unparsed = _judged(tools, example, value, watch)
    values = {
        "s1": value.signals.s1,
        "s2": value.signals.s2,
        "s3": value.signals.s3,
        "fired": _fired(value, request, settings),
        "conditions": {
            name: {
                **(_plain(scores[name].to_dict()) if name in scores else {}),
                "outcome": variant.outcome,
                "cost": deployed_cost(value, name).to_dict(),
                "own_cost": variant.cost.to_dict(),
            }
            for name, variant in value.variants.items()
        },
        "judged": judged,
    }
    spent = sum((v.cost for v in value.variants.values()), sum(value.shared.values(), Cost()))
    missing = {**value.signals.missing, **({"gradient": value.gradient_missing} if value.gradient_missing else {})}
    return Found(values=values, missing=missing, case=_case(plain, report), cost=spent, unparsed=unparsed)


def _plain(scores: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in scores.items() if name != "missing"}


def _fired(value: Refinement, request: Request, settings: Settings) -> dict[str, bool | None]:
    """Whether the attribution triggers fire, each on its own rule; None without gradient rows or labels."""
    if value.gradient is None:
        return {"labels": None, "concentration": None}
    labelled = any(label is not None for label in request.labels.values())
    flags = labels_trigger(flags_of(value.gradient, request.labels, settings)) if labelled else None
    concentrated = concentration_trigger(concentration_of(value.gradient, settings))
    return {"labels": flags.fired if flags else None, "concentration": concentrated.fired}


def _judged(tools: StudyTools, example: Example, value: Refinement, watch: Watch) -> tuple[dict[str, str], int]:
    """The winner of each pair by the judge, and how many could not be read; nothing without a judge."""
    found: dict[str, str] = {}
    if tools.judge is None:
        return found, 0
    texts = [passage.text for passage in example.passages]
    for first, second in pairs(tools.config):
        x, y = (value.variants[name].answer for name in (first, second))
        if x is not None and y is not None:
            winner = judge_pair(tools.judge, example.question, texts, x.text, y.text, watch).winner
            found[f"{first}-{second}"] = winner
    return found, sum(winner == "unparsed" for winner in found.values())


def _case(case: Case, report: Report) -> Case:
    """The case with A as its answer and the run as its analysis."""
    value = report.refinement
    written = replace(case, answer=value.baseline or case.answer, stamp=value.stamp)
    return replace(written, analyses=(analysis_of(written, report, use_answer=False),))


def cost(tools: StudyTools, unit: Unit, example: Example) -> Estimate:
    """Every condition's calls, two texts for S2, the gradient rows, both orders of every pair."""
    settings, names = tools.settings(unit.seed), conditions(tools.config)
    read = tokens_of(example.question, *(passage.text for passage in example.passages))
    limit = asked_limit(settings)
    calls = sum(CALLS.get(name, 1) for name in names)
    flagged = any(VARIANTS[name].rule == "flags" for name in names)
    judged = 2 * len(pairs(tools.config)) if tools.judge is not None else 0
    return Estimate(
        calls=calls,
        forwards=2 + flagged,
        backwards=settings.gradient.first_tokens if flagged else 0,
        judged=judged,
        tokens=calls * (read + 2 * limit) + judged * (read + 3 * limit),
    )


def results(config: Config, rows: Sequence[Row]) -> Results:
    """Scores and comparisons, the judge's, flag rates, quartiles, costs."""
    names, compared = conditions(config), pairs(config)
    tables = [*score_tables(rows, names, compared), flag_table(rows, names)]
    figures = []
    said = []
    if config.judge:
        tables += judge_tables(rows, compared)
        figures.append(judge_figure(rows, compared))
        said.append(judge_warning(config.judge, [config.model]))
    else:
        said.append("Pairwise judge (Tables 2, 10, 11): off, the config names no judge.")
    found = quartiles_of(rows, by_judge=bool(config.judge))
    tables += [*found.tables, cost_table(rows, names)]
    figures += found.figures
    return Results(tables=tuple(tables), figures=tuple(figures), notes=tuple(filter(None, (*said, *found.notes))))


USES: Mapping[str, str] = {
    "relevance labels": "RFCP, distractor share and the flags from labels",
    "short answers": "STR-EM",
}
STUDY = Study(
    name="refinement",
    title="What a second pass does to a grounded answer",
    shows=("grounded refinement, Tables 1 to 4, 10, 11 and 13", "its section 4.7 (costs)"),
    methods=("conditions",),
    run=run,
    results=results,
    cost=cost,
    needs=("passages",),
    uses=USES,
    writes_first=lambda config, unit, example: True,
)
