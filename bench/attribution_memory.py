"""Measure peak memory and CPU seconds of one method on a long prompt, in a process of its own.

    python -m bench.attribution_memory nothing | forward | leave-one-out | gradient  [--large]

A process's peak never falls, so earlier work would hide the peak of a method. Each method therefore has its own
process, and the peak is reset after the model is built (on Linux; elsewhere it includes the build). Prints one JSON
line.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch

from bench.attribution_case import LARGE, Shape, cpu_seconds, make_case, make_model, make_tokenizer
from bench.attribution_rows import prompt_of
from engine.methods.input_x_gradient import input_x_gradient
from engine.methods.occlusion import occlusion
from engine.models.choices import fast_bfloat16
from engine.models.huggingface import HuggingFaceModel
from engine.models.scoring import score_rows

HALF_BILLION = LARGE if fast_bfloat16() else replace(LARGE, dtype="float32")
PASSAGE_TOKENS = 395  # ten of them make a prompt of 4,000 tokens
PARTS = ("nothing", "forward", "leave-one-out", "gradient")


def forget_peak() -> None:
    """Reset this process's peak memory to its current memory (proc(5): clear_refs)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_gigabytes() -> float:
    """Peak memory of this process in GB (2**30 bytes)."""
    with suppress(OSError):
        held = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
        if held:
            return int(held[1]) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measured(part: str, shape: Shape) -> dict[str, float]:
    """The prompt's `tokens`, CPU `seconds`, and this process's `peak` in GB (2**30 bytes)."""
    torch.set_num_threads(1)
    tokenizer = make_tokenizer()
    model = HuggingFaceModel("bench", make_model(shape), tokenizer)
    case = make_case(tokenizer, replace(shape, passage_tokens=PASSAGE_TOKENS))
    prompt, answer = prompt_of(case), model.encode_answer(case.answer)
    ids = model.encode(prompt).ids
    works: dict[str, Callable[[], object]] = {
        "nothing": lambda: None,
        "forward": lambda: score_rows(model.module, [ids], [token.id for token in answer.tokens]),
        "leave-one-out": lambda: occlusion(model, prompt, answer, floors=False),
        "gradient": lambda: input_x_gradient(model, prompt, answer),
    }
    gc.collect()
    forget_peak()
    seconds = cpu_seconds(works[part], 1)
    return {"tokens": len(ids), "seconds": seconds, "peak": peak_gigabytes()}


def long_prompt(large: bool) -> list[str]:
    """Two lines about a prompt of some 4,000 tokens: seconds, then peak memory per method."""
    found = {}
    for part in PARTS:
        command = [sys.executable, "-m", "bench.attribution_memory", part, *(["--large"] if large else [])]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found[part] = json.loads(done.stdout.splitlines()[-1])
        print(part, found[part], flush=True)
    forward, removal, gradient = (found[part] for part in PARTS[1:])
    return [
        f"prompt of {forward['tokens']} tokens: one scoring forward {forward['seconds']:.1f} s, leave-one-out "
        f"{removal['seconds']:.1f} s, input x gradient {gradient['seconds']:.1f} s",
        f"peak memory, one process each: {found['nothing']['peak']:.2f} GB with the model alone, "
        f"{forward['peak']:.2f} GB with one scoring forward, {removal['peak']:.2f} GB with leave-one-out, which is "
        f"{removal['peak'] / forward['peak']:.2f} of that (aim: at most 1.5), {gradient['peak']:.2f} GB with "
        "input x gradient (limit: 24 GB)",
    ]


def main() -> None:
    """Print the figures of one method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--large", action="store_true", help="half a billion parameters")
    asked = parser.parse_args()
    print(json.dumps(measured(asked.part, HALF_BILLION if asked.large else Shape())))


if __name__ == "__main__":
    main()
