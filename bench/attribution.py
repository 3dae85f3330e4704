"""Attribution side by side with Captum, inseq and ContextCite: `make bench-attribution`.

    python -m bench.attribution [--large | --small] [--long] [--peers FOLDER | --no-peers] [--no-captum]

One run, one random-weight model, one prompt, one answer; one thread, processor seconds, least of a few repeats;
rows counted by a hook on the model's forward. Unit: a plain forward over prompt + answer with all logits, measured
in the same process. inseq and ContextCite run in an environment of their own (made here in a temporary folder, or
named with --peers); where they cannot be installed a sentence says so. `--large`: half a billion parameters in
bfloat16; `--small`: three million; `--long`: with a prompt of 4,000 tokens, and the peak of memory. The section goes
to bench/RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.attribution_case import (
    LARGE,
    SMALL,
    Counter,
    Shape,
    TextCase,
    cpu_seconds,
    make_case,
    make_model,
    make_tokenizer,
    plain_forward,
    save,
)
from bench.results import conditions, write_section
from engine.attribute.input_x_gradient import input_x_gradient
from engine.attribute.occlusion import occlusion
from engine.models.huggingface import HuggingFaceModel
from engine.models.scoring import score_rows
from engine.types import Answer, Prompt, Segment

PEERS = ("inseq", "context-cite")
FEW_TOKENS = 6  # answer tokens on which captum's default is measured


@dataclass(frozen=True)
class Row:
    """One line of the table: what ran, processor seconds, plain forwards it equals, rows through the model."""

    name: str
    seconds: float
    plain: float
    rows: float


@dataclass(frozen=True)
class Setup:
    """What every party is given, for the section's head."""

    shape: Shape
    parameters: int
    length: int


def prompt_of(case: TextCase) -> Prompt:
    passages = [Segment(kind="passage", text=text, number=n) for n, text in enumerate(case.passages, start=1)]
    return Prompt(
        segments=(
            Segment(kind="instruction", text=case.before),
            *passages,
            Segment(kind="question", text=case.after),
        )
    )


def measured(name: str, module: Any, plain: float, work: Callable[[], object], repeats: int = 3) -> Row:
    counter = Counter(module)
    seconds = cpu_seconds(work, repeats)
    counter.stop()
    return Row(name, seconds, seconds / plain, counter.rows / repeats)


def ours(model: HuggingFaceModel, case: TextCase, plain: float, repeats: int) -> list[Row]:
    prompt = prompt_of(case)
    answer = model.encode_answer(case.answer)
    answer = Answer(text=answer.text, tokens=answer.tokens)
    coded = model.encode(prompt)
    rows = [coded.ids, *(coded.without({n}).ids for n in prompt.numbers)]
    ids = [token.id for token in answer.tokens]
    module = model.module

    def plain_rows() -> object:
        return score_rows(module, rows, ids)

    whole = ((0, len(answer.text)),)
    return [
        measured(
            "input x gradient, whole answer", module, plain, lambda: input_x_gradient(model, prompt, answer), repeats
        ),
        measured(
            "leave-one-out", module, plain, lambda: occlusion(model, prompt, answer, spans=whole, floors=False), repeats
        ),
        measured("leave-one-out without prefix reuse", module, plain, plain_rows, repeats),
    ]


def exact_tops(model: HuggingFaceModel, cases: list[TextCase]) -> list[int]:
    tops = []
    for case in cases:
        result = occlusion(model, prompt_of(case), model.encode_answer(case.answer), floors=False)
        tops.append(int(np.argmax(result.scores[0])))
    return tops


