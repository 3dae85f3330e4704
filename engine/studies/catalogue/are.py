"""ARE compared with DRQA, RARR, CCVER and an EFEC-style editor (ARE, Tables 1, 3 and 5, Fig. 5 and 6).

One run is one data set and one model. Attr_p of ARE pairs evidence and clause, that of the others is unpaired (appendix
E); Table 5 gives them the pairing. Before editing (Table 3) every method is measured on the answer as it was. The
answer checked is the example's, else one written without passages. `options.by_model` names the roles of the language
model: decomposer, judge, editor, expander; without it rules and the verifier decide.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.analyses.claims import PEERS, PeerOptions
from engine.analyses.facts import KIND as FACTS, FactsOptions
from engine.analyses.kind import Kind, examine
from engine.answer.citations import annotate, style_of
from engine.answer.write import Written
from engine.core.errors import InputError
from engine.core.files import package_versions
from engine.core.metrics import harmonic_mean
from engine.core.progress import Watch
from engine.core.settings import Settings
from engine.core.statistics import FEWEST, bootstrap_of_means
from engine.core.values import Answer, Case, Json, Stamp, Value
from engine.methods.are.baselines import NAMES, NEEDS_MODEL, offered
from engine.methods.are.decompose import decompose
from engine.methods.are.values import Exchange, Measures
from engine.methods.refinement.values import Cost
from engine.studies.config import Config
from engine.studies.example import Example, case_of, tokens_of
from engine.studies.summary import against, by_method, by_question, figure, measured, of_method, table
from engine.studies.tools import Study, StudyTools
from engine.studies.values import Cell, Column, Estimate, Figure, Found, Measure, Results, Row, Series, StudyTable, Unit

# What the ARE studies share: an answer checked or revised by a method, as values.

ROLES = ("decomposer", "judge", "editor", "expander")  # what `options.by_model` may hand to the language model
MEASURES = ("attr_r", "attr_p", "pres")
COLUMNS = Column.row(
    "method | Attr_r (0 to 1) ↑ | Attr_p (share of clauses or evidences) ↑ | "
    "Pres (0 to 1) ↑ | F1_PP (0 to 1) ↑ | F1_RP (0 to 1) ↑"
)


def answered(tools: StudyTools, unit: Unit, example: Example, watch: Watch) -> Case:
    """The example with the answer to be checked: its own, else one written without its passages (section 5.1).

    The case holds the passages in either case: they are the evidence, and the prompt says what the writer was given.
    """
    if not example.answer:
        return case_of(example, example.passages, tools.write(unit.seed)(example.question, (), watch))
    answer = annotate(Answer(text=example.answer), len(example.passages), style_of(example.answer))
    stamp = Stamp(model=example.writer or example.source or "imported", versions=package_versions())
    return case_of(example, example.passages, Written(answer=answer, stamp=stamp))


def examined(tools: StudyTools, case: Case, kind: Kind[Any], options: Value, settings: Settings, watch: Watch) -> Case:
    """The case with the analysis; a corpus that is to be searched and is gone fails the unit."""
    if case.corpus and settings.verification.evidence_from != "case":
        tools.collection(case.corpus)
    return examine(case, kind, options, tools.context(settings, watch))


def checked(tools: StudyTools, unit: Unit, example: Example, settings: Settings, watch: Watch) -> Found:
    """ARE on the example's answer, with the whole record in the case."""
    by_model = dict.fromkeys(roles(tools.config), tools.config.model)
    options = FactsOptions(verifier=tools.config.verifier, both=False, **by_model)
    case = examined(tools, answered(tools, unit, example, watch), FACTS, options, settings, watch)
    (record,) = FACTS.of(case)
    cost = Cost(forwards=None, tokens=None, seconds=record.seconds)
    report = record.report
    assert report is not None, "a finished check has a report"
    values = {
        **_measures(report.after, report.before, report.after),  # ARE's evidence belongs to clauses as it is
        "clauses": len(record.decomposition.clauses),
        "facts": len(record.facts),
        "edits": sum(edit.status == "placed" for edit in record.edits),
        "outcomes": dict(sorted(Counter(fact.outcome for fact in record.facts).items())),
    }
    return Found(values=values, case=case, cost=cost, unparsed=_unparsed(record.exchanges))


def revised(tools: StudyTools, unit: Unit, example: Example, settings: Settings, watch: Watch) -> Found:
    """A baseline on the example's answer."""
    case, name = answered(tools, unit, example, watch), unit.method
    judge = tools.config.model if roles(tools.config) else ""
    if name not in offered(judge):
        why = f"{NEEDS_MODEL.format(name)} Set options.by_model."
        return Found(values={"attr_r": None}, missing={"attr_r": why}, case=case)
    start = time.perf_counter()
    options = PeerOptions(verifier=tools.config.verifier, methods=(name,), judge=judge)
    case = examined(tools, case, PEERS, options, settings, watch)
    ((found,),) = (peers.runs for peers in PEERS.of(case))
    cost = Cost(forwards=None, tokens=None, seconds=time.perf_counter() - start)
    assert found.before is not None
    missing = (
        {} if found.aggregated else {"aggregated_attr_r": "It has no evidence by clause, or changed their number."}
    )
    values = {
        **_measures(found.measures, found.before, found.aggregated),
        "revised": found.revised,
        "evidence": [one.text for one in found.evidence],
    }
    return Found(values=values, missing=missing, case=case, cost=cost, unparsed=_unparsed(found.exchanges))


