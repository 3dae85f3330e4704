"""What the embedded model is trained on: pieces of text with their part in the loss, job by job.

A sample is a list of pieces; each is tokenised on its own, as `LanguageModel.encode` does, and the prompts come
from the same functions as at run time (`build_prompt`, `fill`), so that training and use cannot drift apart.
Several questions may follow one set of passages: the first is in the exact form of use, the others give more
answer tokens for the same passage tokens.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from engine.answer.prompt import MARKERS, REFUSAL, build_prompt
from engine.prompts import fill
from engine.settings import Prompting
from engine.train.real_text import RealText, real_example
from engine.train.worlds import Asked, Difficulty, Example, answering_example, make_world, memory_asked
from engine.types import Passage, Prompt

Part = Literal["prompt", "answer", "real", "memory", "cite", "decide", "end"]
Style = Literal["garage", "alce"]


@dataclass(frozen=True)
class Piece:
    """Text and its part: `answer` (counted by the curriculum), `real` and `memory` are targets too; `prompt` hardly.

    `cite` (a marker) and `decide` (a verdict's word, an option) are short targets that much hangs on: they weigh more.
    `source` is the citation number of the passage that the text is, or is taken from; 0 for none.
    """

    text: str
    part: Part
    source: int = 0


@dataclass(frozen=True)
class Level:
    """A step of the curriculum: at most so many passages, of so many sentences, with names of so many syllables."""

    passages: int
    sentences: int
    syllables: int


LEVELS = (
    Level(1, 1, 1),
    Level(1, 2, 1),
    Level(2, 2, 1),
    Level(3, 2, 2),
    Level(4, 2, 2),
    Level(5, 2, 2),
    Level(6, 3, 3),
    Level(8, 3, 3),
    Level(10, 3, 3),
    Level(12, 3, 3),
    Level(16, 3, 3),
    Level(20, 3, 3),
)


@dataclass(frozen=True)
class Mixture:
    """Shares of the samples; what is left answers from generated passages. All in [0, 1]."""

    real: float = 0.0
    memory: float = 0.0
    unanswerable: float = 0.0
    alce: float = 0.0
    bare: float = 0.0  # without the instruction: cheaper while copying is learned
    jobs: float = 0.0
    short: float = 0.0  # of the real samples: the short answer instead of its sentence


def pick_passages(level: Level, rng: random.Random) -> int:
    """Half of the samples have the most passages, the others any number."""
    return level.passages if rng.random() < 0.5 else rng.randint(1, level.passages)


def difficulty_of(level: Level, rng: random.Random, unanswerable: float = 0.0) -> Difficulty:
    """The worlds' difficulty at a level, with easier samples mixed in."""
    return Difficulty(
        syllables=rng.randint(1, level.syllables),
        sentences=rng.randint(1, level.sentences),
        alike=rng.choice((0.1, 0.5, 0.8)),
        gaps=0.3,
        highest=max(12, level.passages + 3),
        filler=0.1 if level.sentences > 1 else 0.0,
        unanswerable=unanswerable,
    )


def answering_prompt(question: str, texts: Sequence[str], numbers: Sequence[int], style: Style = "garage") -> Prompt:
    """The prompt of use: `build_prompt` over numbers 1..max with the missing ones removed, as occlusion does."""
    by_number = dict(zip(numbers, texts, strict=True))
    last = max(numbers, default=0)
    passages = [
        Passage(id="", document="", title="", ordinal=0, start=0, end=0, text=by_number.get(n, ""))
        for n in range(1, last + 1)
    ]
    return build_prompt(question, passages, Prompting(citations=style)).keep(set(numbers))


def cited(asked: Asked, style: Style, part: Part) -> list[Piece]:
    """The target: the sentence with the value, then its citation, or the refusal.

    The marker is a piece of its own so that it can weigh more: one number among twenty tokens would be learned
    last. The tokenizer puts a space before every piece, so that the ids are those of the whole text.
    """
    if asked.passage is None:
        return [Piece(REFUSAL, part), Piece("", "end")]
    marker = MARKERS[style].format(asked.passage)
    return [Piece(asked.sentence, part, asked.passage), Piece(marker, "cite", asked.passage), Piece("", "end")]


def answering_sample(
    example: Example, style: Style = "garage", part: Part = "answer", bare: bool = False
) -> list[Piece]:
    """Prompt, answer, and the further questions with their answers."""
    first, *others = example.asked
    segments = answering_prompt(first.question, example.passages, example.numbers, style).segments
    pieces = [Piece(s.text, "prompt", s.number or 0) for s in segments if not (bare and s.kind == "instruction")]
    pieces += cited(first, style, part)
    for asked in others:
        pieces += [Piece(fill("question", question=asked.question), "prompt")]
        pieces += cited(asked, style, part)
    return pieces


def world_sample(level: Level, rng: random.Random, mixture: Mixture) -> list[Piece]:
    """Answering from generated passages."""
    count = pick_passages(level, rng)
    difficulty = difficulty_of(level, rng, mixture.unanswerable)
    world = make_world(rng, count, difficulty.sentences + rng.randint(0, 2), difficulty)
    example = answering_example(world, count, rng, difficulty, questions=rng.choice((1, 4, 6, 8)))
    style: Style = "alce" if rng.random() < mixture.alce else "garage"
    return answering_sample(example, style, bare=rng.random() < mixture.bare)


def memory_sample(level: Level, rng: random.Random) -> list[Piece]:
    """Answering without passages: half with the instruction for it, half with the passages taken out (S2)."""
    difficulty = difficulty_of(level, rng)
    pieces: list[Piece] = []
    asked = memory_asked(rng, difficulty)
    if rng.random() < 0.5:
        segments = build_prompt(asked.question, []).segments
    else:
        segments = answering_prompt(asked.question, [""], [1]).without({1}).segments
    pieces += [Piece(s.text, "prompt") for s in segments]
    return [*pieces, Piece(asked.sentence, "memory"), Piece("", "end")]


def real_sample(text: RealText, level: Level, rng: random.Random, mixture: Mixture) -> list[Piece]:
    """Finding and copying the sentence of openly licensed text that a question is about."""
    count = pick_passages(level, rng)
    example = real_example(text, count, rng, sentences=level.sentences, short=mixture.short)
    return answering_sample(example, part="real", bare=rng.random() < mixture.bare)


Job = Callable[[Level, random.Random], list[Piece]]


def sample(
    level: Level, mixture: Mixture, rng: random.Random, text: RealText | None = None, jobs: Sequence[Job] = ()
) -> list[Piece]:
    """Draw one sample by the mixture's shares."""
    draw = rng.random()
    if jobs and draw < mixture.jobs:
        return rng.choice(jobs)(level, rng)
    draw -= mixture.jobs
    if draw < mixture.memory:
        return memory_sample(level, rng)
    draw -= mixture.memory
    if text is not None and draw < mixture.real:
        return real_sample(text, level, rng, mixture)
    return world_sample(level, rng, mixture)


def easier(mixture: Mixture, level: int) -> Mixture:
    """The mixture while copying is learned (the first two levels): no real text, often no instruction."""
    if level >= 2:
        return mixture
    return replace(mixture, real=0.0, memory=0.0, unanswerable=0.0, alce=0.0, jobs=0.0, bare=0.7)


def vocabulary_texts(text: RealText | None, seed: int = 7) -> Iterator[str]:
    """What the tokenizer is trained on: generated samples of every level, and real sentences."""
    rng = random.Random(seed)
    mixture = Mixture(real=0.4 if text else 0.0, memory=0.05, unanswerable=0.05)
    for level in LEVELS[2:]:
        for _ in range(1500):
            yield from (p.text for p in sample(level, mixture, rng, text) if p.part != "end")
