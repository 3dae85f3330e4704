"""Trains the embedded language model on the CPU, from nothing or from earlier weights.

    python -m engine.train.language_model --minutes 90 --data DIR          # from nothing
    python -m engine.train.language_model --minutes 90 --from FOLDER       # goes on with a fresh optimiser

Optimisers: Muon for the matrices, AdamW for the rest. Curriculum: one more step (jobs.LEVELS) whenever the moving
losses of answers and of citations are under their thresholds. Left out: warm restarts of the optimiser state, several
devices.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import Lfm2ForCausalLM, PreTrainedTokenizerFast

from engine.train.architecture import Shape, load, new_model, save
from engine.train.batches import Batch, Sample, batches, encode
from engine.train.jobs import LEVELS, Job, Level, Mixture, easier, sample, vocabulary_texts
from engine.train.jobs_distractor import DISTRACTOR_JOBS
from engine.train.jobs_facts import FACT_JOBS
from engine.train.jobs_reason import REASON_JOBS
from engine.train.jobs_refine import REFINE_JOBS
from engine.train.losses import losses, training_heads
from engine.train.real_text import RealText, load_real_text
from engine.train.tokenizer import train_tokenizer

STAGES = (
    (0.7, Mixture(real=0.1, bare=0.2, short=0.1)),
    (0.3, Mixture(real=0.12, memory=0.03, short=0.1, unanswerable=0.1, jobs=0.25, alce=0.04)),
)  # share of the time, mixture: refusals and small jobs last, since refusals taught early are overused
JOBS = FACT_JOBS + REFINE_JOBS + REASON_JOBS + DISTRACTOR_JOBS


@dataclass(frozen=True)
class Recipe:
    """How it is trained; rates and threshold were measured on short runs."""

    minutes: float = 90.0
    batch_tokens: int = 5120
    matrix_rate: float = 0.02
    other_rate: float = 0.002
    warm_up: int = 40  # steps
    decay: float = 0.25  # last share of the time, over which the rates fall to a twentieth
    threshold: float = 0.08  # nats per answer token
    citation_threshold: float = 0.06  # nats per token of a marker, of which one or two are the number
    apart: int = 60  # first steps in which the training heads learn alone
    level: int = 0
    seed: int = 1
    save_every: float = 8.0  # minutes
    mixture: Mixture = field(default_factory=Mixture)


def optimisers(model: Lfm2ForCausalLM, heads: torch.nn.ModuleList, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon for the layers' matrices, AdamW for embeddings, norms and convolutions."""
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    matrices = [p for n, p in named if p.ndim == 2 and "embed" not in n]
    others = [p for n, p in named if p.ndim != 2 or "embed" in n] + list(heads.parameters())
    return [
        torch.optim.Muon(matrices, lr=recipe.matrix_rate, momentum=0.95, weight_decay=0.05),
        torch.optim.AdamW(others, lr=recipe.other_rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def set_rates(optims: Sequence[torch.optim.Optimizer], recipe: Recipe, factor: float) -> None:
    """Scale both rates."""
    for optim, rate in zip(optims, (recipe.matrix_rate, recipe.other_rate), strict=True):
        for group in optim.param_groups:
            group["lr"] = rate * factor


def rate_factor(step: int, elapsed: float, recipe: Recipe) -> float:
    """Warm-up by steps, constant, then linear decay by time to 0.05; `elapsed` is the share of the time used."""
    rising = min(1.0, (step + 1) / recipe.warm_up)
    falling = 1.0 if elapsed < 1 - recipe.decay else max(0.05, (1 - elapsed) / recipe.decay)
    return rising * falling


def samples(
    tokenizer: PreTrainedTokenizerFast,
    recipe: Recipe,
    log: dict[str, Any],
    text: RealText | None,
    jobs: Sequence[Job],
    rng: random.Random,
) -> Iterator[Sample]:
    """Endless encoded samples at the curriculum's present level, read from `log["level"]`."""
    while True:
        level: Level = LEVELS[log["level"]]
        yield encode(sample(level, easier(recipe.mixture, log["level"]), rng, text, jobs), tokenizer)


def train(
    model: Lfm2ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    recipe: Recipe,
    text: RealText | None = None,
    jobs: Sequence[Job] = (),
    out: Path | None = None,
    steps: int | None = None,
    report: bool = True,
) -> dict[str, Any]:
    """Train for `recipe.minutes` (or `steps`); return the log: steps, tokens, levels, moving losses (nats).

    The log and the weights are written to `out` every `recipe.save_every` minutes and at the end.
    """
    rng = random.Random(recipe.seed)
    log = new_log(recipe)
    step = stepper(model, recipe, log)
    source = samples(tokenizer, recipe, log, text, jobs, rng)
    start = saved = time.monotonic()
    model.train()
    for batch in endless(source, recipe, log, rng):
        elapsed = (time.monotonic() - start) / (60 * recipe.minutes)
        loss = step(batch, elapsed)
        if report and log["steps"] % 20 == 0:
            print(progress(log, loss, time.monotonic() - start), flush=True)
        done = elapsed >= 1 or (steps is not None and log["steps"] >= steps)
        if out is not None and (done or time.monotonic() - saved > 60 * recipe.save_every):
            save(model, tokenizer, out, log)
            saved = time.monotonic()
        if done:
            break
        advance(log, recipe)
    return log


def new_log(recipe: Recipe) -> dict[str, Any]:
    """What training keeps account of; `levels` lists [level, step, tokens] of every advance."""
    counts = {"steps": 0, "tokens": 0, "level": recipe.level, "since": 0}
    return {"recipe": asdict(recipe), **counts, "answer_loss": None, "citation_loss": None, "levels": []}


def endless(source: Iterator[Sample], recipe: Recipe, log: dict[str, Any], rng: random.Random) -> Iterator[Batch]:
    """Batches at the curriculum's level: when the level changes, what was drawn is dropped."""
    while True:
        level = log["level"]
        for batch in batches(source, recipe.batch_tokens, 8, rng):
            yield batch
            if log["level"] != level:
                break


def stepper(model: Lfm2ForCausalLM, recipe: Recipe, log: dict[str, Any]) -> Callable[[Batch, float], float]:
    """A function that takes one optimiser step on a batch, keeps the log, and returns the loss (nats)."""
    generator = torch.Generator().manual_seed(recipe.seed)
    heads = training_heads(model)
    optims = optimisers(model, heads, recipe)

    def step(batch: Batch, elapsed: float) -> float:
        set_rates(optims, recipe, rate_factor(log["steps"], elapsed, recipe))
        loss, answer, citation = losses(model, batch, generator, heads, log["steps"] < recipe.apart)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optim in optims:
            optim.step()
            optim.zero_grad(set_to_none=True)
        log["steps"] += 1
        log["since"] += 1
        log["tokens"] += int(batch.ids.size)
        log["answer_loss"] = moving_mean(log["answer_loss"], answer)
        log["citation_loss"] = moving_mean(log["citation_loss"], citation)
        return float(loss.detach())

    return step


def advance(log: dict[str, Any], recipe: Recipe) -> None:
    """Go to the curriculum's next level where answers and citations are learned, at the earliest after 40 steps."""
    if log["since"] > 40 and ready(log, recipe) and log["level"] + 1 < len(LEVELS):
        log["level"] += 1
        log["since"] = 0
        log["levels"].append([log["level"], log["steps"], log["tokens"]])


def moving_mean(mean: float | None, new: float) -> float | None:
    """Exponential mean over about 25 steps; NaN (a batch without a counted answer) changes nothing."""
    if new != new:
        return mean
    return new if mean is None else mean + (new - mean) / 25


def ready(log: dict[str, Any], recipe: Recipe) -> bool:
    """Whether the curriculum goes on: answers and citations both learned."""
    known = [loss if loss is not None else 9.0 for loss in (log["answer_loss"], log["citation_loss"])]
    return known[0] < recipe.threshold and known[1] < recipe.citation_threshold


def progress(log: dict[str, Any], loss: float, seconds: float) -> str:
    """One line of the training log."""
    rate = log["tokens"] / seconds
    return (
        f"{seconds / 60:6.1f} min  step {log['steps']}  {log['tokens'] / 1e6:.2f} M tokens  {rate:.0f}/s  "
        f"level {log['level']}  loss {loss:.3f}  answers {log['answer_loss'] or 0:.3f}  "
        f"citations {log['citation_loss'] or 0:.3f}"
    )


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train the embedded language model on the CPU.")
    parser.add_argument("--minutes", type=float, default=90.0)
    parser.add_argument("--from", dest="start", type=Path, help="folder of weights to go on from")
    parser.add_argument("--data", type=Path, help="folder with the public sets (nq_gold_passage, clapnq, vitaminc)")
    parser.add_argument("--out", type=Path, default=Path("language_model"))
    parser.add_argument("--level", type=int, default=0, help="first step of the curriculum")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch-tokens", type=int, default=Recipe.batch_tokens)
    for name in asdict(Mixture()):
        parser.add_argument(f"--{name}", type=float, help="share of the samples; giving any replaces the two stages")
    return parser.parse_args(arguments)


def stages(options: argparse.Namespace) -> tuple[tuple[float, Mixture], ...]:
    """Shares of the time and mixtures: those of the command line, else answering first and the other jobs after."""
    given = {name: getattr(options, name) for name in asdict(Mixture()) if getattr(options, name) is not None}
    return ((1.0, Mixture(**given)),) if given else STAGES


def main(arguments: Sequence[str] | None = None) -> None:
    """Train stage by stage and save."""
    options = parse(arguments)
    torch.set_num_threads(options.threads)
    text = load_real_text(options.data) if options.data else None
    if options.start:
        model, tokenizer = load(options.start)
    else:
        tokenizer = train_tokenizer(vocabulary_texts(text))
        model = new_model(Shape(), options.seed)
    level = options.level
    for number, (share, mixture) in enumerate(stages(options)):
        minutes = options.minutes * share
        recipe = Recipe(minutes, options.batch_tokens, level=level, seed=options.seed + number, mixture=mixture)
        level = train(model, tokenizer, recipe, text, JOBS, options.out)["level"]


if __name__ == "__main__":
    main()