def captum_rows(module: Any, tokenizer: Any, case: TextCase, plain: float) -> tuple[list[Row], list[str]]:
    from captum.attr import (
        FeatureAblation,
        LayerGradientXActivation,
        LLMAttribution,
        LLMGradientAttribution,
        TextTemplateInput,
        TextTokenInput,
    )

    count = len(case.passages)
    template = TextTemplateInput(case.before + "{}" * count + case.after, list(case.passages), [""] * count)
    one = TextTemplateInput("{}" + "".join((*case.passages[1:], case.after)), [case.passages[0]], [""])
    ablation = LLMAttribution(FeatureAblation(module), tokenizer)
    embedding = module.get_input_embeddings()
    gradient = LLMGradientAttribution(LayerGradientXActivation(module, embedding), tokenizer)
    answer = tokenizer(case.answer, return_tensors="pt")["input_ids"][0]
    # By default the prompt goes through the model again for every answer token, beside a cache that grows each time:
    # a few tokens and one passage are measured and scaled linearly, which is a lower bound.
    scale = (count + 1) / 2 * len(answer) / FEW_TOKENS
    works: tuple[tuple[str, float, Callable[[], object]], ...] = (
        (
            "captum LLMAttribution, forward_in_tokens=False",
            1.0,
            lambda: ablation.attribute(template, target=answer, forward_in_tokens=False),
        ),
        ("captum LLMAttribution, default", scale, lambda: ablation.attribute(one, target=answer[:FEW_TOKENS])),
        (
            "captum LLMGradientAttribution",
            1.0,
            lambda: gradient.attribute(TextTokenInput(case.prompt, tokenizer), target=answer),
        ),
    )
    rows, notes = [], []
    for name, factor, work in works:
        embedding.requires_grad_("Gradient" in name)
        try:
            row = measured(name, module, plain, work, 1)
            rows.append(Row(name, row.seconds * factor, row.plain * factor, row.rows * factor))
        except Exception as error:  # a peer that fails is a row of the table, not the end of the run
            notes.append(f"{name} failed: {type(error).__name__}: {str(error)[:200]}.")
        embedding.requires_grad_(False)
        print(rows[-1:], flush=True)
    notes.append(
        f"captum LLMAttribution by default was measured on {FEW_TOKENS} of {len(answer)} tokens and 2 of {count + 1} "
        "evaluations and scaled linearly; its cost grows faster, so its row is a lower bound. Under transformers 5 its "
        "values are wrong as well (the cached prompt is repeated); forward_in_tokens=False is exact."
    )
    return rows, notes


