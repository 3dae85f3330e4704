"""ARE's jobs for the embedded model: clauses, facts, verdicts, edits, search phrases (METHODS section 3).

Each job is a prompt of one segment from engine/prompts and the reply that its parser reads. Verdicts come in the
three classes in equal shares; a fact of which the evidence bears out one part only is irrelevant (ARE, A.3).
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from engine.prompts import fill
from engine.train.jobs import Job, Level, Piece, difficulty_of
from engine.train.world_values import table, value
from engine.train.worlds import Fact, Triple, fact, make_world, passage, wordings

AGREES, DISAGREES, IRRELEVANT = "agrees", "disagrees", "irrelevant"
JOINS = (", and ", "; ", ", while ", ", but ")


def job_sample(prompt: str, reply: str, decision: str = "") -> list[Piece]:
    """A prompt of one segment and its reply; see `target`."""
    return [Piece(prompt, "prompt"), *target(reply, decision)]


def target(reply: str, decision: str = "") -> list[Piece]:
    """A reply and its end; `decision` is the last of it, a word that all hangs on and that weighs more."""
    decided = [Piece(decision, "decide")] if decision else []
    return [Piece(reply, "real"), *decided, Piece("", "end")]


def facts_on_one(level: Level, rng: random.Random, count: int) -> list[Fact]:
    """Up to `count` facts on one subject."""
    world = make_world(rng, 1, count, difficulty_of(level, rng))
    return [fact(t, rng) for t in world.triples]


def lower_pronoun(text: str) -> str:
    """A statement as a later clause: "It is ..." becomes "it is ...", without the full stop."""
    bare = text.removesuffix(".")
    return "it " + bare[3:] if bare.startswith("It ") else bare


def joined(facts: Sequence[Fact], rng: random.Random) -> tuple[str, list[str]]:
    """One sentence of one or two facts, and its clauses, verbatim."""
    first = facts[0].statement.removesuffix(".")
    if len(facts) == 1:
        return first + ".", [first]
    second = lower_pronoun(facts[1].pronoun)
    return f"{first}{rng.choice(JOINS)}{second}.", [first, second]


def text_of(facts: Sequence[Fact], rng: random.Random) -> tuple[str, list[tuple[str, Fact]]]:
    """A text of one to three sentences with each clause and the fact that it states."""
    sentences: list[str] = []
    clauses: list[tuple[str, Fact]] = []
    rest = list(facts)
    while rest:
        group = rest[: rng.randint(1, 2)]
        rest = rest[len(group) :]
        sentence, parts = joined(group, rng)
        sentences.append(sentence)
        clauses += list(zip(parts, group, strict=True))
    return " ".join(sentences), clauses


def clauses_job(level: Level, rng: random.Random) -> list[Piece]:
    """Text -> its clauses, verbatim, one a line."""
    text, clauses = text_of(facts_on_one(level, rng, rng.randint(1, 4)), rng)
    return job_sample(fill("clauses", text=text), "\n".join(clause for clause, _ in clauses))


def facts_job(level: Level, rng: random.Random) -> list[Piece]:
    """Clause in its text -> facts with the name in place of the pronoun; a clause of two facts gives two."""
    facts = facts_on_one(level, rng, rng.randint(1, 3))
    if len(facts) > 1 and rng.random() < 0.3:
        text, _ = joined(facts[:2], rng)
        clause, reply = text.removesuffix("."), [f.statement for f in facts[:2]]
    else:
        text, clauses = text_of(facts, rng)
        clause, stated = rng.choice(clauses)
        reply = [stated.statement]
    return job_sample(fill("facts", text=text, clause=clause), "\n".join(reply))


def value_kind(triple: Triple) -> str:
    """The type of a triple's object."""
    if triple.kind != "generic":
        return str(table()[triple.kind][triple.relation]["value"])
    general = table()["generic"]
    return next(kind for kind in ("number", "word", "person") if triple.relation in general[kind])


def other_value(triple: Triple, rng: random.Random) -> Triple:
    """The same subject and relation with another object of the same type; a number keeps its unit."""
    while True:
        kind = value_kind(triple)
        new = (
            re.sub(r"\d", lambda _: str(rng.randint(1, 9)), triple.object) if kind == "number" else value(kind, rng, 2)
        )
        if new != triple.object:
            return Triple(triple.subject, triple.kind, triple.relation, new)


def claim_and_evidence(level: Level, rng: random.Random, verdict: str) -> tuple[Fact, str, Fact]:
    """A claim, evidence for the verdict, and the fact that the evidence states on the claim's subject."""
    known = facts_on_one(level, rng, 3)
    held, *others = known
    if verdict == IRRELEVANT and others:
        evidence = passage(others[:2], rng, difficulty_of(level, rng))
        return held, evidence, others[0]
    triple = held.triple if verdict == AGREES else other_value(held.triple, rng)
    evidence = passage([held, *others[: rng.randint(0, 1)]], rng, difficulty_of(level, rng))
    return fact(triple, rng), evidence, held


def verdict_job(level: Level, rng: random.Random) -> list[Piece]:
    """Fact and evidence -> what each of them gives, side by side so that they can be compared; the verdict's word."""
    verdict = rng.choice((AGREES, DISAGREES, IRRELEVANT))
    claim, evidence, held = claim_and_evidence(level, rng, verdict)
    given = f"The fact gives {claim.triple.object}, the evidence gives {held.triple.object}."
    reason = "The evidence does not speak of this." if verdict == IRRELEVANT else given
    prompt = fill("verdict", context=claim.statement, fact=claim.statement, evidence=evidence)
    return job_sample(prompt, f"{reason}\n", verdict)


def edit_job(level: Level, rng: random.Random) -> list[Piece]:
    """A fact that the evidence contradicts -> what is wrong, then the fact with that value replaced."""
    facts = facts_on_one(level, rng, 2)
    wrong, held = other_value(facts[0].triple, rng), facts[0]
    template = rng.choice(wordings(wrong)[0])
    claim = sentence(template, wrong)
    fixed = sentence(template, held.triple)
    evidence = passage(facts[: rng.randint(1, 2)], rng, difficulty_of(level, rng))
    reply = f"{wrong.object} should be {held.triple.object}.\n{fixed}"
    return job_sample(fill("edit", fact=claim, evidence=evidence), reply)


def sentence(template: str, triple: Triple) -> str:
    """A template filled, its first letter in upper case."""
    text = template.format(s=triple.subject, o=triple.object)
    return text[:1].upper() + text[1:]


def expand_job(level: Level, rng: random.Random) -> list[Piece]:
    """A fact -> two search phrases: the subject with its relation, and a question's words."""
    stated = facts_on_one(level, rng, 1)[0]
    relation = stated.triple.relation.replace("_", " ")
    phrases = f"{relation} of {stated.triple.subject}\n{stated.triple.subject} {relation}"
    return job_sample(fill("expand", fact=stated.statement), phrases)


# What stands twice is drawn twice as often.
FACT_JOBS: tuple[Job, ...] = (clauses_job, facts_job, verdict_job, verdict_job, edit_job, edit_job, expand_job)
