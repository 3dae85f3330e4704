"""Refinement's tables from rows: scores, comparisons, flag rates, quartiles of S3, costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

from msgspec.structs import replace

from engine.core.errors import InputError
from engine.core.settings import SecondPass as Rules
from engine.core.statistics import rank_correlation, rank_correlation_interval
from engine.methods.judge import VOTES
from engine.methods.refinement.advisor import Point, QuartileStudy, gain_by_quartile
from engine.methods.refinement.conditions import NAMING
from engine.methods.refinement.values import WITH_ANSWER, OverlapThreshold
from engine.methods.signals import overlap_threshold
from engine.studies.summary import (
    CORRECTION,
    MEANS,
    PAIRED,
    PairedComparison,
    by_question,
    corrected,
    figure,
    measure,
    measure_each,
    measured,
    pair,
    points_of,
    questions_in,
    table,
)
from engine.studies.values import Cell, Column, Measure, Results, Row, StudyTable, Unit


@dataclass(frozen=True)
class Score:
    """A score of an answer: its field, its column, and what no answer counts as (None: it is left out)."""

    field: str
    column: Column
    lost: float | None


SCORES = (
    Score("citation_precision", Column.of("NLI citation precision (share) ↑"), None),
    Score("citation_recall", Column.of("ALCE citation recall (share) ↑"), 0.0),
    Score("rfcp", Column.of("RFCP (share) ↑"), None),
    Score("distractor_share", Column.of("distractor citations (share) ↓"), None),
    Score("str_em", Column.of("STR-EM (share) ↑"), 0.0),
    Score("s3", Column.of("S3 (share) ↑"), None),
    Score("unsupported", Column.of("content words in no passage (words) ↓"), None),
    Score("words", Column.of("words (words)"), None),
    Score("citations", Column.of("citations (per answer)"), None),
)
RUNS = "runs (question x seed)"  # what n counts where seeds are not averaged


def of_condition(rows: Sequence[Row], name: str) -> list[Row]:
    """The rows as if each unit were that condition alone; one without an answer is a failed one, if it applies."""
    found = []
    for row in rows:
        values = row.value("conditions", name) or {}
        state = "done" if values.get("outcome") in (*WITH_ANSWER, "not applicable") else "failed"
        found.append(replace(row, unit=replace(row.unit, method=name), values=values, state=state))
    return found


def score_tables(
    rows: Sequence[Row], names: Sequence[str], pairs: Sequence[tuple[str, str]], marks: Fires
) -> list[StudyTable]:
    """Means of every score by condition, what came of the calls, and the paired differences."""
    by = {name: of_condition(rows, name) for name in names}
    defined = [s for s in SCORES if any(row.values.get(s.field) is not None for own in by.values() for row in own)]
    scores = table(
        "scores",
        "Scores of the answers by condition, every second pass on",
        (Column(name="condition"), *(s.column for s in defined)),
        ((name, *(measure(own, s.field, s.lost) for s in defined)) for name, own in by.items()),
        rows,
        "Seeds are averaged per question. A score's n leaves out answers for which it is undefined. A failed answer"
        " counts 0 in recall and STR-EM and is left out of the others.",
        shows="grounded refinement, Tables 1 and 3",
    )
    return [
        scores,
        _outcomes(rows, by),
        _added(rows, by),
        _comparisons(rows, by, pairs, defined),
        _gated(rows, defined, marks),
        _by_firing(rows, by, defined, marks),
    ]


def _outcomes(rows: Sequence[Row], by: Mapping[str, Sequence[Row]]) -> StudyTable:
    counts = {name: Counter(row.values.get("outcome", "unit failed") for row in own) for name, own in by.items()}
    kinds = sorted({kind for count in counts.values() for kind in count})
    columns = (Column(name="condition"), *(Column(name=kind, unit="runs") for kind in kinds))
    body: list[tuple[Cell, ...]] = [(name, *(count[kind] for kind in kinds)) for name, count in counts.items()]
    return table("outcomes", "Outcomes of each condition", columns, body, rows, n=len(rows), unit=RUNS)


def _added(rows: Sequence[Row], by: Mapping[str, Sequence[Row]]) -> StudyTable:
    """How often a condition says what no passage holds where A did not, or said less of it."""

    def line_of(name: str) -> tuple[Cell, ...]:
        pairs = zip(*([row.values.get("unsupported") for row in by[each]] for each in (name, "A")), strict=True)
        added = [None if own is None or a is None else own - a for own, a in pairs]
        more, less = ([words if words is None else turn * words > 0 for words in added] for turn in (1, -1))
        return name, measure_each(by[name], more), measure_each(by[name], less)

    return table(
        "added",
        "Runs in which a condition says more, or less, than A that no passage contains",
        "condition | more (share of runs) ↓ | less (share of runs) ↑",
        (line_of(name) for name in by if name != "A"),
        rows,
        "By content words that occur in none of the passages.",
    )


def _comparisons(
    rows: Sequence[Row], by: Mapping[str, Sequence[Row]], pairs: Sequence[tuple[str, str]], scores: Sequence[Score]
) -> StudyTable:
    heads = [f"{first} - {second}" for first, second in pairs for _ in scores]
    found = corrected([one for first, second in pairs for one in _minus(by[first], by[second], scores)])
    return table(
        "comparisons",
        "Paired differences between conditions, every second pass on",
        "comparison | score | difference (of the score) | higher (questions) | "
        "lower (questions) | ties (questions) | p, Holm | effect (d_z) | n",
        (
            (head, c.method, c.difference, c.higher, c.lower, c.ties, c.p, c.effect, c.difference.n)
            for head, c in zip(heads, found, strict=True)
        ),
        rows,
        shows="grounded refinement, Tables 1 and 3",
        intervals=(PAIRED, CORRECTION),
    )


Fires = Mapping[str, Mapping[Unit, bool]]
"""By the name that a rule has in a table (D; v2c, labels): whether it fires, by unit; a unit it cannot be asked of is
left out."""
RULES = {"labels": "flags from labels", "concentration": "concentration"}
CHANCE = {"labels": "by_chance", "concentration": "by_chance_concentration"}
"""The value of a row with the share of random rankings in which the trigger fires."""


def triggers(how: Rules) -> tuple[str, ...]:
    """The triggers of v2a to v2c that a config asks for; `auto` takes either, so each has its row."""
    return tuple(RULES) if how.trigger == "auto" else (how.trigger,)


def run_threshold(rows: Sequence[Row], how: Rules) -> OverlapThreshold:
    """S3 under which D fires: over the run's own S3, by the config's percentile and threshold."""
    return overlap_threshold([row.values["s3"] for row in rows if row.values.get("s3") is not None], how)


def fires(rows: Sequence[Row], names: Sequence[str], how: Rules) -> Fires:
    """Every rule of the gated conditions among `names`, v2 once for each trigger, by the config's settings.

    The critiques of v2a and v2b were written once. Where the config asks for both triggers and a passage is labelled,
    they name what the labels flag, so their answers are none of the concentration trigger's.
    """
    found: dict[str, dict[Unit, bool]] = {}
    if "D" in names:
        limit = run_threshold(rows, how).value
        found["D"] = {row.unit: row.values["s3"] < limit for row in rows if row.values.get("s3") is not None}
    for name in names:
        for trigger in triggers(how) if name.startswith("v2") else ():
            fired = _fired(rows, trigger)
            if name in NAMING and (how.trigger, trigger) == ("auto", "concentration"):
                labelled = _fired(rows, "labels")
                fired = {unit: mark for unit, mark in fired.items() if unit not in labelled}
                if labelled and not fired:
                    continue
            found[f"{name}, {trigger}"] = fired
    return found


def _fired(rows: Sequence[Row], trigger: str) -> dict[Unit, bool]:
    marks = {row.unit: row.value("fired", trigger) for row in rows}
    return {unit: mark for unit, mark in marks.items() if mark is not None}


def _gated(rows: Sequence[Row], scores: Sequence[Score], marks: Fires) -> StudyTable:
    """Each second pass under its own rule, in the runs that it can be asked of; unless it fires, the answer is A's."""

    def line_of(rule: str, fired: Mapping[Unit, bool]) -> tuple[Cell, ...]:
        asked = [row for row in rows if row.unit in fired]
        own, first = (of_condition(asked, name) for name in (rule.partition(",")[0], "A"))
        kept = [one if fired[row.unit] else a for one, a, row in zip(own, first, asked, strict=True)]
        differences = (one.difference for one in _minus(kept, first, scores))
        return rule, sum(fired.values()), len(rows) - len(fired), *differences

    return table(
        "gated",
        "Each second pass under its own rule, minus A; if the rule does not fire, the answer is A's",
        (*Column.row("condition | fired (runs) | not asked (runs)"), *_differences(scores)),
        (line_of(*rule) for rule in marks.items()),
        rows,
        intervals=(PAIRED,),
    )


