"""Names and values of generated worlds: made of syllables, drawn at random, or from the short lists of worlds.toml."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("worlds.toml")


@cache
def table() -> dict[str, Any]:
    """The wordings, read once."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


@cache
def relations() -> dict[str, tuple[str, ...]]:
    """Relation names by kind of subject."""
    return {k: tuple(v) for k, v in table().items() if k not in ("generic", "filler", "distractor", "values", "names")}


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
