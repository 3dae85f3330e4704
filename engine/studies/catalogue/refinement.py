"""Grounded refinement: nine conditions on the same cases under three seeds (Tables 1 to 4, 10, 11, 13; section 4.7).

A unit is a question under a seed with all its conditions, since they stand on the same A. They run with the gate
always: each condition's own rule is asked of what is stored, so that one run gives the ungated comparison, the gated
one (an untriggered variant is A) and the flagged cases. The judge's pairs are the gated ones. D's threshold is the
config's percentile of S3 over the run; v2 has a row for each trigger that the config asks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from engine.analyses.kind import examine, less
from engine.analyses.refinement import KIND, RefinementOptions
from engine.answer.write import Written
from engine.core.errors import InputError
from engine.core.progress import Watch
from engine.core.settings import SecondPass as Rules, Settings
from engine.core.statistics import sign_test
from engine.core.values import Answer, Case, Json, Stamp
from engine.methods.flags import FEWEST_RANKED
from engine.methods.judge import VOTES, PairJudgement, Winner, first_share, judge_pair, judge_warning, swapped, tally
from engine.methods.refinement.conditions import NAMING, VARIANTS, chosen
from engine.methods.refinement.gates import concentration_of, concentration_trigger, flags_of, labels_trigger
from engine.methods.refinement.request import asked_limit
from engine.methods.refinement.run import report_scores
from engine.methods.refinement.values import Cost, Refinement
from engine.methods.signals import deployed_cost
from engine.models.embedder import DEFAULT
from engine.studies.config import Config
from engine.studies.example import Example, case_of, tokens_of
from engine.studies.on_case import advice_on
from engine.studies.refinement_tables import (
    CHANCE,
    RULES,
    RUNS,
    Fires,
    advice_tables,
    cost_tables,
    fires,
    flag_table,
    quartiles_of,
    score_tables,
    signal_table,
    triggers,
)
from engine.studies.summary import each_question, figure, line, measure_each, measured, table
from engine.studies.tools import Study, StudyTools
from engine.studies.values import Cell, Estimate, Figure, Found, Measure, Results, Row, StudyTable, Unit

# Refinement's judge: pairs of conditions compared by grounding, over all runs and over the flagged ones.

Pairs = Sequence[tuple[str, str]]
Winners = Sequence[Winner | None]


def judge_tables(rows: Sequence[Row], pairs: Pairs, marks: Fires, how: Rules) -> list[StudyTable]:
    """All runs under the conditions' own rules (Table 2), the runs that a trigger flags (Tables 10 and 11), all on."""
    ruled = gated(rows, pairs, marks, how)
    tables = [_table("judge", "Pairs of conditions by the judge, each under its own rule", rows, ruled)]
    second = [(first, other) for first, other in pairs if first.startswith("v2")]
    for trigger in triggers(how) if second else ():
        own = [marks[key] for first, _ in second if (key := f"{first}, {trigger}") in marks]
        flagged = [row for row in rows if any(fired.get(row.unit) for fired in own)]
        lines = {name: found for name, found in gated(flagged, second, marks, how).items() if name.endswith(trigger)}
        title = f"Pairs by the judge on the runs that {RULES[trigger]} starts"
        tables.append(_table(f"judge_flagged_{trigger}", title, flagged, lines, FLAGGED_SHOWS[trigger]))
    always = {f"{first} against {other}": [_winner(row, first, other) for row in rows] for first, other in pairs}
    tables.append(_table("judge_always", "Pairs by the judge, every second pass on", rows, always, "not in the paper"))
    return tables


FLAGGED_SHOWS = {"labels": "grounded refinement, Table 10", "concentration": "grounded refinement, Tables 11 and 12"}


def gated(rows: Sequence[Row], pairs: Pairs, marks: Fires, how: Rules) -> dict[str, list[Winner | None]]:
    """The winners of each pair under the conditions' own rules, for v2 under each trigger."""
    found = {}
    for first, second in pairs:
        flagged = any(name.startswith("v2") for name in (first, second))
        for trigger in triggers(how) if flagged else ("",):
            if any(name in NAMING and f"{name}, {trigger}" not in marks for name in (first, second)):
                continue
            title = f"{first} against {second}" + (f", {trigger}" if trigger else "")
            found[title] = [_gated_winner(row, first, second, marks, trigger) for row in rows]
    return found


def _gated_winner(row: Row, first: str, second: str, marks: Fires, trigger: str) -> Winner | None:
    """Who wins where an answer whose rule does not fire is A's: two of these are a tie, byte for byte."""
    names = [_stands_for(row, name, marks, trigger) for name in (first, second)]
    if None in names or not row.values.get("judged"):
        return None
    x, y = (str(name) for name in names)
    return "tie" if x == y else _winner(row, x, y)


def _stands_for(row: Row, name: str, marks: Fires, trigger: str) -> str | None:
    """The condition whose answer `name` has under its own rule; None where the rule cannot be asked."""
    own = marks.get(f"{name}, {trigger}" if name.startswith("v2") else name)
    if own is None:
        return name  # a control, or a condition that every answer gets
    fired = own.get(row.unit)
    return None if fired is None else name if fired else "A"


