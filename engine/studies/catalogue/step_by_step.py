"""RAISE and its nine baselines (RAISE, Tables 1 and 2, Fig. 2, 5 and 7): one data set and one model per run.

Accuracy on multiple choice, where a reply that names no option is wrong and counted as unparsed; ROUGE-L of open
answers; gold passages found before T and read after it; what it cost. Relevance of what was retrieved on four levels
is rated by the model that `judge` names. The options' order and T are the data set's and the embedder's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from engine.analyses.steps import analysis_of, means_for
from engine.answer.citations import annotate
from engine.answer.write import Written
from engine.core.metrics import rouge_l
from engine.core.progress import Watch
from engine.core.settings import Settings
from engine.core.values import Answer, Case, Stamp
from engine.methods.judge import LEVELS
from engine.methods.raise_.relevance import rate, ratings_analysis
from engine.methods.raise_.solve import solve
from engine.methods.raise_.threshold import read, recall, retrieved
from engine.methods.raise_.values import METHODS, Problem, Solution, method_of
from engine.methods.refinement.costs import metered
from engine.studies.config import Config
from engine.studies.example import Example, case_of, gold_in, tokens_of
from engine.studies.summary import compare, comparison_table, line, measure, notes, of_method, questions_in
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
    Series,
    StudyTable,
    Unit,
)

# Tables and figures.

RAISE, COT = "raise", "cot"
RATED = (*LEVELS, "unparsed")
COLUMNS = Column.row(
    "method | accuracy (share of problems) ↑ | ROUGE-L, open (F1) ↑ | "
    "gold before T (share of gold) ↑ | gold read (share of gold) ↑ | passages read | calls | "
    "tokens written | failed (problems) | unparsed (problems)"
)
COSTS = ("passages", "calls", "written")
VALUES = ("correct", "rouge_l", "gold_before", "gold_read", "passages", "calls", "written")


def results(config: Config, rows: Sequence[Row]) -> Results:
    """Accuracy by method, each against RAISE, by domain, relevance on four levels."""
    by = {method.name: own for method in METHODS if (own := of_method(rows, method.name))}
    tables, figures = [_methods_table(config, by, rows)], [_accuracy_figure(by)]
    if RAISE in by and len(by) > 1 and _defined(rows, "correct"):
        tables.append(_against_raise(rows, list(by)))
    if _defined(rows, "correct") and any(row.values.get("domain") for row in rows):
        tables.append(_domain_table(by, rows))
        figures.append(_domain_figure(by))
    rated = {name: own for name, own in by.items() if any(row.values.get("levels") for row in own)}
    if rated:
        tables.append(_relevance_table(rated, rows, config))
        figures.append(_relevance_figure(rated))
    said = () if rated else ("Fig. 5: the config has no judge, so relevance was not rated.",)
    return Results(tables=tuple(tables), figures=tuple(figures), notes=said)


def _defined(rows: Sequence[Row], name: str) -> bool:
    return any(row.values.get(name) is not None for row in rows)


def _figure_of(rows: Sequence[Row], name: str) -> Measure:
    """A failed problem is wrong and found nothing, what it cost is not known; what no row has is not defined."""
    return measure(rows, name, None if name in COSTS else 0.0) if _defined(rows, name) else Measure(value=None)


def _label(name: str) -> str:
    return method_of(name).label


def _methods_table(config: Config, by: dict[str, list[Row]], rows: Sequence[Row]) -> StudyTable:
    body: list[tuple[Cell, ...]] = []
    for name, own in by.items():
        failed, unparsed = (sum(r.state == "failed" for r in own), sum(r.unparsed for r in own))
        body.append((_label(name), *(_figure_of(own, value) for value in VALUES), failed, unparsed))
    return StudyTable(
        name="methods",
        title=f"Ways of reasoning on {config.data} with {config.model}",
        columns=COLUMNS,
        rows=tuple(body),
        n=questions_in(rows),
        unit="problems",
        shows="RAISE, Table 1 (its column of this data set), Table 2 (its column of this model), Fig. 2",
        notes=notes(
            rows, "A reply without an option counts as wrong. T drops passages only in RAISE and RAISE-Direct."
        ),
    )


def _against_raise(rows: Sequence[Row], methods: list[str]) -> StudyTable:
    found = [replace(one, method=_label(one.method)) for one in compare(rows, "correct", methods, RAISE)]
    return comparison_table("against_raise", "Accuracy, minus RAISE's", "share of problems", "RAISE", found)


def _accuracy_figure(by: dict[str, list[Row]]) -> Figure:
    value = "correct" if any(_defined(own, "correct") for own in by.values()) else "rouge_l"
    said = {"correct": ("accuracy", "share of problems"), "rouge_l": ("ROUGE-L", "F1")}[value]
    return Figure(
        name="fig_2",
        title=f"{said[0].capitalize() if value == 'correct' else said[0]} by method",
        kind="bars",
        x=Axis(name="method"),
        y=Axis(name=said[0], unit=said[1]),
        series=(line(said[0], {_label(name): _figure_of(own, value) for name, own in by.items()}),),
        shows="RAISE, Table 1 and Fig. 2",
    )


def _domains(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by domain; a failed row has no domain and uses the domain of its problem's other rows."""
    known = {row.unit.example: row.values["domain"] for row in rows if row.values.get("domain")}
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(known.get(row.unit.example, "not known"), []).append(row)
    return dict(sorted(groups.items()))


