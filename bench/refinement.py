"""Find runs that show the effect of a second pass, with one model: `python -m bench.refinement [--write]`.

For each kind of `bench.refinement_kinds`, its conditions run (gate own) on the labelled questions of the bank
investigation, one seed after another. A search ends when the kind occurs on a fully supported answer, or when the runs
are used up. That case (else the first of its kind) is saved as a case file that can be replayed. A kind that never
occurred is named.

Passages and temperature suit a small model: at most two labelled relevant and five in all, temperature 0.3 (paper:
0.7).
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import torch
from msgspec.structs import replace

from bench.refinement_kinds import KINDS, stored, supported_sentences
from bench.results import arguments, conditions, publish
from engine.analyses.refinement import analysis_of
from engine.cases.bundled import file_of
from engine.cases.case_file import write_case_file
from engine.core.metrics import statements
from engine.core.settings import Settings
from engine.core.values import Answer, Case, Passage, Stamp
from engine.corpus.worlds import World, WorldQuestion, load_world
from engine.methods.refinement.conditions import Request
from engine.methods.refinement.request import read_by
from engine.methods.refinement.run import RefinementReport, assessed, refine
from engine.models.protocols import Entailment, Writer
from engine.models.registry import load_writer
from engine.models.verifier import load_entailment

WORLD = "bank-investigation"
SEEDS = (1337, 2024, 42)
NEEDS = {  # the conditions that a kind is told from
    "Self-Refine adds an unsupported claim": ("A", "E"),
    "The overlap heuristic removes supported sentences": ("A", "D"),
    "The attribution-triggered rewrite keeps a grounded answer": ("A", "v2c"),
}
RELEVANT, PASSAGES, TEMPERATURE = 2, 5, 0.3

Run = tuple[str, int]  # question, seed


def main() -> None:
    """Search for every kind, save its case, print the counts, and save them with --write."""
    options = arguments(
        __doc__,
        runs=(500, "most runs per kind"),
        kind={"action": "append", "choices": KINDS, "help": "of effect (default: all); may be repeated"},
        model=("embedded", "the writer"),
        cases={"type": Path, "help": "folder for the case of each kind"},
        workers=(1, "processes, one thread each"),
    )
    start = time.perf_counter()
    searches = [search(kind, options.model, options.runs, options.workers) for kind in options.kind or KINDS]
    if options.cases is not None:
        for found in searches:
            save(found, options.cases)
    told = (
        f"{conditions(model=options.model)} {PASSAGES} passages, temperature {TEMPERATURE}; {options.workers} "
        f"processes, {time.perf_counter() - start:.0f} s in all. Each kind is searched for until it occurs on an "
        f"answer that its citations fully support, in at most {options.runs} runs."
    )
    publish(options, "refinement", "Refinement: what a second pass does to answers", told, counts(searches))


@dataclass
class Search:
    """The search for a kind: its case is the first whose A is fully supported, else the first."""

    kind: str
    runs: int = 0
    occurred: int = 0
    case: Case | None = None
    report: RefinementReport | None = None
    sound: bool = False
    outcomes: Counter[str] = field(default_factory=Counter)

    def take(self, case: Case, report: RefinementReport) -> None:
        """Count a run. Keep it if it is the first, or the first with a fully supported A."""
        self.runs += 1
        self.outcomes.update(f"{n} {v.outcome}" for n, v in report.refinement.variants.items())
        if not KINDS[self.kind](report, case.passages):
            return
        self.occurred += 1
        a = report.refinement.variants["A"].answer
        sound = a is not None and len(supported_sentences(a, case.passages, stored(report))) == len(statements(a)) > 0
        if self.case is None or sound:
            self.case, self.report, self.sound = case, report, sound


def search(kind: str, model: str, most: int, workers: int) -> Search:
    """Run a kind's conditions until a case is sound, at most `most` times."""
    found = Search(kind)
    work = list(itertools.islice(runs(load_world(WORLD)), most))
    with ProcessPoolExecutor(workers) as pool:
        for case, report in pool.map(run_once, work, itertools.repeat(model), itertools.repeat(NEEDS[kind])):
            found.take(case, report)
            print(json.dumps({"kind": kind, "runs": found.runs, "occurred": found.occurred}), flush=True)
            if found.sound:
                pool.shutdown(wait=False, cancel_futures=True)
                break
    return found


def runs(world: World) -> Iterator[Run]:
    """Every labelled question with every seed: the paper's three, then 1, 2, 3 and so on."""
    for seed in itertools.chain(SEEDS, itertools.count(1)):
        for question in world.questions:
            if question.passages:
                yield question.id, seed


@cache
def tools(model: str) -> tuple[World, Writer, Entailment]:
    """The models and questions of a process, loaded once."""
    torch.set_num_threads(1)
    return load_world(WORLD), load_writer(model), load_entailment()


def given(world: World, question: WorldQuestion) -> tuple[Passage, ...]:
    """At most `RELEVANT` relevant passages, filled up to `PASSAGES`, in their order."""
    passages = world.given_passages(question)
    relevant = [p for p in passages if p.relevant][:RELEVANT]
    others = [p for p in passages if not p.relevant][: PASSAGES - len(relevant)]
    return tuple(p for p in passages if p in relevant or p in others)


def run_once(run: Run, model: str, names: tuple[str, ...]) -> tuple[Case, RefinementReport]:
    """Run the conditions and the verifier on one question with one seed."""
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
    request = Request(case, writer, settings, variants=names, read=read_by(writer.name, case, settings.retrieval))
    return case, assessed(RefinementReport(refinement=refine(request)), case.passages, verifier)


def save(found: Search, folder: Path) -> None:
    """A case file for a kind that occurred; its answer is A."""
    if found.case is None or found.report is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"\W+", "-", found.kind.lower())
    stamp, baseline = found.report.refinement.stamp, found.report.refinement.baseline
    whole = replace(found.case, id=name, title=found.kind, stamp=stamp, tags=("second pass",))
    whole = replace(whole, answer=baseline or whole.answer)
    whole = replace(whole, analyses=(analysis_of(whole, found.report, use_answer=False),))
    file_of(name, folder).write_bytes(gzip.compress(write_case_file(whole), mtime=0))


def counts(searches: Sequence[Search]) -> list[str]:
    """The counts in words, with the kinds that never occurred."""
    outcomes = sum((found.outcomes for found in searches), Counter[str]())
    lines = [
        f"- {found.kind}: {found.occurred or 'in none'} of {found.runs} runs"
        f"{'' if found.case is None or found.sound else ', never on a fully supported answer'}."
        for found in searches
    ]
    ends = ", ".join(f"{name}: {count}" for name, count in sorted(outcomes.items()))
    return [*lines, "", f"Outcomes: {ends}."]


if __name__ == "__main__":
    main()
