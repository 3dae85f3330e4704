"""RAISE and its nine baselines (RAISE, Tables 1 and 2, Fig. 2, 5 and 7): one data set and one model per run.

Accuracy on multiple choice: where a reply names no option, a model that scores is asked for one, and any other model's
reply is wrong and counted as unparsed. ROUGE-L of open answers; gold passages found before T and read after it; what it
cost. Relevance of what was retrieved on four levels is rated by the model that `judge` names. The options' order and T
are the data set's and the embedder's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from engine.analyses.kind import examine
from engine.analyses.steps import KIND, StepsOptions
from engine.answer.write import Written
from engine.core.errors import PromptTooLong
from engine.core.metrics import rouge_l
from engine.core.progress import Watch
from engine.core.values import Answer, Json, Stamp
from engine.methods.judge import LEVELS
from engine.methods.raise_.relevance import rate, ratings_analysis
from engine.methods.raise_.threshold import read, recall, retrieved
from engine.methods.raise_.values import METHODS, Solution, method_of
from engine.methods.refinement.costs import metered
from engine.studies import summary
from engine.studies.config import Config
from engine.studies.example import Example, case_of, gold_in, tokens_of
from engine.studies.tools import Study, StudyTools
from engine.studies.values import Cell, Column, Estimate, Figure, Found, Measure, Results, Row, Series, StudyTable, Unit

# Tables and figures.

RAISE, COT = "raise", "cot"
LABELS = {method.name: method.label for method in METHODS}
RATED = (*LEVELS, "unparsed")
COLUMNS = Column.row(
    "method | accuracy (share of problems) ↑ | ROUGE-L, open (F1) ↑ | "
    "gold before T (share of gold) ↑ | gold read (share of gold) ↑ | passages read | calls | "
    "tokens written | failed (problems) | unparsed (problems) | option asked (problems)"
)
COSTS = ("passages", "calls", "written")
VALUES = ("correct", "rouge_l", "gold_before", "gold_read", "passages", "calls", "written")


def results(config: Config, rows: Sequence[Row]) -> Results:
    """Accuracy by method, each against RAISE, by domain, relevance on four levels."""
    by = summary.by_method(rows, [method.name for method in METHODS])
    drawn, compared = [_methods(config, by, rows)], list[StudyTable]()
    if summary.defined(rows, "correct"):
        named = "against_raise", "Accuracy, minus RAISE's", "share of problems"
        compared = summary.against(RAISE, rows, "correct", {name: LABELS[name] for name in by}, *named)
        if any(row.values.get("domain") for row in rows):
            drawn.append(_by_domain(by, rows))
    rated = {name: own for name, own in by.items() if any(row.values.get("levels") for row in own)}
    if rated:
        drawn.append(_relevance(rated, rows, config))
    said = () if rated else ("Fig. 5: the config has no judge, so relevance was not rated.",)
    methods, *others = (table for table, _ in drawn)
    return Results(tables=(methods, *compared, *others), figures=tuple(figure for _, figure in drawn), notes=said)


def _figure_of(own: Sequence[Row], name: str, rows: Sequence[Row]) -> Measure:
    """A failed problem is wrong and found nothing, what it cost is not known; what no row has is not defined.

    `own` are a method's rows among the `rows` of all. A problem has gold by the rows of the methods that search.
    """
    if name.startswith("gold"):
        rows = [row for row in rows if method_of(row.unit.method).searches] if summary.defined(own, name) else []
    return summary.measure_defined(own, name, rows, None if name in COSTS else 0.0)


def _asked_option(row: Row) -> bool:
    """Whether the run took one call more than its method: the closed question after a reply without an option."""
    made, steps = row.values.get("calls", 0), row.values.get("steps", 0)
    return row.values.get("state") == "done" and made > method_of(row.unit.method).calls(steps)


def _methods(config: Config, by: dict[str, list[Row]], rows: Sequence[Row]) -> tuple[StudyTable, Figure]:
    measures = {name: {value: _figure_of(own, value, rows) for value in VALUES} for name, own in by.items()}
    methods = summary.table(
        "methods",
        f"Ways of reasoning on {config.data} with {config.model}",
        COLUMNS,
        (
            (LABELS[name], *measures[name].values(), *summary.counts(own)[1:], sum(map(_asked_option, own)))
            for name, own in by.items()
        ),
        rows,
        "A model that scores is asked for the option that its reply does not name. Another reply without one is wrong.",
        "T drops passages only in RAISE and RAISE-Direct.",
        unit="problems",
        shows="RAISE, Table 1 (its column of this data set), Table 2 (its column of this model), Fig. 2",
    )
    title, value, name, unit = "Accuracy by method", "correct", "accuracy", "share of problems"
    if not any(summary.defined(own, "correct") for own in by.values()):
        title, value, name, unit = "ROUGE-L by method", "rouge_l", "ROUGE-L", "F1"
    bars = summary.line(name, {LABELS[method]: own[value] for method, own in measures.items()})
    shows = "RAISE, Table 1 and Fig. 2"
    return methods, summary.figure("bars", "fig_2", title, "method", f"{name} ({unit})", [bars], shows)


def _domains(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by domain; a failed row has no domain and uses the domain of its problem's other rows."""
    known = {row.unit.example: row.values["domain"] for row in rows if row.values.get("domain")}
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(known.get(row.unit.example, "not known"), []).append(row)
    return dict(sorted(groups.items()))


