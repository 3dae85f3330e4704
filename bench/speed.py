"""Time the waits of a user: python -m bench.speed [--models NAMES] [--write]. Run it on an idle machine.

One question over eight passages of 150 words from a sample corpus. Timed: an answer of up to 80 tokens, its
leave-one-out with both floors, its input x gradient, and one more row of its token map, in each number format. Figures
are wall seconds after loading, the best of three runs, and the number of plain forward passes that take as long.
`--writing` compares
llama.cpp with torch for a model that has a GGUF file, in processor seconds.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator

import torch

from bench.results import arguments, conditions, publish, table
from engine.analyses.token_map import MapRows
from engine.answer.prompt import build_prompt
from engine.answer.write import prompting
from engine.cases.importers import imported_case
from engine.core.settings import Decoding, Prompting
from engine.core.text import words
from engine.core.values import AuditRecord, Passage
from engine.corpus.samples import FIRST_QUESTION, SAMPLES
from engine.models.choices import DType
from engine.models.defaults import choose_dtype
from engine.models.huggingface import HuggingFaceModel
from engine.models.registry import load_writer
from engine.workbench import Workbench

PASSAGES, WORDS, TOKENS = 8, 150, 80
GOALS = "Goals: an answer in 8 s, leave-one-out in 25 s, input x gradient in 5 s."
FORMATS: tuple[DType, ...] = ("float32", "bfloat16")


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


def rows(name: str, dtype: DType) -> Iterator[str]:
    """The figures of one model in one number format."""
    choose_dtype(dtype)
    model, passages = load_writer(name), eight()
    assert isinstance(model, HuggingFaceModel)
    write = prompting(model, Prompting(), Decoding(max_new_tokens=TOKENS))
    answer = write(FIRST_QUESTION, passages).answer
    case = imported_case(AuditRecord(FIRST_QUESTION, tuple(p.text for p in passages), answer.text))
    coded = model.encode(build_prompt(FIRST_QUESTION, passages))
    ids = [token.id for token in model.encode_answer(answer.text).tokens]
    bench = Workbench()
    plain = best(lambda: model.score([coded], ids[:1]))
    yield f"{name} | {model.dtype} | plain forward pass, {len(coded.ids):,} tokens | {plain:.2f} | 1"
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
        yield f"{name} | {model.dtype} | {step} | {seconds:.1f} | {seconds / plain:.1f}"


def writing(name: str) -> Iterator[str]:
    """Processor seconds of texts from one and from four passages: by llama.cpp and by torch."""
    asked = FIRST_QUESTION + " Tell in detail what the passages say."
    for dtype in ("auto", "bfloat16", "float32"):
        model = load_writer(name, dtype)
        assert isinstance(model, HuggingFaceModel)
        way = "llama.cpp" if model.llama_cpp else f"torch, {model.dtype}"
        prompting(model, Prompting(), Decoding(max_new_tokens=1))(asked, ())  # llama.cpp loads when it first writes
        for count, limit in ((1, 160), (4, TOKENS)):
            write = prompting(model, Prompting(), Decoding(max_new_tokens=limit))
            start = time.process_time()
            written = write(asked, eight()[:count])
            seconds, read = time.process_time() - start, len(model.encode(written.prompt).ids)
            yield f"{name} | {way} | {read} | {len(written.answer.tokens)} | {seconds:.1f}"


def main() -> None:
    asked = arguments(
        __doc__,
        models=("embedded", "model names, separated by commas"),
        writing=(False, "only compare llama.cpp with torch"),
    )
    names, told = asked.models.split(","), conditions(threads=torch.get_num_threads())
    if asked.writing:
        compared = (row for name in names for row in writing(name))
        lines = table("model | written by | tokens read | written | processor seconds", compared, " --- ")
        publish(asked, "llama.cpp", "llama.cpp", told, lines)
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GROUNDWORK_HOME"] = folder
        found = (row for name in names for dtype in FORMATS for row in rows(name, dtype))
        lines = table("model | format | step | seconds | plain forward passes", found, " --- ")
        publish(asked, "speed", "How long a user waits", f"{told}\n\n{GOALS}", lines)


if __name__ == "__main__":
    main()