def _domain_table(by: dict[str, list[Row]], rows: Sequence[Row]) -> StudyTable:
    groups = _domains(rows)
    body: list[tuple[Cell, ...]] = []
    for domain, own in groups.items():
        chosen = {row.unit.example for row in own if row.values.get("correct") is not None}
        accuracies = (_figure_of(of_method(own, name), "correct") for name in by)
        body.append((domain, len(chosen), *accuracies))
    columns = Column.row("domain | problems")
    accuracy = tuple(Column(name=_label(name), unit="share of problems", better="higher") for name in by)
    return StudyTable(
        name="by_domain",
        title="Accuracy by domain",
        columns=(*columns, *accuracy),
        rows=tuple(body),
        n=questions_in(rows),
        unit="problems",
        shows="RAISE, Fig. 7",
        notes=notes(rows),
    )


def _domain_figure(by: dict[str, list[Row]]) -> Figure:
    shown = {name: own for name, own in by.items() if name in (COT, RAISE)} or by
    series = [
        line(_label(name), {domain: _figure_of(rows, "correct") for domain, rows in _domains(own).items()})
        for name, own in shown.items()
    ]
    return Figure(
        name="fig_7",
        title="Accuracy by domain",
        kind="bars",
        x=Axis(name="domain"),
        y=Axis(name="accuracy", unit="share of problems"),
        series=tuple(series),
        shows="RAISE, Fig. 7",
    )


def _shares(rows: Sequence[Row]) -> tuple[dict[str, float], int]:
    """Share of each level among all ratings of these rows, unparsed ones included, and how many there are."""
    counted: Counter[str] = Counter()
    for row in rows:
        counted.update(row.values.get("levels") or {})
    total = sum(counted.values())
    return {name: counted[name] / total if total else 0.0 for name in RATED}, total


def _relevance_table(rated: dict[str, list[Row]], rows: Sequence[Row], config: Config) -> StudyTable:
    body: list[tuple[Cell, ...]] = []
    for name, own in rated.items():
        shares, total = _shares(own)
        body.append((_label(name), *shares.values(), total))
    columns = (*Column.row("method"), *(Column(name=name, unit="share") for name in RATED), *Column.row("passages"))
    return StudyTable(
        name="relevance",
        title="How well the passages read help their sub-question",
        columns=columns,
        rows=tuple(body),
        n=sum(_shares(own)[1] for own in rated.values()),
        unit="passages",
        shows="RAISE, Fig. 5",
        notes=notes(rows, f"Rated by {config.judge}. Passages that T dropped are not rated."),
    )


