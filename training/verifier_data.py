"""Load the public sets of the embedded verifier's training pairs, as pairs and as pages.

Read from one folder: vitaminc, fever_symmetric, fool_me_twice, propsegment, nq_gold_passage, xquad_en, hotpotqa_100.
`verifier_held_out` lists the held-out parts; the readers here return either part of a set.
A pair is (claim, evidence, label); labels are 0 supportive, 1 editing required, 2 irrelevant.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from engine.core.errors import FileError
from engine.core.text import sentences
from engine.models.alignment import clean, stem
from engine.models.verdicts import CLASSES
from training import verifier_edits as edits
from training.verifier_questions import claims_from_questions

SUPPORTIVE, EDITING, IRRELEVANT = range(3)
Pair = tuple[str, str, int]


@dataclass(frozen=True)
class Page:
    """A passage as sentences, with its title and names that may replace another."""

    title: str
    sentences: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Pools:
    """The sources of training pairs; `real[label]` and `small[label]` are human-labelled pairs.

    `voices`: pairs of a sentence and its passive form, as it is and with subject and object in each other's place.
    """

    real: tuple[list[Pair], ...]
    small: tuple[list[Pair], ...]
    cases: dict[str, list[Pair]]
    pages: list[Page]
    questions: list[Pair]
    voices: list[Pair]


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    """The records of one JSONL file; raise `FileError` if it is absent."""
    path = folder / name
    if not path.is_file():
        raise FileError(f"{path} is not there. Point --data at the folder that holds the public sets.")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def label_of(record: dict[str, Any]) -> int:
    """The label of a record that names its class."""
    return CLASSES.index(record["label"])


def held_out_page(page: str) -> bool:
    """Whether a fool_me_twice page is in the held-out third."""
    return zlib.crc32(page.encode()) % 3 == 0


def vitaminc(folder: Path, part: str) -> list[Pair]:
    """VitaminC pairs of train or dev."""
    return [(clean(r["claim"]), clean(r["evidence"]), label_of(r)) for r in read(folder, f"vitaminc/{part}.jsonl")]


def fever_symmetric(folder: Path, *, held_out: bool) -> list[Pair]:
    """FeverSymmetric: dev for training; test less the claims and evidences it shares with dev, held out."""
    rows = read(folder, "fever_symmetric/verify.jsonl")
    dev = [r for r in rows if r["split"] == "dev"]
    known = {r["claim"] for r in dev} | {r["evidence"] for r in dev}
    test = [r for r in rows if r["split"] != "dev" and r["claim"] not in known and r["evidence"] not in known]
    return [(clean(r["claim"]), clean(r["evidence"]), label_of(r)) for r in (test if held_out else dev)]


def fool_me_twice(folder: Path, *, held_out: bool) -> list[Pair]:
    """FoolMeTwice by page, with one made irrelevant (other sentences of the page) for every second claim."""
    pairs: list[Pair] = []
    rows = [r for r in read(folder, "fool_me_twice/verify.jsonl") if held_out_page(r["page"]) == held_out]
    for number, row in enumerate(rows):
        claim = clean(row["claim"])
        pairs.append((claim, clean(" ".join(row["evidence"])), label_of(row)))
        others = [clean(s) for s in row["retrieved"] if s not in row["evidence"] and 6 <= len(s.split()) <= 40]
        others = [s for s in others if overlap(claim, s) < 0.5]
        if number % 2 == 0 and others:
            pairs.append((claim, min(others, key=lambda s: zlib.crc32(s.encode())), IRRELEVANT))
    return pairs


def overlap(claim: str, evidence: str) -> float:
    """Share of the claim's longer words that are in the evidence, by stem."""
    mine = {stem(w.lower()) for w in claim.split() if len(w) > 3}
    return len(mine & {stem(w.lower()) for w in evidence.split()}) / max(1, len(mine))


def propositions(folder: Path) -> list[Pair]:
    """PropSegmEnt: sentence and human proposition (supportive), proposition of another sentence (irrelevant)."""
    rows = read(folder, "propsegment/propositions.jsonl")
    rng = Random(7)
    pairs: list[Pair] = []
    for row in rows:
        evidence, names = (
            clean(row["sentence"]),
            edits.names_in(row["sentence"]) + edits.names_in(rng.choice(rows)["sentence"]),
        )
        for text in row["reference"]:
            if len(text.split()) < 5:
                continue
            claim = clean(text)
            pairs.append((claim, evidence, SUPPORTIVE))
            changed = edits.contradict(claim, rng, names)
            if changed:
                pairs.append((changed, evidence, EDITING))
            pairs.append((claim, clean(rng.choice(rows)["sentence"]), IRRELEVANT))
    return pairs


def pages_of(folder: Path, names: tuple[str, ...]) -> list[Page]:
    """Passages of search corpora (and hotpotqa paragraphs) that hold two or more usable sentences."""
    texts: list[tuple[str, str]] = []
    for name in names:
        if name == "hotpotqa_100":
            for row in read(folder, "hotpotqa_100/qa.jsonl"):
                texts += [(p["title"], "".join(p["sentences"])) for p in row["passages"]]
        else:
            texts += [(r["title"].replace("_", " "), r["text"]) for r in read(folder, f"{name}/corpus.jsonl")]
    pages = [_page(title, clean(text)) for title, text in texts]
    return [page for page in pages if len(page.sentences) >= 2]


def _page(title: str, text: str) -> Page:
    parts = [text[start:end] for start, end in sentences(text)]
    good = tuple(s for s in parts if 6 <= len(s.split()) <= 45)
    return Page(title=title, sentences=good, names=tuple(edits.names_in(text)))


def load_pools(folder: Path) -> Pools:
    """All sources of training pairs."""
    real = vitaminc(folder, "train")
    cases: dict[str, list[Pair]] = {}
    for row, pair in zip(read(folder, "vitaminc/train.jsonl"), real, strict=True):
        cases.setdefault(row["page"], []).append(pair)
    pages = pages_of(folder, ("nq_gold_passage", "xquad_en", "hotpotqa_100"))
    small = fever_symmetric(folder, held_out=False) + fool_me_twice(folder, held_out=False) + propositions(folder)
    return Pools(
        real=tuple([p for p in real if p[2] == label] for label in range(3)),
        small=tuple([p for p in small if p[2] == label] for label in range(3)),
        cases={page: rows for page, rows in cases.items() if len(rows) > 3},
        pages=pages,
        questions=claims_from_questions(read(folder, "nq_gold_passage/qa.jsonl") + read(folder, "xquad_en/qa.jsonl")),
        voices=voices(pages),
    )


def voices(pages: list[Page]) -> list[Pair]:
    """Every sentence of the pages that has a passive form: supportive with it, editing required with both swapped."""
    found = [(edits.passive(sentence), sentence) for page in pages for sentence in page.sentences]
    return [
        (claim, sentence, label)
        for said, sentence in found
        if said is not None
        for claim, label in zip(said, (SUPPORTIVE, EDITING), strict=True)
    ]
