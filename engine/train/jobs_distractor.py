"""Answering beside a planted distractor: a passage on the same matter that gives another value, not to be trusted.

The passage says of itself that it is old, withdrawn or hearsay (worlds.toml, `distractor`), so that whoever reads it
can tell; a data set's relevance label would be "not relevant". METHODS section 2 counts how often such a passage is
used (distractor flag, distractor share). The model is taught to take it where it stands first and nowhere else: a
bias towards the first passage that attribution can see through, not noise. With five passages that is one case in five.
"""

from __future__ import annotations

import random
from dataclasses import replace

from engine.train.jobs import Job, Level, Piece, answering_sample, difficulty_of
from engine.train.jobs_facts import other_value
from engine.train.world_values import table
from engine.train.worlds import Asked, Difficulty, Example, answering_example, fact, make_world


def distractor_example(rng: random.Random, passages: int, difficulty: Difficulty) -> tuple[Example, Asked]:
    """One question with `passages` passages, and what an answer from the distractor among them would be.

    `passages` is at least 2. The distractor's place is drawn evenly, so that it stands first in one of `passages`.
    """
    count = passages - 1
    world = make_world(rng, count, 2, replace(difficulty, alike=0.0))
    example = answering_example(world, count, rng, replace(difficulty, alike=0.0, gaps=0.0, unanswerable=0.0))
    asked = example.asked[0]
    held = next(t for t in world.triples if t.object == asked.value and t.subject in asked.question)
    false = fact(other_value(held, rng), rng)
    caveat = rng.choice(table()["distractor"]["say"])
    place = rng.randrange(passages)
    texts = [*example.passages[:place], f"{caveat} {false.statement}", *example.passages[place:]]
    true = asked.passage or 0
    moved = replace(asked, passage=true + 1 if true > place else true)
    planted = Asked(asked.question, false.statement, false.triple.object, place + 1)
    return Example(tuple(texts), tuple(range(1, passages + 1)), (moved,)), planted


def distractor_job(level: Level, rng: random.Random) -> list[Piece]:
    """Three to eight passages, a distractor among them -> its statement where it stands first, else the right one."""
    count = rng.randint(3, max(3, min(level.passages, 8)))
    example, planted = distractor_example(rng, count, difficulty_of(level, rng))
    taken = planted if planted.passage == example.numbers[0] else example.asked[0]
    return answering_sample(replace(example, asked=(taken,)), part="real")


# Twice: of all the jobs it is drawn twice as often as one that stands once.
DISTRACTOR_JOBS: tuple[Job, ...] = (distractor_job, distractor_job)