def _relevance_figure(rated: dict[str, list[Row]]) -> Figure:
    shares = {name: _shares(own)[0] for name, own in rated.items()}
    labels = tuple(map(_label, rated))
    series = tuple(Series(name=level, x=labels, y=tuple(share[level] for share in shares.values())) for level in RATED)
    return Figure(
        name="fig_5",
        title="Relevance of what was retrieved",
        kind="bars",
        x=Axis(name="method"),
        y=Axis(name="share of passages", unit="0 to 1"),
        series=series,
        shows="RAISE, Fig. 5",
    )


STEPS = 4  # sub-questions that an estimate takes a problem to have


def run(tools: StudyTools, unit: Unit, example: Example, watch: Watch) -> Found:
    """One problem by one method, rated where there is a judge."""
    settings, method = tools.settings(unit.seed), method_of(unit.method)
    collection, model = tools.collection(example.corpus), tools.writer
    problem = Problem(question=example.question, options=example.options)
    with metered(model) as meter:
        solution = solve(problem, method, means_for(collection, model, settings, method), watch)
    gold = gold_in(example, collection.snapshot().passages)
    values = {**_values(example, solution), **_found(solution, gold, bool(method.searches))}
    case = _case(example, solution, tools, settings)
    if tools.judge is not None and method.searches:
        ratings = rate(solution, tools.judge, watch, dropped=False)
        case = replace(case, analyses=(*case.analyses, ratings_analysis(case, ratings)))
        values["levels"] = dict(Counter(rating.level or "unparsed" for rating in ratings.ratings))
    return Found(values=values, missing=_missing(example), case=case, cost=meter.cost, unparsed=int(_unread(solution)))


def _case(example: Example, solution: Solution, tools: StudyTools, settings: Settings) -> Case:
    """The problem with the final answer and the whole run."""
    final = solution.final
    answer = annotate(Answer(text=final.reply if final else "", finished=final.finished if final else False), 0)
    stamp = Stamp(model=tools.writer.name, settings={"decoding": solution.decoding.to_dict()})
    case = case_of(example, (), Written(answer=answer, stamp=stamp, prompt=final.prompt if final else None))
    analysis = analysis_of(case, solution, tools.writer, settings)
    return replace(case, stamp=analysis.stamp, analyses=(analysis,))


def _values(example: Example, solution: Solution) -> dict[str, Any]:
    """Right or wrong, closeness to the reference, cost."""
    choosing, cost = example.correct is not None, solution.cost
    open_answer = not example.options and bool(example.references)
    return {
        "correct": float(solution.choice == example.correct) if choosing else None,
        "rouge_l": max(rouge_l(r, solution.answer) for r in example.references) if open_answer else None,
        "calls": cost.calls,
        "written": cost.written,
        "steps": len(solution.steps),
        "state": solution.state,
        "domain": example.domain,
    }


def _found(solution: Solution, gold: frozenset[str], searches: bool) -> dict[str, Any]:
    """Gold among what was retrieved and among what was read; a method that does not search has none of it."""
    known = bool(gold) and searches
    return {
        "gold_before": recall(retrieved(solution), gold) if known else None,
        "gold_read": recall(read(solution), gold) if known else None,
        "passages": len(read(solution)) if searches else None,
    }


def _missing(example: Example) -> dict[str, str]:
    said = {} if example.correct is not None else {"correct": "The problem has no right option."}
    return said | ({} if example.references or example.options else {"rouge_l": "The problem has no reference answer."})


def _unread(solution: Solution) -> bool:
    """Whether the decomposition is unreadable, or the last reply does not name an option."""
    return solution.state == "unparsed" or (bool(solution.problem.options) and solution.choice is None)


def cost(tools: StudyTools, unit: Unit, example: Example) -> Estimate:
    """Calls of the method for a few sub-questions, each with the top k in its prompt; ratings by the judge."""
    method, settings = method_of(unit.method), tools.settings(unit.seed)
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
    run=run,
    results=results,
    cost=cost,
    needs=("a corpus",),
    uses={
        "the right option": "accuracy, and accuracy by domain (Tables 1 and 2, Fig. 7)",
        "gold passages": "gold found before and after T",
        "a domain": "accuracy by domain (Fig. 7)",
    },
    writes=lambda config, unit, example: True,
)