def _by_firing(
    rows: Sequence[Row], by: Mapping[str, Sequence[Row]], scores: Sequence[Score], marks: Fires
) -> StudyTable:
    """Whether a second pass gains more where its rule fires than where it does not; it is written in both."""

    def line_of(rule: str, fired: Mapping[Unit, bool], state: bool) -> tuple[Cell, ...]:
        asked = [fired.get(row.unit) is state for row in rows]
        own, first = (list(compress(by[name], asked)) for name in (rule.partition(",")[0], "A"))
        return rule, "yes" if state else "no", len(own), *(one.difference for one in _minus(own, first, scores))

    return table(
        "by_firing",
        "Each second pass minus A where its rule fires and where it does not, every second pass on",
        (*Column.row("condition | fires | of (runs)"), *_differences(scores)),
        (line_of(*rule, state) for rule in marks.items() for state in (True, False)),
        rows,
        *(["Where nothing is flagged, the critiques of v2a and v2b name other passages."] if "v2a" in by else []),
        shows="grounded refinement, section 3.8",
        intervals=(PAIRED,),
    )


def _minus(own: Sequence[Row], first: Sequence[Row], scores: Sequence[Score]) -> list[PairedComparison]:
    """The rows less the `first` in each score, paired by question."""
    return [pair(s.column.name, *(by_question(rows, s.field, s.lost) for rows in (own, first))) for s in scores]