def peer_python(folder: Path | None) -> tuple[Path | None, str]:
    """The peers' interpreter, and why there is none."""
    if folder is not None:
        return folder / "bin" / "python", ""
    target = Path(tempfile.mkdtemp(prefix="groundwork-peers-"))
    venv.create(target, with_pip=True)
    python = target / "bin" / "python"
    wanted = [f"torch=={torch.__version__.split('+')[0]}", *PEERS]
    done = subprocess.run([python, "-m", "pip", "install", "-q", *wanted], capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        return None, f"inseq and context-cite could not be installed here and were left out: {last[0][:200]}."
    return python, ""


def peer_rows(python: Path, folder: Path, exact: list[int]) -> tuple[list[Row], list[str]]:
    script = Path(__file__).with_name("attribution_peers.py")
    done = subprocess.run([python, str(script), str(folder)], capture_output=True, text=True, check=False)
    if done.returncode:
        return [], [f"The peers' process failed: {done.stderr.strip()[-300:]}."]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    rows, notes = [], []
    for name in PEERS:
        result = found[name]
        if "error" in result:
            notes.append(f"{name} failed: {result['error']}.")
            continue
        rows.append(Row(name, result["seconds"], result["seconds"] / found["plain"], result["rows"]))
        if "top" in result:
            same = sum(a == b for a, b in zip(result["top"], exact, strict=True))
            notes.append(
                f"ContextCite's first passage is that of exact removal in {same} of {len(exact)} prompts; "
                "leave-one-out is exact removal."
            )
    return rows, notes


def table(rows: list[Row]) -> str:
    lines = ["| | processor s | plain forwards | rows through the model |", "|---|---|---|---|"]
    lines += [f"| {r.name} | {r.seconds:.2f} | {r.plain:.2f} | {r.rows:.0f} |" for r in rows]
    return "\n".join(lines)


def verdicts(rows: list[Row], passages: int) -> list[str]:
    """The ratios that are aimed at, each with its aim."""
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


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


def long_prompt(shape: Shape, tokenizer: Any, model: HuggingFaceModel, before: float) -> list[str]:
    """Time and peak memory with a prompt of about 4,000 tokens."""
    case = make_case(tokenizer, replace(shape, passages=10, passage_tokens=395))
    prompt, answer = prompt_of(case), model.encode_answer(case.answer)
    length = len(model.encode(prompt).ids)
    plain = cpu_seconds(lambda: score_rows(model.module, [model.encode(prompt).ids], [t.id for t in answer.tokens]), 1)
    one = peak_gigabytes()
    removal = cpu_seconds(lambda: occlusion(model, prompt, answer, floors=False), 1)
    both = peak_gigabytes()
    gradient = cpu_seconds(lambda: input_x_gradient(model, prompt, answer), 1)
    return [
        f"prompt of {length} tokens: one scoring forward {plain:.1f} s, leave-one-out {removal:.1f} s, "
        f"input x gradient {gradient:.1f} s",
        f"peak memory of the process: {before:.1f} GB with the model loaded, {one:.1f} GB after one scoring forward, "
        f"{both:.1f} GB after leave-one-out, {peak_gigabytes():.1f} GB after input x gradient (limit 24 GB)",
    ]


def report(setup: Setup, rows: list[Row], lines: list[str]) -> None:
    """Print the section and write it; called after each party, so that a run cut short leaves what it measured."""
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
    write_section({LARGE: "attribution-large", SMALL: "attribution-small"}.get(shape, "attribution"), text)


def main(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    shape = LARGE if arguments.large else SMALL if arguments.small else Shape()
    tokenizer, module = make_tokenizer(), make_model(shape)
    cases = [make_case(tokenizer, shape, seed) for seed in range(arguments.cases)]
    model = HuggingFaceModel("bench", module, tokenizer)
    length = len(model.encode(prompt_of(cases[0])).ids)
    setup = Setup(shape, sum(p.numel() for p in module.parameters()), length)
    plain = cpu_seconds(plain_forward(module, tokenizer, cases[0]))
    rows = [Row("plain forward, all logits", plain, 1.0, 1), *ours(model, cases[0], plain, 1 if arguments.large else 3)]
    notes: list[str] = []
    report(setup, rows, notes)
    if arguments.long:
        notes += long_prompt(shape, tokenizer, model, peak_gigabytes())
        report(setup, rows, notes)
    if not arguments.no_peers:
        found, said = with_peers(arguments.peers, model, tokenizer, cases)
        rows, notes = rows + found, notes + said
        report(setup, rows, notes)
    if not arguments.no_captum:
        found, said = captum_rows(module, tokenizer, cases[0], plain)
        report(setup, rows + found, notes + said)


def with_peers(
    folder: Path | None, model: HuggingFaceModel, tokenizer: Any, cases: list[TextCase]
) -> tuple[list[Row], list[str]]:
    """inseq and ContextCite on the same model and cases, from a folder that both sides read."""
    python, why = peer_python(folder)
    if python is None:
        return [], [why]
    with tempfile.TemporaryDirectory() as saved:
        save(Path(saved), model.module, tokenizer, cases)
        return peer_rows(python, Path(saved), exact_tops(model, cases))


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.attribution")
    parser.add_argument("--large", action="store_true", help="half a billion parameters, bfloat16")
    parser.add_argument("--small", action="store_true", help="three million parameters: all parties in a minute")
    parser.add_argument("--long", action="store_true", help="also a prompt of 4,000 tokens, with peak memory")
    parser.add_argument("--peers", type=Path, help="an environment that has inseq and context-cite")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--no-captum", action="store_true")
    parser.add_argument("--cases", type=int, default=3, help="prompts on which first passages are compared")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main(parse(sys.argv[1:]))