def _winner(row: Row, first: str, second: str) -> Winner | None:
    """The stored winner of a pair, in whichever order it was judged."""
    found: Winner | None = row.value("judged", f"{first}-{second}") or swapped(row.value("judged", f"{second}-{first}"))
    return found


def votes(rows: Sequence[Row], winners: Winners) -> Measure:
    """Mean of +1 (first wins), 0, -1 over the runs whose orders agree, by question."""
    return measure_each(rows, (VOTES.get(winner or "") for winner in winners))


def _table(
    name: str,
    title: str,
    rows: Sequence[Row],
    found: Mapping[str, Winners],
    shows: str = "grounded refinement, Table 2",
) -> StudyTable:
    def line_of(pair: str, winners: Winners) -> tuple[Cell, ...]:
        judged = tally([winner for winner in winners if winner is not None])
        counts = (judged.wins, judged.ties, judged.losses, judged.disagreed, judged.unparsed)
        found = each_question(rows, (VOTES.get(winner or "") for winner in winners))
        p = sign_test(list(found.values()), [0.0] * len(found)).p
        return (pair, *counts, list(winners).count(None), judged.win_share, measured(found), p)

    bias = first_share(votes for row in rows for votes in row.values.get("votes", {}).values())
    told = "" if bias is None else f" The answer shown first got {bias:.2f} of the single votes (0.5: no bias)."
    return table(
        name,
        title,
        "comparison | first wins (runs) | ties (runs) | second wins (runs) | "
        "orders disagree (runs) | unparsed (runs) | not judged (runs) | "
        "wins, of decided (share) | mean vote (+1 first, -1 second) | p, sign test",
        (line_of(*each) for each in found.items()),
        rows,
        f"Blinded, in both orders, counted if they agree; p is over questions, not corrected over the rows.{told}",
        n=len(rows),
        unit=RUNS,
        shows=shows,
    )


def judge_figure(rows: Sequence[Row], pairs: Pairs, marks: Fires, how: Rules) -> Figure:
    """Mean vote of every pair, each condition under its own rule."""
    found = gated(rows, pairs, marks, how)
    bars = line("all runs", {title: votes(rows, winners) for title, winners in found.items()})
    axes = "comparison", "mean vote (+1 first, -1 second)"
    return figure("bars", "judge", "Mean vote of the judge", *axes, [bars], "grounded refinement, Table 2")


PAIRS = ("D-A", "D-E", "E-A", "v2c-A", "v2c-D", "v2c-E")  # Tables 1 to 3, then 10 and 11
CALLS = {"E": 2}  # of the writer; the other conditions take one


def conditions(config: Config) -> tuple[str, ...]:
    """The conditions of a run, A and B always; `options.conditions` names them."""
    asked = chosen(",".join(config.option("conditions", tuple[str, ...], tuple(VARIANTS))))
    return tuple(name for name in VARIANTS if name in {*asked, "A", "B"})


def pairs(config: Config) -> tuple[tuple[str, str], ...]:
    """The comparisons of a run, by default those of the paper whose conditions are run; `options.pairs` names them."""
    there = conditions(config)
    named = [tuple(pair.split("-")) for pair in config.option("pairs", tuple[str, ...], PAIRS)]
    if any(len(pair) != 2 or not set(pair) <= VARIANTS.keys() for pair in named):
        raise InputError(f"A pair of conditions is written like D-A; conditions are {', '.join(VARIANTS)}.")
    return tuple((first, second) for first, second in named if first in there and second in there)


def judged_pairs(config: Config) -> tuple[tuple[str, str], ...]:
    """The pairs to judge: those of the run, and their replacements if a rule does not fire."""
    asked = list(pairs(config))
    for names in pairs(config):
        if any(VARIANTS[name].rule in ("S3", "flags") for name in names):
            asked += [(name, "A") for name in names if name != "A" and ("A", name) not in asked]
    return tuple(dict.fromkeys(asked))


