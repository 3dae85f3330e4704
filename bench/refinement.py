"""`python -m bench.refinement`: look for runs that show what a second pass does, with the committed weights.

Runs all conditions on the labelled questions of the bank investigation (METHODS section 2, gate own) with one seed
after another until the runs are used up, and reports how often each kind of `engine.refine.kinds` occurred. The first
run of each kind is written as a case file, so that it can be replayed; where a kind never occurred, that is said.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from bench.results import conditions, write_section
from engine.cases.case_file import write_case_file
from engine.models.protocols import Entailment, Writer
from engine.models.registry import load_writer
from engine.models.verifier import load_entailment
from engine.refine.kinds import KINDS
from engine.refine.report import Report, analysis_of, assessed, request_for
from engine.refine.run import refine
from engine.settings import Settings
from engine.types import Answer, Case, Stamp
from engine.worlds import World, WorldQuestion, load_world

WORLD = "bank-investigation"
SEEDS = (1337, 2024, 42)
NAMES = ("A", "B", "D", "E", "v2c")  # the conditions that the kinds ask for


def main() -> None:
    """Run, count, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--cases", type=Path, default=None, help="folder for the first case of each kind")
    parser.add_argument("--write", action="store_true", help="write the section of bench/RESULTS.md")
    options = parser.parse_args()
    writer, verifier = load_writer(options.model), load_entailment()
    counts, outcomes, first, start = Counter[str](), Counter[str](), {}, time.perf_counter()
    for done, (world, question, seed) in enumerate(itertools.islice(runs(), options.runs), start=1):
        case, report = run_once(world, question, seed, writer, verifier)
        outcomes.update(f"{n} {v.outcome}" for n, v in report.refinement.variants.items())
        for kind, occurs in KINDS.items():
            if occurs(report, case.passages):
                counts[kind] += 1
                first.setdefault(kind, (case, report))
        print(json.dumps({"run": done, "question": question.id, "seed": seed, "kinds": dict(counts)}), flush=True)
    if options.cases is not None:
        save(first, options.cases)
    text = section(options, counts, outcomes, time.perf_counter() - start)
    print(text)
    if options.write:
        write_section("refinement", text)


def runs() -> Iterator[tuple[World, WorldQuestion, int]]:
    """Every labelled question under every seed: the paper's three, then 1, 2, 3 and on."""
    world = load_world(WORLD)
    for seed in itertools.chain(SEEDS, itertools.count(1)):
        for question in world.questions:
            if question.passages:
                yield world, question, seed


def run_once(
    world: World, question: WorldQuestion, seed: int, writer: Writer, verifier: Entailment
) -> tuple[Case, Report]:
    """One question, one seed: the conditions and the verifier."""
    settings = Settings()
    settings = replace(settings, decoding=replace(settings.decoding, seed=seed))
    case = Case(
        id=f"refinement-{question.id}-{seed}",
        question=question.question,
        passages=world.given_passages(question),
        answer=Answer(text=""),
        stamp=Stamp(model=writer.name, seed=seed),
        corpus=WORLD,
    )
    value = refine(request_for(case, writer, settings, variants=NAMES))
    return case, assessed(value, case.passages, verifier)


def save(first: dict[str, tuple[Case, Report]], folder: Path) -> None:
    """A case file for the first run of each kind; its answer is A."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, (case, report) in first.items():
        baseline = report.refinement.baseline
        whole = replace(case, title=kind, answer=baseline or case.answer, stamp=report.refinement.stamp)
        whole = replace(whole, analyses=(analysis_of(whole, report, use_answer=False),))
        name = kind.lower().replace(" ", "_").replace("-", "_")
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(write_case_file(whole), mtime=0))


def section(options: argparse.Namespace, counts: Counter[str], outcomes: Counter[str], seconds: float) -> str:
    """The counts in words; a kind that never occurred is named."""
    lines = [f"- {kind}: {counts[kind] or 'in none'} of {options.runs} runs." for kind in KINDS]
    ends = ", ".join(f"{name}: {count}" for name, count in sorted(outcomes.items()))
    return "\n".join(
        [
            "## Refinement: what a second pass does to the embedded model's answers",
            "",
            f"{conditions(model=options.model)} {seconds / max(1, options.runs):.1f} s a run.",
            "",
            *lines,
            "",
            f"Outcomes: {ends}.",
        ]
    )


if __name__ == "__main__":
    main()
