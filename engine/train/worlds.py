"""Generated worlds: triples -> atomic facts -> varied text -> questions with cited answers (ARE, appendix C).

A world is a list of triples (subject, relation, object). Every triple has several wordings as a statement and
several as a question (worlds.toml); a relation that the table does not know gets the general wordings, so that
`World.of(triples)` works on anybody's own knowledge graph:

    world = World.of([("Velcor", "boiling point", "43 °C"), ("Velcor", "supplier", "Orvel Ltd")])
    example = answering_example(world, passages=2, rng=random.Random(0))

Names are made of syllables and values come from short lists or are random numbers, so nothing can be known from
elsewhere: whoever answers must have read the passages. Left out: ARE's filtering of language-model output
(C.4), because no language model writes here.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from engine.train.world_values import NAMES, generic_relation, relations, table, value, word


@dataclass(frozen=True)
class Triple:
    """One fact: `kind` says which wordings fit the subject ("generic": any), `relation` which of them."""

    subject: str
    kind: str
    relation: str
    object: str


@dataclass(frozen=True)
class Fact:
    """A triple as text: the full statement, and the same with the subject as "It" where that reads well."""

    triple: Triple
    statement: str
    pronoun: str
    question: str


@dataclass(frozen=True)
class World:
    """The triples of one world; subjects are distinct."""

    triples: tuple[Triple, ...]

    @classmethod
    def of(cls, triples: Sequence[tuple[str, str, str]]) -> World:
        """A world from plain (subject, relation, object) triples with the general wordings."""
        return cls(triples=tuple(Triple(s, "generic", r, o) for s, r, o in triples))

    def subjects(self) -> list[str]:
        """The subjects in the order in which they come."""
        return list(dict.fromkeys(t.subject for t in self.triples))

    def about(self, subject: str) -> list[Triple]:
        """The triples of one subject."""
        return [t for t in self.triples if t.subject == subject]


@dataclass(frozen=True)
class Asked:
    """A question with what the right answer is: sentence, value, and the passage that holds it (None: no passage)."""

    question: str
    sentence: str
    value: str
    passage: int | None


@dataclass(frozen=True)
class Example:
    """Passages with citation numbers, and questions on them; `numbers[i]` belongs to `passages[i]`."""

    passages: tuple[str, ...]
    numbers: tuple[int, ...]
    asked: tuple[Asked, ...]


@dataclass(frozen=True)
class Difficulty:
    """How hard the worlds are.

    `syllables`: of a name; `sentences`: most of a passage; `alike`: share of passages that speak of another
    subject by the same relations; `gaps`: share of prompts whose citation numbers are not 1..n; `highest`: the
    largest citation number; `pronouns`: share of a passage's later facts that say "It"; `filler`: chance of a sentence
    that says nothing, after each fact; `unanswerable`: share of questions that the passages do not answer.
    """

    syllables: int = 2
    sentences: int = 1
    alike: float = 0.3
    gaps: float = 0.3
    highest: int = 12
    pronouns: float = 0.3
    filler: float = 0.1
    unanswerable: float = 0.0


def subject_triples(rng: random.Random, kind: str, facts: int, syllables: int) -> list[Triple]:
    """`facts` triples with different relations on one new subject."""
    name = NAMES.get(kind, word)(rng, syllables)
    if kind == "generic":
        pairs = dict(generic_relation(rng, syllables) for _ in range(facts))
        return [Triple(name, kind, r, o) for r, o in pairs.items()]
    known = relations()[kind]
    chosen = rng.sample(known, min(facts, len(known)))
    return [Triple(name, kind, r, value(table()[kind][r]["value"], rng, syllables)) for r in chosen]


def make_world(rng: random.Random, subjects: int, facts: int, difficulty: Difficulty) -> World:
    """A world of `subjects` subjects with `facts` facts each.

    A share `alike` of the subjects repeats the kind of the one before, so that a question's relation fits more
    than one subject.
    """
    kinds = [*relations(), *["generic"] * 6]
    triples: list[Triple] = []
    kind, seen = rng.choice(kinds), set[str]()
    while len(seen) < subjects:
        kind = kind if rng.random() < difficulty.alike else rng.choice(kinds)
        new = subject_triples(rng, kind, facts, difficulty.syllables)
        if new[0].subject not in seen:
            seen.add(new[0].subject)
            triples += new
    return World(triples=tuple(triples))


def wordings(triple: Triple) -> tuple[list[str], list[str]]:
    """Statement and question templates of a triple with the relation already filled in."""
    known = table().get(triple.kind, {}).get(triple.relation) if triple.kind != "generic" else None
    if known:
        return known["say"], known["ask"]
    general = table()["generic"]
    return [t.replace("{r}", triple.relation) for t in general["say"]], [
        t.replace("{r}", triple.relation) for t in general["ask"]
    ]


def fact(triple: Triple, rng: random.Random) -> Fact:
    """One wording of a triple."""
    say, ask = wordings(triple)
    template = rng.choice(say)
    statement = capital(template.format(s=triple.subject, o=triple.object))
    simple = triple.kind not in ("person",) and template.startswith(("{s} ", "The {s} "))
    rest = template.partition("{s} ")[2]
    pronoun = "It " + rest.format(s=triple.subject, o=triple.object) if simple else statement
    return Fact(triple, statement, pronoun, rng.choice(ask).format(s=triple.subject, o=triple.object))


def capital(text: str) -> str:
    """The text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def passage(facts: Sequence[Fact], rng: random.Random, difficulty: Difficulty) -> str:
    """Running text of facts on one subject: later ones may say "It"; fillers in between."""
    sentences: list[str] = []
    for position, item in enumerate(facts):
        use_pronoun = position > 0 and rng.random() < difficulty.pronouns
        sentences.append(item.pronoun if use_pronoun else item.statement)
        if rng.random() < difficulty.filler:
            sentences.append(rng.choice(table()["filler"]["say"]))
    return " ".join(sentences)


