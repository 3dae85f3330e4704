"""Measure claims that mix up what a passage says in two places: python -m bench.mixed_up --data DIR [--write].

Facts that the rules read from a sentence of a CLAP NQ page, as they are and with the number, or the name, of another
sentence of the page, or of another fact of their sentence, in the place of their own. The verifier judges each against
the page: by windows as they come, by what it reads for the claim (engine/models/tables.py and subject.py), and with the
guards of a check. The seed is fixed.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from bench.results import DATA, arguments, conditions, publish, table
from engine.core.settings import Verification
from engine.english.notation import amounts
from engine.english.statements import split
from engine.methods.are.anchor import anchors
from engine.methods.are.guards import Read, rulings_on
from engine.methods.are.names import names
from engine.methods.are.values import Evidence
from engine.methods.are.verdict import judge
from engine.models.embedder import load_embedder
from engine.models.protocols import Embedder
from engine.models.verdicts import combine, windows
from engine.models.verifier import EmbeddedVerifier, load_embedded
from training.verifier_data import pages_of

MOST = 200  # facts of a kind
Value = tuple[int, int, str, str]  # where, as written, and of which kind


def numbers(text: str) -> list[Value]:
    """The numbers in digits of a text, by unit and length: another one may replace it."""
    found = [(one, text[one.start : one.end]) for one in amounts(text)]
    return [(a.start, a.end, raw, f"{a.unit} {len(raw)}") for a, raw in found if any(c.isdigit() for c in raw)]


def named(text: str) -> list[Value]:
    """The names of a text, by their number of words; none of a text with a number."""
    return [] if any(map(str.isdigit, text)) else [(a, b, name, str(len(name.split()))) for a, b, name in names(text)]


def mixed_up(
    sentences: Sequence[str], values: Callable[[str], list[Value]], rng: random.Random, within: bool
) -> tuple[str, str] | None:
    """A fact of a page, and the same with a value of another sentence, or fact `within` its own; None without one."""
    for place, sentence in enumerate(sentences):
        facts = split(sentence)
        for number, fact in enumerate(facts):
            apart = (facts, number) if within else (sentences, place)
            others = [value for other in _without(*apart) for value in values(other)]
            mine, near = values(fact), (fact if within else sentence).lower()
            rivals = [v for v in others if len(mine) == 1 and v[3] == mine[0][3] and v[2].lower() not in near]
            if rivals:
                start, end, *_ = mine[0]
                stop = "" if fact.endswith(".") else "."
                return fact + stop, fact[:start] + rng.choice(rivals)[2] + fact[end:] + stop
    return None


def _without(parts: Sequence[str], place: int) -> list[str]:
    return [*parts[:place], *parts[place + 1 :]]


def drawn(data: Path, values: Callable[[str], list[Value]], within: bool) -> Iterator[tuple[str, str, str]]:
    """Facts, the same mixed up, and their pages."""
    rng = random.Random(1337)
    pages = pages_of(data, ("clapnq",))
    found = ((mixed_up(page.sentences, values, rng, within), page) for page in rng.sample(pages, len(pages)))
    pairs = ((*pair, " ".join(page.sentences)) for pair, page in found if pair)
    yield from (pair for pair, _ in zip(pairs, range(MOST), strict=False))


def outcomes(pairs: Sequence[tuple[str, str]], verifier: EmbeddedVerifier, embedder: Embedder) -> list[list[str]]:
    """The verdicts of each pair by windows, by what is read for the claim, and with the guards; "unsure" below 0.6."""
    rows = [np.vstack([verifier.classify([(c, e[a:b])]) for a, b in windows(e)]) for c, e in pairs]
    whole = [combine(row, windows(e), verifier.thresholds).verdict for row, (_, e) in zip(rows, pairs, strict=True)]
    rulings = judge(pairs, verifier)
    evidence = [Evidence(text=e, source="case") for _, e in pairs]
    read = [Read(c, c, one, anchors(c, [one])[0]) for (c, _), one in zip(pairs, evidence, strict=True)]
    kept = rulings_on(read, verifier, embedder, Verification())
    return [whole, [r.verdict for r in rulings], ["unsure" if r.unsure else r.verdict for r in kept]]


def rows(data: Path) -> Iterator[list[object]]:
    """The rows of the table."""
    verifier, embedder = load_embedded(), load_embedder()
    kinds, places = (("number", numbers), ("name", named)), ((False, "sentence"), (True, "fact of the sentence"))
    for (kind, values), (within, where) in itertools.product(kinds, places):
        triples = list(drawn(data, values, within))
        for place, name in enumerate((f"with a {kind}, as they are", f"with the {kind} of another {where}")):
            found = outcomes([(triple[place], triple[2]) for triple in triples], verifier, embedder)
            shares = [one.count(v) / len(triples) for one in found for v in ("supportive", "editing_required")]
            yield [name, len(triples), *(f"{share:.2f}" for share in shares)]


def main() -> None:
    """Measure, print, and save with --write."""
    asked = arguments(__doc__, data=DATA)
    heads = "facts | n | by windows: borne out | contradicted | by what is read: borne out | contradicted"
    lines = table(f"{heads} | with guards: borne out, sure | contradicted, sure", rows(asked.data))
    told = f"Made from CLAP NQ, embedded verifier. {conditions()}"
    publish(asked, "mixed_up", "Claims that mix up two places", told, lines)


if __name__ == "__main__":
    main()