def _differences(scores: Sequence[Score]) -> list[Column]:
    return [replace(s.column, unit=f"{s.column.unit}, difference") for s in scores]


def flag_table(rows: Sequence[Row], names: Sequence[str], marks: Fires, how: Rules) -> StudyTable:
    """How often each rule starts a second pass: one row per trigger that the config asks for."""
    limit = run_threshold(rows, how)
    rules: list[tuple[str, str, list[bool | None], str]] = []
    if "E" in names:
        rules.append(("E", "every time", [True if row.state == "done" else None for row in rows], ""))
    if "D" in names:
        rule = f"S3 under {limit.value:.2f}: {limit.rule}"
        rules.append(("D", rule, [marks["D"].get(row.unit) for row in rows], ""))
    flagged = [name for name in names if name.startswith("v2")]
    for trigger in triggers(how) if flagged else ():
        own = _fired(rows, trigger)
        rules.append((", ".join(flagged), RULES[trigger], [own.get(row.unit) for row in rows], CHANCE[trigger]))
    return table(
        "flag_rates",
        "How often each rule starts a second pass",
        "condition | rule | fires (runs) | of (runs) | rate (share) | by chance (share) | not asked (runs)",
        ((name, rule, *_rate(rows, asked, chance)) for name, rule, asked, chance in rules),
        rows,
        "Not asked: no gradient rows, one passage in the prompt, no label, or no answer.",
        "By chance: the share of 200 random rankings of a case's passages in which the rule fires (concentration: each"
        " token's shares of the relevance in random order).",
        n=len(rows),
        unit=RUNS,
        shows="grounded refinement, Table 13",
    )