def citation_numbers(count: int, rng: random.Random, difficulty: Difficulty) -> tuple[int, ...]:
    """1..count, or with probability `gaps` an ascending draw with gaps, as removing passages leaves it."""
    if rng.random() >= difficulty.gaps:
        return tuple(range(1, count + 1))
    return tuple(sorted(rng.sample(range(1, max(difficulty.highest, count + 1) + 1), count)))


def answering_example(
    world: World, passages: int, rng: random.Random, difficulty: Difficulty | None = None, questions: int = 1
) -> Example:
    """Passages of the world (one subject each, a subject may have two) and up to `questions` questions on them."""
    difficulty = difficulty or Difficulty()
    groups: list[list[Fact]] = []
    for subject in world.subjects():
        facts = [fact(t, rng) for t in world.about(subject)]
        cut = rng.randint(1, min(len(facts), difficulty.sentences))
        groups.append(facts[:cut])
        if len(facts) > cut and rng.random() < difficulty.alike:
            groups.append(facts[cut : cut + rng.randint(1, difficulty.sentences)])
    rng.shuffle(groups)
    groups = groups[:passages]
    numbers = citation_numbers(len(groups), rng, difficulty)
    candidates = [(f, n) for group, n in zip(groups, numbers, strict=True) for f in group]
    rng.shuffle(candidates)
    asked = [Asked(f.question, f.statement, f.triple.object, n) for f, n in candidates[:questions]]
    if difficulty.unanswerable:
        asked = [missing(groups, a, rng) if rng.random() < difficulty.unanswerable else a for a in asked]
    return Example(tuple(passage(g, rng, difficulty) for g in groups), numbers, tuple(asked))


def missing(groups: Sequence[Sequence[Fact]], asked: Asked, rng: random.Random) -> Asked:
    """A question that the passages do not answer: a known subject and an absent relation, or the other way round."""
    known = [f.triple for g in groups for f in g]
    base = rng.choice(known)
    stated = {(t.subject, t.relation) for t in known}
    if base.kind == "generic" or rng.random() < 0.5:
        other = subject_triples(rng, base.kind, 1, 2)[0].subject
        candidate = Triple(other, base.kind, base.relation, base.object)
    else:
        candidate = Triple(base.subject, base.kind, rng.choice(relations()[base.kind]), "nothing")
    if (candidate.subject, candidate.relation) in stated:
        return asked
    return Asked(fact(candidate, rng).question, "", "", None)


def memory_asked(rng: random.Random, difficulty: Difficulty) -> Asked:
    """A question without passages and a plausible, most often wrong, answer."""
    triple = make_world(rng, 1, 1, difficulty).triples[0]
    stated = fact(triple, rng)
    return Asked(stated.question, stated.statement, triple.object, None)
