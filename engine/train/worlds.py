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
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("worlds.toml")


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
    """How hard the worlds are; every field grows during training.

    `syllables`: of a name; `sentences`: most of a passage; `alike`: share of passages that speak of another
    subject by the same relations; `gaps`: share of prompts whose citation numbers are not 1..n; `highest`: the
    largest citation number.
    """

    syllables: int = 2
    sentences: int = 1
    alike: float = 0.3
    gaps: float = 0.3
    highest: int = 12
    pronouns: float = 0.3
    filler: float = 0.1
    unanswerable: float = 0.0


@cache
def table() -> dict[str, Any]:
    """The wordings, read once."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


@cache
def relations() -> dict[str, tuple[str, ...]]:
    """Relation names by kind of subject."""
    return {k: tuple(v) for k, v in table().items() if k not in ("generic", "filler", "values", "names")}


def part(name: str, rng: random.Random) -> str:
    """One of the pieces that names are made of."""
    return str(rng.choice(table()["names"][name]))


def syllable(rng: random.Random) -> str:
    """One pronounceable syllable."""
    return part("onsets", rng) + part("vowels", rng) + part("codas", rng)


def word(rng: random.Random, syllables: int) -> str:
    """A capitalised made-up name, e.g. "Velcor"."""
    return "".join(syllable(rng) for _ in range(syllables)).capitalize()


def person(rng: random.Random, syllables: int) -> str:
    """A given name and a made-up family name."""
    return f"{part('first', rng)} {word(rng, syllables)}"


def company(rng: random.Random, syllables: int) -> str:
    """A made-up firm."""
    return f"{word(rng, syllables)} {part('heads', rng)}"


def number(rng: random.Random, low: int, high: int, unit: str = "") -> str:
    """A whole number with thousands separators, or now and then one decimal, and its unit."""
    text = f"{rng.randint(low, high):,}"
    if unit and high < 1000 and rng.random() < 0.3:
        text += f".{rng.randint(1, 9)}"
    return f"{text} {unit}".strip()


def money(rng: random.Random) -> str:
    """An amount of money."""
    return (
        number(rng, 1, 99) + f"{rng.choice(['', ',000', ',500', ',250'])} {rng.choice(['euros', 'francs', 'crowns'])}"
    )


def date(rng: random.Random) -> str:
    """A day of the last fifty years."""
    return f"{rng.randint(1, 28)} {rng.choice(table()['values']['months'])} {rng.randint(1970, 2024)}"


def code(rng: random.Random) -> str:
    """An account's sign, e.g. "KV-4471"."""
    return f"{rng.choice('BDFGHJKLMNPRSTVWZ')}{rng.choice('BDFGHJKLMNPRSTVWZ')}-{rng.randint(100, 9999)}"


Maker = Callable[[random.Random, int], str]
MAKERS: dict[str, Maker] = {
    "person": person,
    "company": company,
    "city": word,
    "temperature": lambda rng, _: number(rng, 2, 480, "°C"),
    "minutes": lambda rng, _: number(rng, 2, 95, rng.choice(["minutes", "hours"])),
    "grams": lambda rng, _: number(rng, 1, 99, rng.choice(["g", "mg", "kg"])),
    "millilitres": lambda rng, _: number(rng, 1, 500, rng.choice(["mL", "drops", "L"])),
    "kilograms": lambda rng, _: number(rng, 2, 900, "kg"),
    "kilometres": lambda rng, _: number(rng, 12, 2900, "km"),
    "metres": lambda rng, _: number(rng, 12, 3900, "metres"),
    "watts": lambda rng, _: number(rng, 5, 9000, "watts"),
    "days": lambda rng, _: number(rng, 20, 5000, "days"),
    "years": lambda rng, _: number(rng, 2, 120, "years"),
    "distance_large": lambda rng, _: number(rng, 2, 900, "million km"),
    "count": lambda rng, _: number(rng, 2, 60),
    "count_large": lambda rng, _: number(rng, 1000, 900000),
    "year": lambda rng, _: str(rng.randint(1600, 2020)),
    "money": lambda rng, _: money(rng),
    "date": lambda rng, _: date(rng),
    "device": lambda rng, _: rng.choice(table()["values"]["device_thing"]),
}
NAMES: dict[str, Maker] = {
    "account": lambda rng, _: code(rng),
    "company": company,
    "person": person,
    "device": lambda rng, n: f"{word(rng, n)} {part('things', rng)}",
    "species": lambda rng, n: word(rng, n).lower() if rng.random() < 0.5 else word(rng, n),
}


def value(kind: str, rng: random.Random, syllables: int) -> str:
    """A random value of a type: made, or drawn from the table's list."""
    maker = MAKERS.get(kind)
    return maker(rng, syllables) if maker else str(rng.choice(table()["values"][kind]))


def generic_relation(rng: random.Random, syllables: int) -> tuple[str, str]:
    """A noun as relation, and a value that fits it."""
    kind = rng.choice(("number", "word", "person"))
    relation = rng.choice(table()["generic"][kind])
    if kind == "number":
        return relation, number(rng, 2, 990, rng.choice(["units", "points", "per cent", "parts", ""]))
    return relation, value(kind, rng, syllables)


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