def _rate(rows: Sequence[Row], marks: Sequence[bool | None], by_chance: str) -> tuple[Cell, ...]:
    known = [row for row, mark in zip(rows, marks, strict=True) if mark is not None]
    chance = measure(known, by_chance, None) if any(by_chance in row.values for row in known) else None
    return sum(map(bool, marks)), len(known), measure_each(rows, marks), chance, len(marks) - len(known)


SIGNALS = {"s1": "S1 (ROUGE-L F1, lower is grounded)", "s2": "S2 (nats per token)", "s3": "S3 (share)"}


def signal_table(rows: Sequence[Row]) -> StudyTable:
    """Means of S1 to S3, and whether they tell how good A's citations and its answer are, over questions."""
    scores = {field: by_question(of_condition(rows, "A"), field, None) for field in ("citation_precision", "str_em")}
    signals = {title: by_question(rows, field, None) for field, title in SIGNALS.items()}
    return table(
        "signals",
        "Signals of A, and their rank correlation with its scores",
        "signal | mean | rho with citation precision ([-1, 1]) | rho with STR-EM ([-1, 1])",
        (
            (title, measured(values), *(_correlated(values, score) for score in scores.values()))
            for title, values in signals.items()
        ),
        rows,
        "rho: Spearman's, with its 95% interval by Fisher's z.",
        shows="grounded refinement, section 3.2",
    )


def _correlated(first: Mapping[str, float], second: Mapping[str, float]) -> Measure:
    """Spearman's rho over the questions that have both values."""
    shared = [question for question in first if question in second]
    rho = rank_correlation([first[q] for q in shared], [second[q] for q in shared])
    low, high = rank_correlation_interval(rho, len(shared)) or (None, None)
    return Measure(value=rho, low=low, high=high, n=len(shared))


def advice_tables(rows: Sequence[Row]) -> list[StudyTable]:
    """Gain of D over A by what the advisor says of the question, its passages and S3 of A; none without advice."""
    advised = [(row, row.values["advice"], _gain(row)) for row in rows if row.values.get("advice")]
    known = [(row, advice, gain) for row, advice, gain in advised if gain is not None]
    if not known:
        return []
    rho = rank_correlation([advice["difficulty"] for _, advice, _ in known], [gain for *_, gain in known])
    questions = len({row.unit.example for row, *_ in known})  # the seeds of one are not independent

    def line_of(branch: str) -> tuple[Cell, ...]:
        own, gains = zip(*((row, gain) for row, advice, gain in known if advice["branch"] == branch), strict=True)
        up, down = ([turn * gain > 0 for gain in gains] for turn in (1, -1))
        return branch, len(own), measure_each(own, gains), measure_each(own, up), measure_each(own, down)

    return [
        table(
            "advice",
            "Gain of D over A by the advisor's branch",
            "branch | runs | gain (citation precision) ↑ | gained (share of runs) ↑ | lost (share of runs) ↓",
            map(line_of, dict.fromkeys(advice["branch"] for _, advice, _ in known)),
            rows,
            f"Spearman's rho of difficulty and gain: {_rho(rho, questions)}.",
            n=len(known),
            unit=RUNS,
            shows="grounded refinement, appendix B",
        )
    ]


def _rho(rho: float | None, n: int) -> str:
    """Spearman's rho of n pairs with its 95% interval, where it has one."""
    if rho is None:
        return "not defined"
    interval = rank_correlation_interval(rho, n)
    return f"{rho:.2f}" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")


COSTS = {"forwards": "calls of the model", "backwards": "", "tokens": "positions", "written": "tokens", "seconds": "s"}