def _by_domain(by: dict[str, list[Row]], rows: Sequence[Row]) -> tuple[StudyTable, Figure]:
    """Accuracy of every method by domain; the bars are of RAISE and chain of thought, where either ran."""
    domains, title, shows = _domains(rows), "Accuracy by domain", "RAISE, Fig. 7"
    accuracy = {
        name: {d: _figure_of(summary.of_method(own, name), "correct", own) for d, own in domains.items()} for name in by
    }
    chosen = {d: {r.unit.example for r in own if r.values.get("correct") is not None} for d, own in domains.items()}
    columns = (Column(name=LABELS[name], unit="share of problems", better="higher") for name in by)
    heads = (*Column.row("domain | problems"), *columns)
    body: list[tuple[Cell, ...]] = [(d, len(chosen[d]), *(own[d] for own in accuracy.values())) for d in domains]
    table = summary.table("by_domain", title, heads, body, rows, unit="problems", shows=shows)
    drawn = [name for name in by if name in (COT, RAISE)] or by
    bars = (summary.line(LABELS[name], accuracy[name]) for name in drawn)
    return table, summary.figure("bars", "fig_7", title, "domain", "accuracy (share of problems)", bars, shows)


def _relevance(rated: dict[str, list[Row]], rows: Sequence[Row], config: Config) -> tuple[StudyTable, Figure]:
    """Shares of each level among all ratings of a method, unparsed ones included."""
    counted = {
        LABELS[name]: sum((Counter(row.values.get("levels") or {}) for row in own), Counter[str]())
        for name, own in rated.items()
    }
    shares = {name: [count[level] / (count.total() or 1) for level in RATED] for name, count in counted.items()}
    relevance = summary.table(
        "relevance",
        "How well the passages read help their sub-question",
        (*Column.row("method"), *(Column(name=name, unit="share") for name in RATED), *Column.row("passages")),
        ((name, *shares[name], count.total()) for name, count in counted.items()),
        rows,
        f"Rated by {config.judge}. Passages that T dropped are not rated.",
        n=sum(count.total() for count in counted.values()),
        unit="passages",
        shows="RAISE, Fig. 5",
    )
    by_level = zip(RATED, zip(*shares.values(), strict=True), strict=True)
    series = (Series(name=level, x=tuple(shares), y=y) for level, y in by_level)
    axes = "method", "share of passages (0 to 1)"
    return relevance, summary.figure("bars", "fig_5", "Relevance of what was retrieved", *axes, series, "RAISE, Fig. 5")


