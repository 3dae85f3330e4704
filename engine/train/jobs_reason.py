"""RAISE's jobs for the embedded model: sub-questions, logical queries, sub-answers, final answers (METHODS section 4).

A problem joins two facts of a generated world: the first one's object is the second one's subject ("When was the
owner of Velcor Ltd born?"). Half of the problems have four options. The prompts are those of engine/reason, so that
training and use cannot drift apart. Left out: problems that need arithmetic or more than two facts.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from engine.reason.decompose import decompose_prompt
from engine.reason.logical_query import logical_query_prompt
from engine.reason.options import Problem, letter
from engine.reason.sub_answer import final_answer_prompt, sub_answer_prompt
from engine.reason.values import Asked, ReasonStep, Search, SubQuestion
from engine.train.jobs import Job, Level, Piece, difficulty_of, pick_passages
from engine.train.jobs_facts import other_value, target, value_kind
from engine.train.world_values import relations, table, value
from engine.train.worlds import Fact, Triple, fact, make_world, passage, wordings
from engine.types import Hit, Passage, Prompt

JOINS = ("person", "company", "city")  # kinds of subject that are values of other facts


@dataclass(frozen=True)
class Chain:
    """A problem with its two steps: sub-questions, the facts that answer them, and the index of the right option."""

    problem: Problem
    subs: tuple[SubQuestion, SubQuestion]
    facts: tuple[Fact, Fact]
    correct: int | None


def chain_of(level: Level, rng: random.Random) -> Chain:
    """Two facts, the second on the first one's object."""
    while True:
        first = make_world(rng, 1, 1, difficulty_of(level, rng)).triples[0]
        if value_kind(first) in JOINS:
            break
    kind = value_kind(first)
    relation = rng.choice(relations()[kind])
    second = Triple(first.object, kind, relation, value(table()[kind][relation]["value"], rng, level.syllables))
    told = fact(first, rng), fact(second, rng)
    middle = f"the {words(first)} of {named(first)}"
    question = rng.choice(wordings(second)[1]).format(s=middle, o="")
    subs = (
        SubQuestion(question=told[0].question, query=f"{words(first)} of {named(first)}"),
        SubQuestion(question=question, query=f"{words(second)} of {middle}"),
    )
    options, correct = options_of(second, rng) if rng.random() < 0.5 else ((), None)
    return Chain(Problem(question=question, options=options), subs, told, correct)


def words(triple: Triple) -> str:
    """The relation as words."""
    return triple.relation.replace("_", " ")


def named(triple: Triple) -> str:
    """The subject as running text names it."""
    return f"account {triple.subject}" if triple.kind == "account" else triple.subject


def options_of(triple: Triple, rng: random.Random) -> tuple[tuple[str, ...], int]:
    """Four different values of one type, and where the right one stands."""
    found = {triple.object}
    while len(found) < 4:
        found.add(other_value(triple, rng).object)
    shuffled = rng.sample(sorted(found), 4)
    return tuple(shuffled), shuffled.index(triple.object)


def step_of(chain: Chain, index: int, texts: Sequence[str] = (), reply: str = "") -> ReasonStep:
    """Step 1 or 2 of the chain, with what was retrieved for it and its answer."""
    passages = [
        Passage(id=str(n), document="", title="", ordinal=0, start=0, end=0, text=text) for n, text in enumerate(texts)
    ]
    hits = tuple(Hit(passage=p, score=1.0, parts={"dense": 1.0}) for p in passages)
    prompt = Prompt(segments=())
    asked = Asked(purpose="sub-answer", prompt=prompt, reply=reply, read=0, written=0, seconds=0.0) if reply else None
    sub = chain.subs[index]
    search = Search(kind="logical query", text="", hits=hits)
    return ReasonStep(number=index + 1, question=sub.question, query=sub.query, search=search, asked=asked)


def pieces_of(prompt: Prompt, reply: str, decision: str = "") -> list[Piece]:
    """The prompt's segments, then the reply; `decision` is the end of it that all hangs on."""
    pieces = [Piece(segment.text, "prompt", segment.number or 0) for segment in prompt.segments]
    return [*pieces, *target(reply, decision)]


def sub_questions_job(level: Level, rng: random.Random) -> list[Piece]:
    """Problem -> `question | query`, a line a step."""
    chain = chain_of(level, rng)
    reply = "\n".join(f"{sub.question} | {sub.query}" for sub in chain.subs)
    return pieces_of(decompose_prompt(chain.problem), reply)


def logical_query_job(level: Level, rng: random.Random) -> list[Piece]:
    """Sub-question and query -> what a passage that helps would speak of."""
    chain = chain_of(level, rng)
    index = rng.randrange(2)
    relation = words(chain.facts[index].triple)
    subject = named(chain.facts[0].triple) if index == 0 else chain.subs[1].query.split(" of ", 1)[1]
    reply = f"The {relation} of {subject} follows from a record of {subject}. Such a record names the {relation}."
    return pieces_of(logical_query_prompt(chain.subs[index]), reply)


def sub_answer_job(level: Level, rng: random.Random) -> list[Piece]:
    """Problem, earlier step, passages -> the sentence that answers the sub-question."""
    chain = chain_of(level, rng)
    index = rng.randrange(2)
    difficulty = difficulty_of(level, rng)
    others = make_world(rng, max(1, min(pick_passages(level, rng), 5) - 1), 2, difficulty)
    texts = [passage([fact(t, rng) for t in others.about(s)], rng, difficulty) for s in others.subjects()]
    texts.append(chain.facts[index].statement)
    rng.shuffle(texts)
    earlier = [step_of(chain, 0, reply=chain.facts[0].statement)] if index else []
    prompt = sub_answer_prompt(chain.problem, earlier, step_of(chain, index, texts))
    return pieces_of(prompt, chain.facts[index].statement)


def final_answer_job(level: Level, rng: random.Random) -> list[Piece]:
    """Problem and both steps -> the second step's fact, and the option or value."""
    chain = chain_of(level, rng)
    steps = [step_of(chain, i, reply=chain.facts[i].statement) for i in (0, 1)]
    stated = chain.facts[1]
    said = stated.triple.object if chain.correct is None else f"({letter(chain.correct)})"
    reply = f"{stated.statement} The final answer is"
    return pieces_of(final_answer_prompt(chain.problem, steps), reply, f" {said}")


REASON_JOBS: tuple[Job, ...] = (sub_questions_job, logical_query_job, sub_answer_job, final_answer_job)
