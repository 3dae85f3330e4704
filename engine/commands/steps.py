"""steps, calibrate-threshold: questions worked out step by step, and T of an embedder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

import click

from engine.analyses.steps import KIND, StepsOptions, finder, means_for, new_case
from engine.commands import shared
from engine.core.errors import InputError
from engine.methods.raise_.threshold import LabelledQuestion, calibrate, keep, labelled_pairs, logical_query
from engine.methods.raise_.values import METHODS, Problem, ReasonStep, Solution, letter, method_of, similarity
from engine.workbench import Workbench

ALL = ",".join(method.name for method in METHODS)


class StepsRecord(Problem, frozen=True, forbid_unknown_fields=False):
    """A problem of a file of records."""

    id: str = ""


def row_of(identity: str, solution: Solution) -> shared.Record:
    """The line of a run."""
    choice = solution.choice
    raw = solution.decomposition.asked.reply if solution.decomposition and solution.state == "unparsed" else None
    return {
        "id": identity,
        "method": solution.method,
        "model": solution.model,
        "state": solution.state,
        "steps": [step_row(step) for step in solution.steps],
        "answer": solution.answer,
        "choice": None if choice is None else letter(choice),
        "threshold": solution.threshold,
        "embedder": solution.embedder,
        **solution.cost.to_dict(),
        "notes": [*(solution.decomposition.notes if solution.decomposition else ()), *solution.notes],
        **({"raw": raw} if raw is not None else {}),
    }


def step_row(step: ReasonStep) -> shared.Record:
    """One step; `logical_query` is null for a method that searches something else, named in `searched`."""
    search = step.search
    return {
        "question": step.question,
        "query": step.query,
        "searched": search.kind if search else None,
        "searched_text": search.text if search else None,
        "logical_query": search.text if search and search.kind == "logical query" else None,
        "kept": [shared.hit_row(hit, similarity(hit)) for hit in step.kept],
        "dropped": [shared.hit_row(hit, similarity(hit)) for hit in step.dropped],
        "answer": step.answer,
        "notes": list(step.notes),
    }


@shared.main.command()
@shared.file_argument
@shared.corpus_option
@click.option(
    "--method", "methods", default="raise", show_default=True, help=f"One or more of {ALL}, separated by commas."
)
@shared.model_option
@shared.with_workbench
def steps(file: TextIO, corpus: str, methods: str, model: str, bench: Workbench) -> None:
    """Solve questions step by step, one line per method.

    Methods in one call share identical model calls, such as the decomposition.

    Example: python -m engine steps questions.jsonl --corpus science-primer --method raise,hyde
    """
    chosen = tuple(dict.fromkeys(method_of(name) for name in methods.split(",") if name.strip()))
    if not chosen:
        raise InputError(f"No method was given. Choose from: {ALL}.")
    context, collection = bench.context(shared.progress()), bench.collection(corpus)
    for method in chosen:  # a model that is none and a T that lacks are told now
        means_for(collection, bench.tools.generator(model), bench.settings, method)

    def work(record: StepsRecord) -> Iterator[shared.Record]:
        case = new_case(record, corpus, record.id, "")
        for method in chosen:
            case = bench.examine(case, KIND.name, StepsOptions(method=method.name, model=model), context)
            yield row_of(record.id, KIND.of(case)[-1])

    shared.run_records(file, StepsRecord, work)


@shared.main.command("calibrate-threshold")
@shared.file_argument
@shared.corpus_option
@click.option("--dry-run", is_flag=True, help="Print T without saving it.")
@shared.model_option
@shared.with_workbench
def calibrate_threshold(file: TextIO, corpus: str, dry_run: bool, model: str, bench: Workbench) -> None:
    """Calibrate T on labelled questions of a corpus and save it for that corpus.

    A record is {"question", "gold": [text of the corpus, ...]}; labelled "steps" replace it. The model
    writes a logical query for each; T keeps at least 95% of the gold passages that these queries find.

    Example: python -m engine calibrate-threshold labelled.jsonl --corpus notes --model embedded
    """
    collection, watch = bench.collection(corpus), shared.progress()
    pairs = labelled_pairs(LabelledQuestion.all_from(file), collection)
    writer = bench.tools.generator(model)
    found = calibrate(
        pairs,
        logical_query(writer, bench.settings.decoding, watch),
        finder(collection, bench.settings.reasoning.k),
        embedder=collection.manifest.embedder,
        corpus=corpus,
        writer=writer.name,
        watch=watch,
    )
    if not dry_run:
        keep(found)
    shared.emit({**found.to_dict(), "pairs": len(found.similarities), "kept": not dry_run})
