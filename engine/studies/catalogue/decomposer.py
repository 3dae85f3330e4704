"""How well answers are taken apart (ARE, appendix D.5, Fig. 4): n_c and d_correct, of clauses and of facts.

n_c: as many as in the gold; d_correct: paired one to one with gold, each entailing the other, over those predicted.
Methods: the rules, and the language model by prompt (where `model` names one that can follow it). The paper's epochs
are runs of their own, each with the tuned model's name.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.analyses.claims import DECOMPOSITION, ByDecomposer
from engine.analyses.kind import examine
from engine.core.metrics import d_correct
from engine.core.progress import Watch
from engine.methods.are.decompose import RULES, plain
from engine.methods.refinement.costs import metered
from engine.models.verifier import entails_by
from engine.studies.catalogue.are import answered
from engine.studies.config import Config
from engine.studies.example import Example, tokens_of
from engine.studies.summary import by_method, figure, line, measure, table
from engine.studies.tools import Study, StudyTools
from engine.studies.values import Column, Estimate, Found, Results, Row, Unit

MODEL = "model"  # the method next to RULES
COLUMNS = Column.row(
    "n_c, clauses (share of answers) ↑ | d_correct, clauses (share of clauses) ↑ | "
    "n_c, facts (share of answers) ↑ | d_correct, facts (share of facts) ↑"
)
VALUES = dict(zip(("clauses_n_c", "clauses_d_correct", "facts_n_c", "facts_d_correct"), COLUMNS, strict=True))


def run(tools: StudyTools, unit: Unit, example: Example, watch: Watch) -> Found:
    """One answer split and compared with its gold."""
    case, by_model = answered(tools, unit, example, watch), unit.method == MODEL
    options = ByDecomposer(decomposer=tools.config.model if by_model else RULES)
    with metered(tools.writer if by_model else None) as meter:
        case = examine(case, DECOMPOSITION, options, tools.context(tools.config.stages(unit.seed), watch))
    (found,) = DECOMPOSITION.of(case)
    mine = [plain(clause.text) for clause in found.clauses], [f.text for c in found.clauses for f in c.facts]
    gold = [plain(clause.text) for clause in example.clauses], [fact for c in example.clauses for fact in c.facts]
    entails = entails_by(tools.verifier)
    values: dict[str, float | None] = {}
    for level, predicted, wanted in zip(("clauses", "facts"), mine, gold, strict=True):
        values[f"{level}_n_c"] = float(len(predicted) == len(wanted)) if wanted else None
        values[f"{level}_d_correct"] = d_correct(predicted, wanted, entails) if wanted else None
    missing = {} if gold[1] else {"facts_n_c": "The gold has clauses but no facts."}
    return Found(values=values, missing=missing, case=case, cost=meter.cost, unparsed=found.fallbacks)


def cost(tools: StudyTools, unit: Unit, example: Example) -> Estimate:
    """Every prediction against every gold, both ways; a model is asked once an answer and once a clause."""
    clauses, facts = len(example.clauses), sum(len(clause.facts) for clause in example.clauses)
    calls = clauses + 1 if unit.method == MODEL else 0
    forwards = 2 * (clauses**2 + facts**2)
    return Estimate(calls=calls, forwards=forwards, tokens=(calls + forwards) * tokens_of(example.answer))


def results(config: Config, rows: Sequence[Row]) -> Results:
    """The four measures by method, as a table and as bars."""
    label = {RULES: "rules", MODEL: config.model}
    by = by_method(rows, label)
    found = {label[name]: {column.name: measure(own, v) for v, column in VALUES.items()} for name, own in by.items()}
    measures = table(
        "decomposer",
        "Clauses and facts against gold ones",
        (Column(name="decomposer"), *COLUMNS),
        ((name, *own.values()) for name, own in found.items()),
        rows,
        f"Entailment by {config.verifier}.",
        unit="answers",
        shows="ARE, Fig. 4 (one decomposer per row)",
    )
    axes, lines = ("measure", "share (0 to 1)"), (line(name, own) for name, own in found.items())
    bars = figure("bars", "fig_4", "Decomposition against gold", *axes, lines, "ARE, Fig. 4")
    return Results(tables=(measures,), figures=(bars,))


STUDY = Study(
    name="decomposer",
    title="Molecular clauses and atomic facts against gold ones",
    shows=("ARE, Fig. 4",),
    methods=(RULES, MODEL),
    run=run,
    results=results,
    cost=cost,
    models=("verifier",),
    needs=("an answer", "gold clauses"),
    writes=lambda config, unit, example: unit.method == MODEL,
)
