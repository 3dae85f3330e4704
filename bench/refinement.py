"""`python -m bench.refinement`: look for runs that show what a second pass does, with the committed weights.

Runs the conditions that the kinds ask for on the labelled questions of the bank investigation (METHODS section 2,
gate own) with one seed after another until every kind of `engine.refine.kinds` has a sound case or the runs are
used up, and reports how often each occurred. The first run of each kind whose A is wholly supported (else the first
run) is written as a case file, so that it can be replayed; where a kind never occurred, that is said.

Passages and temperature are those at which the embedded model writes sentences: all that are labelled relevant, up to
two, and others up to five; 0.3. At thirteen passages and the paper's 0.7 it does not.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import torch
from msgspec.structs import replace

from bench.results import conditions, write_section
from engine.cases.bundled import file_of
from engine.cases.case_file import write_case_file
from engine.metrics import statements
from engine.models.protocols import Entailment, Writer
from engine.models.registry import load_writer
from engine.models.verifier import load_entailment
from engine.refine.kinds import KINDS, stored, supported_sentences
from engine.refine.report import Report, analysis_of, assessed, request_for
from engine.refine.run import refine
from engine.settings import Settings
from engine.types import Answer, Case, Passage, Stamp
from engine.worlds import World, WorldQuestion, load_world

WORLD = "bank-investigation"
SEEDS = (1337, 2024, 42)
NAMES = ("A", "B", "D", "E", "v2c")  # the conditions that the kinds ask for
RELEVANT, PASSAGES, TEMPERATURE = 2, 5, 0.3

Run = tuple[str, int]  # question, seed


def main() -> None:
    """Run, count, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--cases", type=Path, default=None, help="folder for the first case of each kind")
    parser.add_argument("--workers", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--write", action="store_true", help="write the section of bench/RESULTS.md")
    options = parser.parse_args()
    counts, outcomes, found, start = Counter[str](), Counter[str](), Found(), time.perf_counter()
    work = list(itertools.islice(runs(load_world(WORLD)), options.runs))
    with ProcessPoolExecutor(options.workers) as pool:
        for done, (case, report, kinds) in enumerate(
            pool.map(run_once, work, itertools.repeat(options.model)), start=1
        ):
            outcomes.update(f"{n} {v.outcome}" for n, v in report.refinement.variants.items())
            counts.update(kinds)
            for kind in kinds:
                found.offer(kind, case, report)
            print(json.dumps({"run": done, "case": case.id, "kinds": dict(counts)}), flush=True)
            if found.sound == {*KINDS}:
                pool.shutdown(wait=False, cancel_futures=True)
                break
    if options.cases is not None:
        save(found.best, options.cases)
    text = section(options, sum(outcomes.values()) // len(NAMES), counts, outcomes, time.perf_counter() - start)
    print(text)
    if options.write:
        write_section("refinement", text)


class Found:
    """The case of each kind: the first whose A is wholly supported by what it cites, else the first."""

    def __init__(self) -> None:
        self.best: dict[str, tuple[Case, Report]] = {}
        self.sound: set[str] = set()

    def offer(self, kind: str, case: Case, report: Report) -> None:
        """Keep the run if it is the first, or the first that is sound."""
        a = report.refinement.variants["A"].answer
        sound = a is not None and len(supported_sentences(a, case.passages, stored(report))) == len(statements(a)) > 0
        if kind not in self.best or (sound and kind not in self.sound):
            self.best[kind] = (case, report)
        if sound:
            self.sound.add(kind)


def runs(world: World) -> Iterator[Run]:
    """Every labelled question under every seed: the paper's three, then 1, 2, 3 and on."""
    for seed in itertools.chain(SEEDS, itertools.count(1)):
        for question in world.questions:
            if question.passages:
                yield question.id, seed


@cache
def tools(model: str) -> tuple[World, Writer, Entailment]:
    """What a process needs, loaded once."""
    torch.set_num_threads(1)
    return load_world(WORLD), load_writer(model), load_entailment()


def given(world: World, question: WorldQuestion) -> tuple[Passage, ...]:
    """Up to `RELEVANT` relevant passages and others up to `PASSAGES`, in their order."""
    passages = world.given_passages(question)
    relevant = [p for p in passages if p.relevant][:RELEVANT]
    others = [p for p in passages if not p.relevant][: PASSAGES - len(relevant)]
    return tuple(p for p in passages if p in relevant or p in others)


def run_once(run: Run, model: str) -> tuple[Case, Report, tuple[str, ...]]:
    """One question, one seed: the conditions, the verifier, and the kinds that occurred."""
    name, seed = run
    world, writer, verifier = tools(model)
    question = next(q for q in world.questions if q.id == name)
    settings = Settings()
    settings = replace(settings, decoding=replace(settings.decoding, seed=seed, temperature=TEMPERATURE))
    case = Case(
        id=f"refinement-{name}-{seed}",
        question=question.question,
        passages=given(world, question),
        answer=Answer(text=""),
        stamp=Stamp(model=writer.name, seed=seed),
        corpus=WORLD,
    )
    value = refine(request_for(case, writer, settings, variants=NAMES))
    report = assessed(value, case.passages, verifier)
    return case, report, tuple(kind for kind, occurs in KINDS.items() if occurs(report, case.passages))


def save(first: dict[str, tuple[Case, Report]], folder: Path) -> None:
    """A case file for the first run of each kind; its answer is A."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, (case, report) in first.items():
        baseline = report.refinement.baseline
        name = re.sub(r"\W+", "-", kind.lower())
        stamp = report.refinement.stamp
        whole = replace(case, id=name, title=kind, answer=baseline or case.answer, stamp=stamp, tags=("second pass",))
        whole = replace(whole, analyses=(analysis_of(whole, report, use_answer=False),))
        file_of(name, folder).write_bytes(gzip.compress(write_case_file(whole), mtime=0))


def section(
    options: argparse.Namespace, done: int, counts: Counter[str], outcomes: Counter[str], seconds: float
) -> str:
    """The counts in words; a kind that never occurred is named."""
    lines = [f"- {kind}: {counts[kind] or 'in none'} of {done} runs." for kind in KINDS]
    ends = ", ".join(f"{name}: {count}" for name, count in sorted(outcomes.items()))
    return "\n".join(
        [
            "## Refinement: what a second pass does to the embedded model's answers",
            "",
            f"{conditions(model=options.model)} {PASSAGES} passages, temperature {TEMPERATURE}; {options.workers} "
            f"processes, {seconds:.0f} s in all.",
            "",
            *lines,
            "",
            f"Outcomes: {ends}.",
        ]
    )


if __name__ == "__main__":
    main()