STEPS = 4  # sub-questions that an estimate takes a problem to have


def run(tools: StudyTools, unit: Unit, example: Example, watch: Watch) -> Found:
    """One problem by one method, rated where there is a judge."""
    settings, method, model = tools.config.stages(unit.seed), method_of(unit.method), tools.writer
    case = case_of(example, (), Written(answer=Answer(text="", finished=False), stamp=Stamp(model=model.name)))
    with metered(model) as meter:
        options = StepsOptions(method=method.name, model=model.name)
        case = examine(case, KIND, options, tools.context(settings, watch))
    (solution,) = KIND.of(case)
    gold = gold_in(example, tools.collection(example.corpus).snapshot()) if method.searches else frozenset()
    values = _values(example, solution, gold, bool(method.searches))
    missing = {} if example.correct is not None else {"correct": "The problem has no right option."}
    if not (example.references or example.options):
        missing["rouge_l"] = "The problem has no reference answer."
    case = replace(case, stamp=case.analyses[-1].stamp)  # also where nothing was answered
    if tools.judge is not None and method.searches:
        try:
            ratings = rate(solution, tools.judge, watch, dropped=False)
        except PromptTooLong as error:  # the answer was given and counts
            missing["levels"] = str(error)
        else:
            case = replace(case, analyses=(*case.analyses, ratings_analysis(case, ratings)))
            values["levels"] = dict(Counter(rating.level or "unparsed" for rating in ratings.ratings))
    unparsed = int(solution.state == "unparsed" or (bool(example.options) and solution.choice is None))
    return Found(values=values, missing=missing, case=case, cost=meter.cost, unparsed=unparsed)


def _values(example: Example, solution: Solution, gold: frozenset[str], searches: bool) -> Json:
    """Right or wrong, closeness to the reference, cost, gold among what was retrieved and among what was read."""
    choosing, cost = example.correct is not None, solution.cost
    open_answer, known = not example.options and bool(example.references), bool(gold) and searches
    return {
        "correct": float(solution.choice == example.correct) if choosing else None,
        "rouge_l": max(rouge_l(r, solution.answer) for r in example.references) if open_answer else None,
        "calls": cost.calls,
        "written": cost.written,
        "steps": len(solution.steps),
        "state": solution.state,
        "domain": example.domain,
        "gold_before": recall(retrieved(solution), gold) if known else None,
        "gold_read": recall(read(solution), gold) if known else None,
        "passages": len(read(solution)) if searches else None,
    }


def cost(tools: StudyTools, unit: Unit, example: Example) -> Estimate:
    """Calls of the method for a few sub-questions, each with the top k in its prompt; ratings by the judge."""
    method, settings = method_of(unit.method), tools.config.stages(unit.seed)
    calls, k = method.calls(STEPS), settings.reasoning.k
    searches = (STEPS if method.decomposed else 1) if method.searches else 0
    read = calls * tokens_of(example.question, *example.options) + searches * k * tokens_of("x" * 600)
    judged = searches * k if tools.judge is not None else 0
    return Estimate(calls=calls, judged=judged, tokens=read + calls * settings.decoding.max_new_tokens)


STUDY = Study(
    name="step-by-step",
    title="Step-by-step retrieval and its baselines",
    shows=("RAISE, Table 1", "RAISE, Table 2", "RAISE, Fig. 2", "RAISE, Fig. 5", "RAISE, Fig. 7"),
    methods=tuple(method.name for method in METHODS),
    labels=LABELS,
    run=run,
    results=results,
    cost=cost,
    models=("writer",),
    searches=lambda config, method: bool(method_of(method).searches),
    needs=("a corpus",),
    uses={
        "the right option": "accuracy, and accuracy by domain (Tables 1 and 2, Fig. 7)",
        "gold passages": "gold found before and after T",
        "a domain": "accuracy by domain (Fig. 7)",
    },
)
