"""Critique and revision for the embedded model (grounded refinement: variants D, E and v2).

A draft is one or two cited sentences; a sound draft gets "No fault found.", a draft with a wrong value or a wrong
citation gets the passage that says otherwise, and the revision is the sentence of that passage.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from engine.answer.prompt import MARKERS
from engine.prompts import fill
from engine.train.jobs import Job, Level, Piece, answering_prompt, difficulty_of, pick_passages
from engine.train.world_values import value
from engine.train.worlds import Asked, Example, answering_example, make_world

SOUND = "No fault found."


@dataclass(frozen=True)
class Draft:
    """An example with a draft answer, what is wrong with it, and the answer that is right."""

    example: Example
    question: str
    draft: str
    critique: str
    revised: str


def draft_of(level: Level, rng: random.Random) -> Draft:
    """A third each: sound, wrong value, wrong citation (wrong value where there is one passage)."""
    count, difficulty = pick_passages(level, rng), difficulty_of(level, rng)
    example = answering_example(make_world(rng, count, 2, difficulty), count, rng, difficulty)
    asked = example.asked[0]
    right = f"{asked.sentence} {MARKERS['garage'].format(asked.passage)}"
    fault = rng.choice(("none", "value", "citation"))
    if fault == "none":
        return Draft(example, asked.question, right, SOUND, right)
    wrong, said = faulty(asked, example, fault, rng)
    return Draft(example, asked.question, wrong, f"Passage {asked.passage} says: {asked.sentence}{said}", right)


def faulty(asked: Asked, example: Example, fault: str, rng: random.Random) -> tuple[str, str]:
    """The draft with its fault, and what the critique adds about a citation."""
    others = [n for n in example.numbers if n != asked.passage]
    if fault == "citation" and others:
        other = rng.choice(others)
        return f"{asked.sentence} {MARKERS['garage'].format(other)}", f" Passage {other} does not say so."
    new = re.sub(r"\d", lambda _: str(rng.randint(1, 9)), asked.value)
    if new == asked.value:
        new = value(rng.choice(("person", "goods", "city", "material")), rng, 2)
    start = asked.sentence.lower().find(asked.value.lower())
    sentence = asked.sentence[:start] + new + asked.sentence[start + len(asked.value) :]
    return f"{sentence[:1].upper()}{sentence[1:]} {MARKERS['garage'].format(asked.passage)}", ""


def passages_of(example: Example) -> list[Piece]:
    """The passage segments of the prompt of use."""
    prompt = answering_prompt("", example.passages, example.numbers)
    return [Piece(s.text, "prompt") for s in prompt.segments if s.kind == "passage"]


def critique_job(level: Level, rng: random.Random) -> list[Piece]:
    """Passages, question, draft -> critique."""
    made = draft_of(level, rng)
    ask = Piece(fill("critique_draft", question=made.question, draft=made.draft), "prompt")
    pieces = [Piece(fill("critique"), "prompt"), *passages_of(made.example), ask]
    return [*pieces, Piece(made.critique, "real"), Piece("", "end")]


def revise_job(level: Level, rng: random.Random) -> list[Piece]:
    """Passages, question, draft, critique -> revised answer."""
    made = draft_of(level, rng)
    instruction = Piece(fill("revise", marker=MARKERS["garage"].format(1)), "prompt")
    ask = fill("revise_draft", question=made.question, draft=made.draft, critique=made.critique)
    pieces = [instruction, *passages_of(made.example), Piece(ask, "prompt")]
    return [*pieces, Piece(made.revised, "real"), Piece("", "end")]


REFINE_JOBS: tuple[Job, ...] = (critique_job, revise_job)
