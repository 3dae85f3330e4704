"""Time the waits of a user: python -m bench.speed [--models NAMES] [--write]. Run it on an idle machine.

One question over eight passages of 150 words from a sample corpus. Timed: an answer of up to 80 tokens, its
leave-one-out with both floors, its input x gradient, and one more row of its token map. Figures are wall seconds after
loading, the best of three runs, and the number of plain forward passes that take as long.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator

import torch

from bench.results import conditions, write_section
from engine.analyses.token_map import MapRows
from engine.answer.prompt import build_prompt
from engine.answer.write import prompting
from engine.cases.importers import imported_case
from engine.core.settings import Decoding, Prompting
from engine.core.text import words
from engine.core.values import AuditRecord, Passage
from engine.corpus.samples import FIRST_QUESTION, SAMPLES
from engine.models.huggingface import HuggingFaceModel
from engine.models.registry import load_writer
from engine.workbench import Workbench

PASSAGES, WORDS, TOKENS = 8, 150, 80
HEAD = "| model | step | seconds | plain forward passes |\n| --- | --- | --- | --- |"


def best(run: Callable[[], object], times: int = 3) -> float:
    """Seconds of the fastest of several runs."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return min(taken)


def eight() -> tuple[Passage, ...]:
    """The first words of the first documents of the first sample corpus."""
    texts = []
    for path in SAMPLES[0].documents[:PASSAGES]:
        text = path.read_text(encoding="utf-8")
        texts.append(text[: words(text)[WORDS - 1][1]])
    return AuditRecord(question=FIRST_QUESTION, passages=tuple(texts)).as_passages()


def rows(name: str) -> Iterator[str]:
    """The figures of one model."""
    model, passages = load_writer(name), eight()
    assert isinstance(model, HuggingFaceModel)
    write = prompting(model, Prompting(), Decoding(max_new_tokens=TOKENS))
    answer = write(FIRST_QUESTION, passages).answer
    case = imported_case(AuditRecord(FIRST_QUESTION, tuple(p.text for p in passages), answer.text))
    coded = model.encode(build_prompt(FIRST_QUESTION, passages))
    ids = [token.id for token in model.encode_answer(answer.text).tokens]
    bench = Workbench()
    plain = best(lambda: model.score([coded], ids[:1]))
    yield f"| {name} | plain forward pass, {len(coded.ids):,} tokens | {plain:.2f} | 1 |"
    steps: dict[str, Callable[[], object]] = {
        f"answer, {len(ids)} tokens": lambda: write(FIRST_QUESTION, passages),
        "leave-one-out, both floors": lambda: bench.examine(case, "occlusion"),
        "input x gradient of the answer": lambda: bench.examine(case, "input x gradient"),
        "a token map of the answer and one sentence": lambda: bench.examine(
            case, "token map", MapRows(model=name, sentences=(0,))
        ),
    }
    for step, run in steps.items():
        seconds = best(run)
        yield f"| {name} | {step} | {seconds:.1f} | {seconds / plain:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="embedded")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GROUNDWORK_HOME"] = folder
        found = []
        for row in (row for name in asked.models.split(",") for row in rows(name)):
            found.append(row)
            print(row, flush=True)
    if asked.write:
        told = ["## How long a user waits", "", conditions(threads=torch.get_num_threads()), "", HEAD, *found]
        write_section("speed", "\n".join(told))


if __name__ == "__main__":
    main()