def _unparsed(exchanges: Sequence[Exchange]) -> int:
    return sum(not exchange.parsed for exchange in exchanges)


def _measures(after: Measures, before: Measures, by_clause: Measures | None) -> Json:
    """The three measures after editing, before it, and with the evidence joined by clause where that can be told."""
    sides = {"": after, "before_": before, "aggregated_": by_clause}
    found = {f"{prefix}{name}": getattr(one, name) for prefix, one in sides.items() if one for name in MEASURES}
    return found if by_clause else {**found, "aggregated_attr_r": None}


def roles(config: Config) -> tuple[str, ...]:
    """The roles of the language model; raise `InputError` for one that there is not."""
    asked = config.option("by_model", tuple[str, ...], ())
    if strange := [name for name in asked if name not in ROLES]:
        raise InputError(f"options.by_model: {strange[0]!r} is not a role. Choose from: {', '.join(ROLES)}.")
    return tuple(role for role in ROLES if role in asked)


def cost(tools: StudyTools, unit: Unit, example: Example) -> Estimate:
    """Every fact against every passage kept, in every round; a language model's calls where it has a part.

    A method that asks about the answer is taken to ask one question for each fact.
    """
    how, by_model = tools.config.stages(unit.seed).verification, roles(tools.config)
    text = example.answer or "x" * 3 * tools.config.stages(unit.seed).decoding.max_new_tokens
    clauses = decompose(text).clauses
    facts = sum(len(clause.facts) for clause in clauses)
    if unit.method == ARE:
        rounds = facts * how.max_iterations
        pairs = rounds * how.keep * (2 if how.evidence_from == "both" else 1)
        calls = (len(clauses) + 1) * ("decomposer" in by_model) + (pairs + rounds * ("editor" in by_model)) * (
            "judge" in by_model
        )
        calls += rounds * ("editor" in by_model) + facts * (how.max_iterations > 1) * ("expander" in by_model)
    else:
        pairs = 2 * facts * len(clauses)
        calls = {DRQA: 0, "efec-style": 2}.get(unit.method, 1 + len(clauses) + 4 * facts)
    calls += not example.answer
    read = pairs * tokens_of("x" * 600)  # a passage of 100 words
    return Estimate(calls=calls, forwards=pairs + len(clauses) ** 2, tokens=read + calls * 400)


# Tables and cells. The paper's F1 is the harmonic mean of the two means of a table's row, not the mean over questions;
# so is ours, and its interval resamples the questions of both means together.


def against_are(
    rows: Sequence[Row], by: Mapping[str, Sequence[Row]], labels: Mapping[str, str], values: Sequence[str]
) -> list[StudyTable]:
    """A table for each of these measures: every method minus ARE; none where ARE or all others are missing."""
    tables = []
    for value in values:
        named = f"against_are_{value}", f"{value.capitalize()}, minus ARE's", "0 to 1"
        tables += against(ARE, rows, value, {name: labels[name] for name in by}, *named)
    return tables


def cells(rows: Sequence[Row], prefix: str = "", edits: bool = True) -> tuple[Measure, ...]:
    """Attr_r, Attr_p, Pres, F1_PP, F1_RP of these rows; without edits the last three are not defined."""
    recall, precision, pres = (by_question(rows, f"{prefix}{name}") for name in MEASURES)
    if not edits:
        return measured(recall), measured(precision), *(Measure(value=None) for _ in range(3))
    return measured(recall), measured(precision), measured(pres), f1(precision, pres), f1(recall, pres)


def f1(first: Mapping[str, float], second: Mapping[str, float]) -> Measure:
    """Harmonic mean of two means over the questions that have both."""
    shared = [question for question in first if question in second]
    if not shared:
        return Measure(value=None)
    found = bootstrap_of_means(([first[q] for q in shared], [second[q] for q in shared]), harmonic)
    low, high = (found.low, found.high) if len(shared) >= FEWEST else (None, None)
    return Measure(value=found.mean, low=low, high=high, n=len(shared))


harmonic = np.vectorize(harmonic_mean, otypes=[np.float64])


# The comparison.

ARE, DRQA = "are", "drqa"
LABELS = {DRQA: "DRQA", "efec-style": "EFEC-style", "ccver": "CCVER", "rarr": "RARR", ARE: "ARE"}
WHOLE = (DRQA, "efec-style")  # whose evidence belongs to the whole answer
GRID = tuple(round(i / 20, 2) for i in range(21))  # of the contours: Attr and Pres from 0 to 1


def run(tools: StudyTools, unit: Unit, example: Example, watch: Watch) -> Found:
    """One answer by one method."""
    settings = tools.config.stages(unit.seed)
    by = checked if unit.method == ARE else revised
    return by(tools, unit, example, settings, watch)


