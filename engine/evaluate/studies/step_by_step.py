"""RAISE beside its nine baselines (RAISE, Tables 1 and 2, Fig. 2, 5 and 7): one data set and one model a run.

Accuracy on multiple choice, where a reply that names no option is wrong and counted as unparsed; ROUGE-L of open
answers; gold passages found before T and read after it; what it cost. Relevance of what was retrieved on four levels
is rated by the model that `judge` names. The options' order and T are the data set's and the embedder's.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec.structs import replace

from engine.answer.citations import annotate
from engine.answer.write import Written
from engine.evaluate.example import Example
from engine.evaluate.studies._cases import case_of, gold_in, tokens_of
from engine.evaluate.studies._step_results import results
from engine.evaluate.study import Study
from engine.evaluate.tools import Tools
from engine.evaluate.values import Estimate, Found, Unit
from engine.metrics import rouge_l
from engine.progress import Watch
from engine.reason.gold import read, recall, retrieved
from engine.reason.methods import METHODS, method_of
from engine.reason.on_case import analysis_of, means_for
from engine.reason.options import Problem
from engine.reason.relevance import rate, ratings_analysis
from engine.reason.solve import solve
from engine.reason.values import Solution
from engine.refine.costs import metered
from engine.settings import Settings
from engine.types import Answer, Case, Stamp

STEPS = 4  # sub-questions that an estimate takes a problem to have


def run(tools: Tools, unit: Unit, example: Example, watch: Watch) -> Found:
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


def _case(example: Example, solution: Solution, tools: Tools, settings: Settings) -> Case:
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
    return said | ({} if example.references or example.options else {"rouge_l": "There is no reference answer."})


def _unread(solution: Solution) -> bool:
    """Whether the decomposition could not be read, or the last reply names no option."""
    return solution.state == "unparsed" or (bool(solution.problem.options) and solution.choice is None)


def cost(tools: Tools, unit: Unit, example: Example) -> Estimate:
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
    writes_first=lambda config, unit, example: True,
)
