"""Measure RAISE and its baselines on the primer: python -m bench.steps [--model embedded] [--n 12] [--write].

Two tables. Without a model: gold recall of the top 10 of each labelled sub-question before and after T, and T
recalibrated on the primer. With a model, per method: gold found before and after T, accuracy on multiple choice,
ROUGE-L of open answers, calls, tokens and seconds, each with a 95% bootstrap interval over questions. Questions are
taken evenly from the file, so every domain is included. Rows are in the order of the table of methods. Runs in its own
data folder; `--write` puts the section into bench/RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.results import conditions, write_section
from engine.analyses.steps import finder, means_for
from engine.core.errors import GroundworkError
from engine.core.metrics import rouge_l
from engine.core.settings import Settings
from engine.core.statistics import interval_or_none
from engine.corpus.collection import Collection
from engine.corpus.samples import SAMPLES
from engine.corpus.worlds import WorldQuestion
from engine.methods.raise_.solve import known_calls, solve
from engine.methods.raise_.threshold import (
    PRIMER,
    LabelledQuestion,
    calibrate,
    labelled_pairs,
    primer,
    primer_gold,
    read,
    recall,
    retrieved,
    threshold_for,
)
from engine.methods.raise_.values import METHODS, Call, Problem, ReasoningMethod, Solution, method_of, similarity
from engine.models.embedder import load_embedder
from engine.models.protocols import Writer
from engine.models.registry import load_writer
from engine.studies.plan import evenly


@dataclass(frozen=True)
class Row:
    """One question under one method."""

    question: WorldQuestion
    solution: Solution
    before: float
    after: float
    kept: int


def collection() -> Collection:
    """The primer, ingested as on a first start."""
    made = Collection.create(PRIMER, load_embedder())
    made.ingest(next(sample.documents for sample in SAMPLES if sample.name == PRIMER))
    return made


def mean(values: Iterable[float | None]) -> str:
    """Mean with its 95% interval, or with the count of fewer than ten values; a dash without values."""
    found = [value for value in values if value is not None]
    if not found:
        return "-"
    interval = interval_or_none(found)
    told = f"({len(found)} only)" if interval is None else f"[{interval.low:.2f}, {interval.high:.2f}]"
    return f"{sum(found) / len(found):.2f} {told}"


def without_a_model(corpus: Collection) -> list[str]:
    """Gold recall of labelled sub-questions before and after T, for T as published and as recalibrated."""
    labelled = [LabelledQuestion.from_dict(question.to_dict()) for question in primer().questions]
    pairs = labelled_pairs(labelled, corpus)
    find, passages = finder(corpus, Settings().reasoning.k), corpus.snapshot().passages
    own = calibrate(pairs, str, find, embedder=corpus.embedder.name, corpus=PRIMER, writer="nobody")
    built_in = threshold_for(corpus.embedder.name, PRIMER).value
    gold: dict[str, set[str]] = {}
    for question, passage in pairs:
        gold.setdefault(question, set()).add(passage.id)
    hits = {question: find(question) for question in gold}
    lines = [
        f"{len(passages)} passages, {len(gold)} labelled sub-questions, top {Settings().reasoning.k} of each,"
        f" searched as written with {corpus.embedder.name}.",
        "",
        "| T | gold recall before T | after T | passages kept of 10 |",
        "| --- | --- | --- | --- |",
    ]
    for name, limit in (
        (f"{built_in:.2f}, shipped for the primer", built_in),
        (f"{own.value:.2f}, calibrated with the sub-questions as written", own.value),
        ("0.84, DPR's", 0.84),
    ):
        kept = {q: [h.passage.id for h in found if similarity(h) >= limit] for q, found in hits.items()}
        before = mean(recall([h.passage.id for h in hits[q]], gold[q]) for q in gold)
        after = mean(recall(kept[q], gold[q]) for q in gold)
        lines.append(f"| {name} | {before} | {after} | {mean(float(len(kept[q])) for q in gold)} |")
    return lines


def run(
    corpus: Collection, model: Writer, questions: Sequence[WorldQuestion], methods: Sequence[ReasoningMethod]
) -> list[Row]:
    """Run every method on every question; equal calls are made once. Prints one line per run."""
    settings, passages, rows = Settings().apply(["decoding.max_new_tokens=256"]), corpus.snapshot().passages, []
    for question in questions:
        gold, known = primer_gold(question.question, passages), dict[str, Call]()
        for method in methods:
            means = means_for(corpus, model, settings, method, known)
            solution = solve(Problem(question=question.question, options=question.options), method, means)
            known.update(known_calls(solution, model, settings.decoding))
            rows.append(
                Row(
                    question,
                    solution,
                    recall(retrieved(solution), gold),
                    recall(read(solution), gold),
                    len(read(solution)),
                )
            )
            print(json.dumps(figures(rows[-1])), flush=True)
    return rows


def figures(row: Row) -> dict[str, object]:
    """One run in short."""
    solution, cost = row.solution, row.solution.cost
    return {
        "question": row.question.id,
        "method": solution.method,
        "state": solution.state,
        "steps": len(solution.steps),
        "right": right(row),
        "rouge_l": overlap(row),
        "recall_before": row.before if cost.searches else None,
        "recall_after": row.after if cost.searches else None,
        **cost.to_dict(),
    }


def right(row: Row) -> float | None:
    """1 for the right option, 0 for another or none; None for an open question."""
    return None if row.question.correct is None else float(row.solution.choice == row.question.correct)


def overlap(row: Row) -> float | None:
    """ROUGE-L F of an open answer; None for multiple choice."""
    return rouge_l(row.question.answer, row.solution.answer) if row.question.correct is None else None


def table(rows: Sequence[Row], methods: Sequence[ReasoningMethod]) -> list[str]:
    """One line per method."""
    lines = [
        "| method | accuracy | ROUGE-L, open | gold before T | after T | passages | calls | tokens written | s |"
        " not parsed |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for method in methods:
        own = [row for row in rows if row.solution.method == method.name]
        searched = own if method.searches else []  # a run that was not parsed found nothing and counts so
        costs = [row.solution.cost for row in own]
        cells = (
            method.label,
            mean(right(row) for row in own),
            mean(overlap(row) for row in own),
            mean(row.before for row in searched),
            mean(row.after for row in searched),
            mean(float(row.kept) for row in searched),
            mean(float(cost.calls) for cost in costs),
            mean(cost.written for cost in costs),
            mean(cost.seconds for cost in costs),
            str(sum(row.solution.state == "unparsed" for row in own)),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def by_domain(rows: Sequence[Row]) -> str:
    """Accuracy of RAISE and CoT in each domain."""
    said = []
    for domain in sorted({row.question.domain for row in rows}):
        for name in ("raise", "cot"):
            own = [right(r) for r in rows if r.question.domain == domain and r.solution.method == name]
            found = [value for value in own if value is not None]
            if found:
                said.append(f"{domain} {method_of(name).label} {sum(found):.0f} of {len(found)}")
    return "Correct by domain: " + "; ".join(said) + "." if said else ""


def main() -> None:
    """Measure, print, and save with --write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--n", type=int, default=12, help="questions; 122 are all")
    parser.add_argument("--methods", default=",".join(method.name for method in METHODS))
    parser.add_argument("--write", action="store_true", help="write the section of bench/RESULTS.md")
    given = parser.parse_args()
    methods = [method_of(name) for name in given.methods.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GROUNDWORK_HOME"] = folder
        corpus = collection()
        lines = ["## Step by step on the science primer", "", conditions(model=given.model), ""]
        lines += without_a_model(corpus)
        print("\n".join(lines), flush=True)
        try:
            rows = run(corpus, load_writer(given.model), evenly(primer().questions, given.n), methods)
        except GroundworkError as error:
            lines += ["", f"The ten methods were not run: {error}"]
        else:
            counted = f"{min(given.n, len(primer().questions))} of {len(primer().questions)} questions"
            own = f"{counted}, {given.model}, greedy, T {threshold_for(corpus.embedder.name, PRIMER).value:.2f}."
            lines += ["", f"{own} Means with 95% intervals. An unparsed run counts as wrong and finds nothing.", ""]
            lines += [*table(rows, methods), "", by_domain(rows)]
    print("\n".join(lines))
    if given.write:
        write_section("steps", "\n".join(lines))


if __name__ == "__main__":
    main()
