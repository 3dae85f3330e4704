"""Compare attribution with Captum, inseq and ContextCite: `make bench-attribution`.

    python -m bench.attribution [--large | --small] [--long] [--no-peers] [--no-captum] [--write]

One random-weight model, prompt and answer; one thread; the fastest of a few repeats, in CPU seconds. A hook on the
model's forward counts rows. The unit is one plain forward pass over prompt + answer with all logits, in the same
process. inseq and ContextCite run in their own environment (peer_environment.py). If they cannot be installed, the
section says so. `--large`: half a billion parameters, in bfloat16 where the CPU supports it. Methods with one pass per
answer token are then measured on the first few tokens and scaled. `--small`: two million parameters. `--long`: a prompt
of 4,000 tokens, with peak memory (attribution_memory.py). `--write` puts the section into bench/RESULTS.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bench.attribution_case import (
    SMALL,
    Shape,
    TextCase,
    cpu_seconds,
    make_case,
    make_model,
    make_tokenizer,
    plain_forward,
    save,
)
from bench.attribution_memory import HALF_BILLION, long_prompt
from bench.attribution_rows import FEW_TOKENS, Row, captum_rows, exact_tops, ours, prompt_of
from bench.peer_environment import peer_python, peer_rows
from bench.results import conditions, write_section
from engine.models.huggingface import HuggingFaceModel


@dataclass(frozen=True)
class Setup:
    """The model and prompt that every method gets, for the section's first line."""

    shape: Shape
    parameters: int
    length: int


def table(rows: list[Row]) -> str:
    lines = ["| | processor s | plain forwards | rows through the model |", "|---|---|---|---|"]
    lines += [f"| {r.name} | {r.seconds:.2f} | {r.plain:.2f} | {r.rows:.0f} |" for r in rows]
    return "\n".join(lines)


def verdicts(rows: list[Row], passages: int) -> list[str]:
    """The ratios that have a target, each with its target."""
    by = {row.name: row for row in rows}
    gradient, removal = by["input x gradient, whole answer"], by["leave-one-out"]
    found = [
        f"input x gradient of the whole answer: {gradient.plain:.2f} plain forwards (aim: at most 3.5)",
        f"leave-one-out: {removal.plain / (passages + 1):.2f} of the time of {passages + 1} plain forwards "
        "(aim: at most 0.5)",
    ]
    aims = (
        ("captum LLMGradientAttribution", gradient, 30, "input x gradient"),
        ("inseq", gradient, 3, "input x gradient"),
        ("captum LLMAttribution, default", removal, 3, "leave-one-out"),
        ("captum LLMAttribution, forward_in_tokens=False", removal, 2, "leave-one-out"),
    )
    for peer, own, aim, method in aims:
        if peer in by:
            found.append(f"{method}: {by[peer].plain / own.plain:.1f} times as fast as {peer} (aim: {aim})")
    if "context-cite" in by:
        fewer = by["context-cite"].rows / removal.rows
        found.append(f"leave-one-out: {fewer:.1f} times fewer rows than ContextCite's default (aim: 5)")
    return found


def report(setup: Setup, rows: list[Row], lines: list[str], write: bool) -> None:
    """Print the section and, with `write`, save it. Called after each method, so a stopped run keeps its results."""
    shape = setup.shape
    text = "\n".join(
        [
            f"## Attribution, {setup.parameters / 1e6:.0f} M parameters, {shape.dtype}",
            "",
            f"Random-weight Llama, vocabulary {shape.vocabulary:,}; {shape.passages} passages, prompt of "
            f"{setup.length} tokens, answer of {shape.answer_tokens}; one thread. {conditions()}",
            "",
            table(rows),
            "",
            *(f"- {line}" for line in [*verdicts(rows, shape.passages), *lines]),
        ]
    )
    print(text, flush=True)
    if write:
        write_section({HALF_BILLION: "attribution-large", SMALL: "attribution-small"}.get(shape, "attribution"), text)


def main(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    shape = HALF_BILLION if arguments.large else SMALL if arguments.small else Shape()
    tokenizer, module = make_tokenizer(), make_model(shape)
    cases = [make_case(tokenizer, shape, seed) for seed in range(arguments.cases)]
    model = HuggingFaceModel("bench", module, tokenizer)
    length = len(model.encode(prompt_of(cases[0])).ids)
    setup = Setup(shape, sum(p.numel() for p in module.parameters()), length)
    plain = cpu_seconds(plain_forward(module, tokenizer, cases[0]))
    rows = [Row("plain forward, all logits", plain, 1.0, 1), *ours(model, cases[0], plain, 1 if arguments.large else 3)]
    few = FEW_TOKENS if arguments.large else shape.answer_tokens
    notes: list[str] = []
    report(setup, rows, notes, arguments.write)
    if arguments.long:
        notes += long_prompt(arguments.large)
        report(setup, rows, notes, arguments.write)
    if not arguments.no_peers:
        found, said = with_peers(model, tokenizer, cases, few)
        rows, notes = rows + found, notes + said
        report(setup, rows, notes, arguments.write)
    if not arguments.no_captum:
        found, said = captum_rows(module, tokenizer, cases[0], plain, few)
        report(setup, rows + found, notes + said, arguments.write)


def with_peers(model: HuggingFaceModel, tokenizer: Any, cases: list[TextCase], few: int) -> tuple[list[Row], list[str]]:
    """Measure inseq and ContextCite on the same model and cases, from a folder that both sides read."""
    python, why = peer_python()
    if python is None:
        return [], [why]
    with tempfile.TemporaryDirectory() as saved:
        save(Path(saved), model.module, tokenizer, cases)
        return peer_rows(python, Path(saved), exact_tops(model, cases), few)


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.attribution")
    parser.add_argument("--large", action="store_true", help="half a billion parameters")
    parser.add_argument("--small", action="store_true", help="two million parameters: all parties in a few minutes")
    parser.add_argument("--long", action="store_true", help="also a prompt of 4,000 tokens, with peak memory")
    parser.add_argument("--write", action="store_true", help="write the section of bench/RESULTS.md")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--no-captum", action="store_true")
    parser.add_argument("--cases", type=int, default=3, help="prompts on which first passages are compared")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main(parse(sys.argv[1:]))