def results(config: Config, rows: Sequence[Row]) -> Results:
    """Tables 1, 3 and 5, the comparison with ARE, the outcomes of its facts, and the two contours."""
    # Without a language model the methods that ask by one are left out: none of their rows ran, or failed.
    offered = [row for row in rows if "attr_r" not in row.missing]
    by = {name: of_method(rows, name) for name in by_method(offered, LABELS)}
    before = {name: cells(own, "before_", edits=False) for name, own in by.items()}
    after = {name: cells(own, edits=name != DRQA) for name, own in by.items()}
    tables = [
        table(
            "table_1",
            "Attribution and preservation after editing",
            COLUMNS,
            ((LABELS[name], *own) for name, own in after.items()),
            rows,
            "DRQA does not edit. Attr_p pairs each clause with its own evidence only for ARE (appendix E).",
            unit="answers",
            shows="ARE, Table 1",
        ),
        table(
            "table_3",
            "What each retrieval finds, before any edit",
            COLUMNS[:3],
            ((LABELS[name], *own[:2]) for name, own in before.items()),
            rows,
            unit="answers",
            shows="ARE, Table 3",
        ),
        _table_5(by, after, rows),
    ]
    if ARE in by:
        editing = {name: own for name, own in by.items() if name != DRQA}
        tables += [*against_are(rows, by, LABELS, ("attr_r",)), *against_are(rows, editing, LABELS, ("pres",))]
        tables.append(_outcomes(by[ARE]))
    sides = ("attr_r", "F1_RP", "left"), ("attr_p", "F1_PP", "right")
    return Results(tables=tuple(tables), figures=tuple(contour(before, after, *side) for side in sides))


def _table_5(by: dict[str, list[Row]], after: Mapping[str, Sequence[Measure]], rows: Sequence[Row]) -> StudyTable:
    body: list[tuple[Cell, ...]] = []
    for name, own in by.items():
        if name not in (ARE, DRQA):
            body.append((LABELS[name], *after[name]))
            if name not in WHOLE:
                body.append((f"{LABELS[name]}, evidence by clause", *cells(own, "aggregated_")))
    body += [(LABELS[ARE], *after[ARE])] if ARE in by else []
    said = "Evidence by clause counts only answers whose questions belong to clauses, if editing kept their number."
    title = "Evidence of sub-questions, joined by clause"
    return table("table_5", title, COLUMNS, body, rows, said, unit="answers", shows="ARE, Table 5")


def _outcomes(rows: Sequence[Row]) -> StudyTable:
    """The outcomes of ARE's facts; every fact of every answer is in the denominator."""
    counted = sum((Counter(row.values.get("outcomes", {})) for row in rows), Counter[str]())
    body = ((name, count, count / counted.total()) for name, count in counted.most_common())
    heads = "outcome | facts | share (of all facts)"
    return table("outcomes", "Outcomes of the facts", heads, body, rows, n=counted.total(), unit="facts")


def contour(
    before: Mapping[str, Sequence[Measure]],
    after: Mapping[str, Sequence[Measure]],
    attribution: str,
    name: str,
    side: str,
) -> Figure:
    """Level curves of the F1 over attribution and Pres, a point per method that edits, a line at the best before."""
    place = MEASURES.index(attribution)
    values = (own[place].value for own in before.values())
    best = max((value for value in values if value is not None), default=None)
    levels = harmonic(*np.meshgrid(np.array(GRID), np.array(GRID)))
    series = [Series(name=name, x=GRID, y=GRID, z=tuple(tuple(map(float, row)) for row in levels))]
    if best is not None:
        series.append(Series(name="best before editing", x=(best, best), y=(0.0, 1.0)))
    for method, found in after.items():
        x, pres = found[place].value, found[2]
        if x is not None and method != DRQA:  # which does not edit
            series.append(Series(name=LABELS[method], x=(x,), y=(pres.value,), low=(pres.low,), high=(pres.high,)))
    axis = attribution.capitalize()
    title = f"{axis} and Pres after editing, over level curves of {name}"
    said = "Right of the line: editing exceeded the best attribution of any method before editing."
    axes, shows = (f"{axis} (0 to 1)", "Pres (0 to 1)"), f"ARE, Fig. 5 and 6, {side}"
    return figure("contour", f"fig_5_{side}", title, *axes, series, shows, notes=(said,))


STUDY = Study(
    name="are",
    title="Attribution and preservation of answers that are checked and edited",
    shows=("ARE, Table 1", "ARE, Table 3", "ARE, Table 5", "ARE, Fig. 5 and 6"),
    methods=(DRQA, *(name for name in NAMES if name != DRQA), ARE),
    options=("by_model",),
    check=roles,
    models=("verifier",),
    searches=lambda config, method: config.stages(config.seeds[0]).verification.evidence_from != "case",
    labels=LABELS,
    run=run,
    results=results,
    cost=cost,
    uses={"an answer": "checking the example's answer (without one, an answer is written from memory)"},
    writes=lambda config, unit, example: not example.answer or bool(roles(config)),
)