def run(tools: StudyTools, unit: Unit, example: Example, watch: Watch) -> Found:
    """All conditions of one question under one seed, scored, and compared where there is a judge."""
    settings, writer = tools.config.stages(unit.seed), tools.writer
    case = case_of(example, example.passages, Written(answer=Answer(text=""), stamp=Stamp(model=writer.name)))
    names, verifier = conditions(tools.config), tools.config.verifier
    options = RefinementOptions(model=writer.name, variants=names, gate="always", verifier=verifier)
    case = examine(case, KIND, options, tools.context(settings, watch))
    (report,) = KIND.of(case)
    value = report.refinement
    golds = [spelling for thing in example.short_answers for spelling in thing]
    scores = report_scores(report, example.passages, golds)
    judged = _judged(tools, example, value, watch)
    embedder = tools.loaders.embedder(DEFAULT)
    advice = advice_on(example.question, example.passages, s3=value.signals.s3, embedder=embedder)
    values = {
        "s1": value.signals.s1,
        "s2": value.signals.s2,
        "s3": value.signals.s3,
        **_triggers(value, case, settings),
        "advice": {"branch": advice.branch, "difficulty": advice.difficulty},
        "conditions": {
            name: {
                **(less(scores[name], {"missing"}) if name in scores else {}),
                "outcome": variant.outcome,
                "cost": deployed_cost(value, name).to_dict(),
                "own_cost": variant.cost.to_dict(),
            }
            for name, variant in value.variants.items()
        },
        "judged": {pair: found.winner for pair, found in judged.items()},
        "votes": {pair: found.orders for pair, found in judged.items()},
    }
    spent = sum((v.cost for v in value.variants.values()), sum(value.shared.values(), Cost()))
    return Found(
        values=values,
        missing=value.missing,
        case=replace(case, answer=value.baseline or case.answer, stamp=value.stamp),
        cost=spent,
        unparsed=sum(found.winner == "unparsed" for found in judged.values()),
    )


def _triggers(value: Refinement, case: Case, settings: Settings) -> Json:
    """Whether each trigger fires, and how often it would by chance.

    None without gradient rows of two passages; None for the labels' rule without a label on one of the passages.
    """
    fired: dict[str, bool | None] = dict.fromkeys(CHANCE)
    chance: dict[str, float | None] = dict.fromkeys(CHANCE.values())
    numbers = [number for (number,) in value.gradient.sources] if value.gradient is not None else []
    if value.gradient is not None and len(numbers) >= FEWEST_RANKED:
        found = concentration_of(value.gradient, settings)
        fired["concentration"] = concentration_trigger(found).fired
        chance[CHANCE["concentration"]] = found.random_rate
        if any(case.labels.get(number) is not None for number in numbers):
            flags = flags_of(value.gradient, case.labels, settings)
            fired["labels"], chance[CHANCE["labels"]] = labels_trigger(flags).fired, flags.random_flag_rate
    return {"fired": fired, **chance}


def _judged(tools: StudyTools, example: Example, value: Refinement, watch: Watch) -> dict[str, PairJudgement]:
    found: dict[str, PairJudgement] = {}
    if tools.judge is None:
        return found
    texts = [passage.text for passage in example.passages]
    for first, second in judged_pairs(tools.config):
        x, y = (value.variants[name].answer for name in (first, second))
        if x is not None and y is not None:
            found[f"{first}-{second}"] = judge_pair(tools.judge, example.question, texts, x.text, y.text, watch)
    return found


def cost(tools: StudyTools, unit: Unit, example: Example) -> Estimate:
    """Every condition's calls, two texts for S2, the gradient rows, both orders of every pair."""
    settings, names = tools.config.stages(unit.seed), conditions(tools.config)
    read = tokens_of(example.question, *(passage.text for passage in example.passages))
    limit = asked_limit(settings)
    calls = sum(CALLS.get(name, 1) for name in names)
    flagged = any(VARIANTS[name].rule == "flags" for name in names)
    judged = 2 * len(judged_pairs(tools.config)) if tools.judge is not None else 0
    return Estimate(
        calls=calls,
        forwards=2 + flagged,
        backwards=settings.gradient.first_tokens + 1 if flagged else 0,  # and the answer's own row
        judged=judged,
        tokens=calls * (read + 2 * limit) + judged * (read + 3 * limit),
    )


def results(config: Config, rows: Sequence[Row]) -> Results:
    """Scores and comparisons, the judge's, flag rates, quartiles, costs."""
    names, compared, how = conditions(config), pairs(config), config.stages(config.seeds[0]).refinement
    marks = fires(rows, names, how)
    tables = [*score_tables(rows, names, compared, marks), signal_table(rows), flag_table(rows, names, marks, how)]
    figures = []
    said = []
    if config.judge:
        tables += judge_tables(rows, compared, marks, how)
        figures.append(judge_figure(rows, compared, marks, how))
        said.append(judge_warning(config.judge, [config.model]))
    else:
        said.append("Pairwise judge (Tables 2, 10, 11): off, because the config has no judge.")
    found = quartiles_of(rows, by_judge=bool(config.judge))
    tables += [*found.tables, *advice_tables(rows), *cost_tables(rows, names, marks)]
    figures += found.figures
    return Results(tables=tuple(tables), figures=tuple(figures), notes=tuple(filter(None, (*said, *found.notes))))


STUDY = Study(
    name="refinement",
    title="Effect of a second pass on a grounded answer",
    shows=("grounded refinement, Tables 1 to 4, 10, 11 and 13", "its section 4.7 (costs)"),
    methods=("conditions",),
    options=("conditions", "pairs"),
    check=pairs,
    models=("writer", "verifier"),
    run=run,
    results=results,
    cost=cost,
    needs=("passages",),
    uses={"relevance labels": "RFCP, distractor share and the flags from labels", "short answers": "STR-EM"},
)
