"""Draw the embedded verifier's training pairs from public sets, plain text and labelled pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from random import Random

from engine.models.alignment import clean
from training import verifier_edits as edits
from training.verifier_data import EDITING, IRRELEVANT, SUPPORTIVE, Page, Pair, Pools, load_pools, overlap, read

BARE = 0.4  # share of claims without a full stop: a fact, a table's cell or a user's claim often has none


def made_from_text(pages: list[Page], rng: Random) -> Pair | None:
    """One pair made from a passage; None if the drawn sentence offers nothing."""
    page = rng.choice(pages)
    place = rng.randrange(len(page.sentences))
    sentence = page.sentences[place]
    names = [*page.names, *rng.choice(pages).names, *rng.choice(pages).names]
    claim = sentence
    if rng.random() < 0.35:
        claim = edits.first_clause(sentence) or claim
    if rng.random() < 0.25:
        claim = edits.drop_detail(claim, rng) or claim
    claim = edits.reword(claim, rng, page.title if rng.random() < 0.5 else "")
    recipe = rng.choices(tuple(_RECIPES), weights=[w for _, w in _RECIPES.values()])[0]
    return _RECIPES[recipe][0](page, place, claim, names, rng)


def _window(page: Page, place: int, rng: Random, sentence: str | None = None) -> str:
    """The sentence at `place` (or a stand-in) with 0 to 2 neighbours, in order."""
    first, last = max(0, place - rng.choice((0, 0, 1))), place + rng.choice((0, 0, 1))
    parts = list(page.sentences[first : last + 1])
    parts[place - first] = sentence if sentence is not None else page.sentences[place]
    return " ".join(parts)


def _kept(page: Page, place: int, claim: str, names: list[str], rng: Random) -> Pair:
    return claim, _window(page, place, rng), SUPPORTIVE


def _changed_claim(page: Page, place: int, claim: str, names: list[str], rng: Random) -> Pair | None:
    changed = edits.contradict(claim, rng, names)
    return (changed, _window(page, place, rng), EDITING) if changed else None


def _changed_evidence(page: Page, place: int, claim: str, names: list[str], rng: Random) -> Pair | None:
    changed = edits.contradict(claim, rng, names)
    return (claim, _window(page, place, rng, changed), EDITING) if changed else None


def _gap(page: Page, place: int, claim: str, names: list[str], rng: Random) -> Pair | None:
    """The evidence lacks one detail of the claim."""
    left = edits.drop_detail(claim, rng)
    return (claim, left if rng.random() < 0.6 else _window(page, place, rng, left), IRRELEVANT) if left else None


def _elsewhere(page: Page, place: int, claim: str, names: list[str], rng: Random) -> Pair | None:
    """Other sentences of the same page; the claim as it is or changed."""
    others = [s for i, s in enumerate(page.sentences) if i != place and overlap(claim, s) < 0.6]
    if not others:
        return None
    claim = edits.contradict(claim, rng, names) or claim if rng.random() < 0.4 else claim
    return claim, " ".join(rng.sample(others, min(len(others), rng.choice((1, 1, 2))))), IRRELEVANT


def _two_facts(page: Page, place: int, claim: str, names: list[str], rng: Random) -> Pair | None:
    """Two facts in one claim: both in the evidence (supportive), one (irrelevant), one changed (editing required)."""
    others = [i for i in range(len(page.sentences)) if i != place]
    other = page.sentences[rng.choice(others)]
    if len(claim.split()) + len(other.split()) > 45:
        return None
    added, label = other, rng.choices((SUPPORTIVE, EDITING, IRRELEVANT), weights=(3, 1, 4))[0]
    if label == EDITING:
        added = edits.contradict(other, rng, names) or ""
    if not added:
        return None
    parts = [claim, added] if rng.random() < 0.5 else [added, claim]
    joined = parts[0].rstrip(" .") + rng.choice((" and ", ", and ", ". ")) + parts[1]
    return joined, page.sentences[place] if label == IRRELEVANT else f"{page.sentences[place]} {other}", label


def _both_negated(page: Page, place: int, claim: str, names: list[str], rng: Random) -> Pair | None:
    """Claim and evidence deny the same in two ways: borne out; else only the claim denies: editing required."""
    denied = edits.negate(claim, rng, names)
    if denied is None or len(denied) < len(claim):
        return None
    other = edits.renegate(denied, rng) or denied
    if rng.random() < 0.3:
        return other, _window(page, place, rng), EDITING
    said = (other, denied) if rng.random() < 0.6 else (denied, other)
    return said[0], _window(page, place, rng, said[1]), SUPPORTIVE


def _beside_negation(page: Page, place: int, claim: str, names: list[str], rng: Random) -> Pair | None:
    """The evidence has a sentence that denies something else, next to the one that the claim repeats or changes."""
    others = [s for i, s in enumerate(page.sentences) if i != place and edits.DENIAL.search(s)]
    if not others:
        return None
    parts = [page.sentences[place], rng.choice(others)]
    rng.shuffle(parts)
    changed = edits.contradict(claim, rng, names) if rng.random() < 0.4 else None
    return changed or claim, " ".join(parts), EDITING if changed else SUPPORTIVE


Recipe = Callable[[Page, int, str, list[str], Random], Pair | None]
_RECIPES: dict[str, tuple[Recipe, float]] = {
    "kept": (_kept, 0.20),
    "changed claim": (_changed_claim, 0.17),
    "changed evidence": (_changed_evidence, 0.11),
    "gap": (_gap, 0.12),
    "elsewhere": (_elsewhere, 0.08),
    "two facts": (_two_facts, 0.10),
    "both negated": (_both_negated, 0.14),
    "beside negation": (_beside_negation, 0.25),
}


def made_from_cases(cases: dict[str, list[Pair]], rng: Random) -> Pair | None:
    """From labelled pairs of a page: other evidence, an extra sentence with the evidence, or two claims joined."""
    rows = (
        cases[rng.choice(list(cases))]
        if rng.random() < 0.9
        else [r for p in rng.sample(list(cases), 2) for r in cases[p]]
    )
    (claim, evidence, label), (other_claim, other_evidence, other_label) = rng.sample(rows, 2)
    if overlap(claim, other_evidence) > 0.4 or overlap(evidence, other_evidence) > 0.4:
        return None
    recipe = rng.random()
    if recipe < 0.35:
        return claim, other_evidence, IRRELEVANT
    if recipe < 0.7:
        parts = [evidence, other_evidence]
        rng.shuffle(parts)
        return claim, " ".join(parts), label
    if label != SUPPORTIVE or other_label != SUPPORTIVE:
        return None
    joined = f"{claim.rstrip(' .')} and {other_claim}"
    return (joined, evidence, IRRELEVANT) if recipe < 0.87 else (joined, f"{evidence} {other_evidence}", SUPPORTIVE)


def draw(pools: Pools, rng: Random) -> Iterator[Pair]:
    """Yield training pairs endlessly, with sources and classes mixed; some claims without their full stop."""
    while True:
        kind = rng.random()
        label = rng.randrange(3)
        if kind < 0.38:
            pair: Pair | None = rng.choice(pools.real[label])
        elif kind < 0.51:
            pair = rng.choice(pools.small[label])
        elif kind < 0.57:
            pair = rng.choice(pools.questions)
        elif kind < 0.61 and pools.voices:
            pair = rng.choice(pools.voices)
        elif kind < 0.91:
            pair = made_from_text(pools.pages, rng)
        else:
            pair = made_from_cases(pools.cases, rng)
        if pair is not None:
            claim, evidence, meant = pair
            yield _said(claim, rng), evidence, meant


def written(folder: Path, rng: Random) -> list[Pair]:
    """Statements that a model wrote (`made_text`), some without their full stop."""
    rows = read(folder, "claims.jsonl")
    return [(_said(clean(r["claim"]), rng), r["evidence"], int(r["label"])) for r in rows]


def _said(claim: str, rng: Random) -> str:
    return claim.rstrip(" .") if rng.random() < BARE else claim


def training_pairs(data: Path, made: Path | None, drawn: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Pairs of people and code, and those that a model wrote; each in a fixed order, for teacher and student."""
    rng = Random(seed)
    return list(islice(draw(load_pools(data), rng), drawn)), written(made, Random(seed)) if made else []