def cost_tables(rows: Sequence[Row], names: Sequence[str], marks: Fires) -> list[StudyTable]:
    """The cost of a condition alone: with its second pass, and under its own rule."""

    def line_of(name: str) -> tuple[Cell, ...]:
        own = of_condition(rows, name)
        return name, *(measure(own, ("cost", field), None) for field in COSTS)

    columns = [Column(name=field, unit=unit, better="lower") for field, unit in COSTS.items()]
    shows = "grounded refinement, section 4.7"
    always = table(
        "costs",
        "Cost of a condition with every second pass on, including everything it depends on",
        (Column(name="condition"), *columns),
        map(line_of, names),
        rows,
        shows=shows,
    )
    ruled = table(
        "costs_gated",
        "Cost of a condition under its own rule: A, what the rule needs, and the second pass where it fires",
        (*Column.row("condition | fires (share of runs)"), *columns),
        (_ruled_cost(rows, *rule) for rule in marks.items()),
        rows,
        shows=shows,
    )
    return [always, ruled] if marks else [always]


def _ruled_cost(rows: Sequence[Row], rule: str, fired: Mapping[Unit, bool]) -> tuple[Cell, ...]:
    """A rule's line, over the runs that it can be asked of; where it does not fire, its condition's calls are saved."""
    asked = [row for row in rows if row.unit in fired]
    marks, own = [fired[row.unit] for row in asked], of_condition(asked, rule.partition(",")[0])

    def spent(row: Row, mark: bool, field: str) -> float | None:
        whole: float | None = row.value("cost", field)
        return whole if mark or whole is None else whole - float(row.value("own_cost", field))

    means = (measure_each(own, [spent(row, mark, f) for row, mark in zip(own, marks, strict=True)]) for f in COSTS)
    return rule, measure_each(asked, marks), *means


# Refinement's gain by quartile of S3 (Table 4), in citation precision and by the judge's votes.


def quartiles_of(rows: Sequence[Row], by_judge: bool) -> Results:
    """Gain of D over A by quartile of S3: in citation precision, and by the judge's votes where there are any."""
    kinds = {"citation precision": [_gain(row) for row in rows]}
    if by_judge:
        asked = [row.value("judged", "D-A") if row.value("s3") is not None else "" for row in rows]
        kinds["judge, +1 D, -1 A"] = [VOTES.get(winner or "") for winner in asked]
    tables, figures, said = [], [], []
    for unit, gains in kinds.items():
        points = [(row, gain) for row, gain in zip(rows, gains, strict=True) if gain is not None]
        try:
            study = gain_by_quartile([Point(question=r.unit.example, s3=r.values["s3"], gain=g) for r, g in points])
        except InputError as error:
            said.append(f"Gain by quartile of S3, {unit} (Table 4): {error}")
            continue
        name = "judge" if unit.startswith("judge") else "precision"
        tables.append(_quartile_table(study, unit, name, rows, questions_in([row for row, _ in points])))
        series = points_of("runs", ((row, row.values["s3"], gain) for row, gain in points))
        title, axes = "Gain of D over A against S3 of A", ("S3 of A (share of content words found)", f"D - A ({unit})")
        shows = "grounded refinement, Table 4"
        figures.append(figure("points", f"gain_by_s3_{name}", title, *axes, [series], shows))
    return Results(tables=tuple(tables), figures=tuple(figures), notes=tuple(said))


def _gain(row: Row) -> float | None:
    first, second = (row.value("conditions", name, "citation_precision") for name in ("A", "D"))
    return None if first is None or second is None or row.values.get("s3") is None else second - first


def _quartile_table(study: QuartileStudy, unit: str, name: str, rows: Sequence[Row], n: int) -> StudyTable:
    gain = Column(name="gain", unit=unit, better="higher")
    return table(
        f"quartiles_{name}",
        f"Gain of D over A by quartile of S3 ({unit})",
        (*Column.row("quartile | questions | S3 from | S3 to"), gain),
        (
            (q.name, q.questions, q.s3_low, q.s3_high, Measure(value=q.gain, low=q.low, high=q.high, n=q.questions))
            for q in study.quartiles
        ),
        rows,
        n=n,
        shows="grounded refinement, Table 4",
        intervals=(f"Spearman's rho of S3 and gain: {_rho(study.rho, n)}.", *study.readings, MEANS),
    )
