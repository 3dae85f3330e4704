"""How well answers are taken apart (ARE, appendix D.5, Fig. 4): n_c and d_correct, of clauses and of facts.

n_c: as many as in the gold; d_correct: paired one to one with gold, each entailing the other, over those predicted.
Methods: the rules, and the language model by prompt (where `model` names one that can follow it). The paper's epochs
are runs of their own, each with the tuned model's name.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.core.files import now, package_versions
from engine.core.metrics import d_correct
from engine.core.progress import Watch
from engine.core.values import Analysis, Case, Stamp, inputs_hash
from engine.methods.are.decompose import decompose, plain
from engine.methods.are.values import Decomposition
from engine.methods.refinement.costs import metered
from engine.models.verifier import entails_by
from engine.studies.are_answers import given_answer
from engine.studies.config import Config
from engine.studies.example import Example, case_of, tokens_of
from engine.studies.summary import line, measure, notes, of_method, questions_in
from engine.studies.tools import Study, StudyTools
from engine.studies.values import Axis, Column, Estimate, Figure, Found, Results, Row, StudyTable, Unit

RULES, MODEL = "rules", "model"
VALUES = {
    "clauses_n_c": Column(name="n_c, clauses", unit="share of answers", better="higher"),
    "clauses_d_correct": Column(name="d_correct, clauses", unit="share of clauses", better="higher"),
    "facts_n_c": Column(name="n_c, facts", unit="share of answers", better="higher"),
    "facts_d_correct": Column(name="d_correct, facts", unit="share of facts", better="higher"),
}


def run(tools: StudyTools, unit: Unit, example: Example, watch: Watch) -> Found:
    """One answer split and compared with its gold."""
    writer = tools.writer if unit.method == MODEL else None
    with metered(writer) as meter:
        found = decompose(example.answer, writer, watch)
    mine = [plain(clause.text) for clause in found.clauses], [f.text for c in found.clauses for f in c.facts]
    gold = [plain(clause.text) for clause in example.clauses], [fact for c in example.clauses for fact in c.facts]
    values: dict[str, float | None] = {}
    for level, predicted, wanted in zip(("clauses", "facts"), mine, gold, strict=True):
        values[f"{level}_n_c"] = float(len(predicted) == len(wanted)) if wanted else None
        values[f"{level}_d_correct"] = d_correct(predicted, wanted, entails_by(tools.verifier)) if wanted else None
    missing = {} if gold[1] else {"facts_n_c": "The gold has clauses but no facts."}
    case = _case(tools, unit, example, found, watch)
    return Found(values=values, missing=missing, case=case, cost=meter.cost, unparsed=found.fallbacks)


def _case(tools: StudyTools, unit: Unit, example: Example, found: Decomposition, watch: Watch) -> Case:
    """The answer with what it was taken apart into."""
    written, passages = given_answer(tools, unit, example, watch)
    inputs = inputs_hash(example.question, passages, written.answer.text)
    stamp = Stamp(model=found.made_by, inputs=inputs, versions=package_versions(), created=now())
    analysis = Analysis(id="decomposition", kind="decomposition", stamp=stamp, result=found)
    return case_of(example, passages, written, analyses=(analysis,))


def cost(tools: StudyTools, unit: Unit, example: Example) -> Estimate:
    """Every prediction against every gold, both ways; a model is asked once an answer and once a clause."""
    clauses, facts = len(example.clauses), sum(len(clause.facts) for clause in example.clauses)
    calls = clauses + 1 if unit.method == MODEL else 0
    forwards = 2 * (clauses**2 + facts**2)
    return Estimate(calls=calls, forwards=forwards, tokens=(calls + forwards) * tokens_of(example.answer))


def results(config: Config, rows: Sequence[Row]) -> Results:
    """The four measures by method, as a table and as bars."""
    by = {name: of_method(rows, name) for name in (RULES, MODEL) if of_method(rows, name)}
    label = {RULES: "rules", MODEL: config.model}
    found = {name: tuple(measure(own, value) for value in VALUES) for name, own in by.items()}
    table = StudyTable(
        name="decomposer",
        title="Clauses and facts against gold ones",
        columns=(Column(name="decomposer"), *VALUES.values()),
        rows=tuple((label[name], *measures) for name, measures in found.items()),
        n=questions_in(rows),
        unit="answers",
        shows="ARE, Fig. 4 (one decomposer per row)",
        notes=notes(rows, f"Entailment by {config.verifier}."),
    )
    titles = [column.name for column in VALUES.values()]
    bars = tuple(line(label[name], dict(zip(titles, m, strict=True))) for name, m in found.items())
    figure = Figure(
        name="fig_4",
        title="Decomposition against gold",
        kind="bars",
        x=Axis(name="measure"),
        y=Axis(name="share", unit="0 to 1"),
        series=bars,
        shows="ARE, Fig. 4",
    )
    return Results(tables=(table,), figures=(figure,))


STUDY = Study(
    name="decomposer",
    title="Molecular clauses and atomic facts against gold ones",
    shows=("ARE, Fig. 4",),
    methods=(RULES, MODEL),
    run=run,
    results=results,
    cost=cost,
    needs=("an answer", "gold clauses"),
    writes=lambda config, unit, example: unit.method == MODEL,
)
