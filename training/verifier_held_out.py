"""Load the embedded verifier's held-out sets, half for calibration and half for reporting.

Held out: vitaminc/dev.jsonl, the test split of fever_symmetric (less what it shares with dev), the pages of
fool_me_twice whose hash falls in the held-out third, and pairs made from clapnq, which is never trained on.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from random import Random

from engine.core.text import sentences
from engine.models.alignment import clean
from training import verifier_edits as edits
from training.verifier_data import (
    EDITING,
    IRRELEVANT,
    SUPPORTIVE,
    Pair,
    fever_symmetric,
    fool_me_twice,
    overlap,
    read,
    vitaminc,
)


def domain_shift(folder: Path) -> list[Pair]:
    """CLAP NQ, never trained on: people's answer sentences against the sentences that they selected.

    Kept (supportive), changed by code (editing required), against sentences not selected or with a second fact from
    another passage (irrelevant). Up to three pairs per answerable question.
    """
    rng = Random(5)
    rows = [r for r in read(folder, "clapnq/qa.jsonl") if r["answerable"]]
    pairs: list[Pair] = []
    for row in rows:
        answer, evidence = clean(row["answers"][0]), clean(" ".join(row["selected_sentences"][0]))
        facts = [answer[a:b] for a, b in sentences(answer) if 5 <= len(answer[a:b].split()) <= 40]
        if not facts or overlap(facts[0], evidence) < 0.7:
            continue
        pairs.append((facts[0], evidence, SUPPORTIVE))
        changed = edits.contradict(
            facts[0], rng, edits.names_in(row["passage"]) + edits.names_in(rng.choice(rows)["passage"])
        )
        if changed:
            pairs.append((changed, evidence, EDITING))
        others = [clean(s) for s in row["sentences"] if s not in row["selected_sentences"][0] and len(s.split()) > 5]
        others = [s for s in others if overlap(facts[0], s) < 0.6]
        if others and rng.random() < 0.5:
            pairs.append((facts[0], rng.choice(others), IRRELEVANT))
        else:
            second = clean(rng.choice(rows)["sentences"][0])
            pairs.append((f"{facts[0].rstrip(' .')} and {second}", evidence, IRRELEVANT))
    return pairs


MADE = "CLAP NQ, made"
VITAMINC = "VitaminC dev"


@dataclass(frozen=True)
class HeldOut:
    """A held-out set: pairs, and which of them are in the calibration half.

    `two`: the set has no irrelevant evidence, so the verifier chooses between the other two classes.
    """

    name: str
    pairs: list[Pair]
    fitted: list[bool]
    two: bool = False

    def half(self, *, fitted: bool) -> list[int]:
        """Indices of one half."""
        return [i for i, flag in enumerate(self.fitted) if flag == fitted]


def held_out_sets(folder: Path) -> list[HeldOut]:
    """The four held-out sets, each in two halves without a common page (VitaminC) or claim (others)."""
    pages = [r["page"] for r in read(folder, "vitaminc/dev.jsonl")]
    sets = [
        (VITAMINC, vitaminc(folder, "dev"), pages),
        ("FeverSymmetric test", fever_symmetric(folder, held_out=True), None),
        ("FoolMeTwice held-out pages", fool_me_twice(folder, held_out=True), None),
        (MADE, domain_shift(folder), None),
    ]
    return [
        HeldOut(name, pairs, [zlib.crc32(key.encode()) % 2 == 0 for key in (keys or [claim for claim, _, _ in pairs])])
        for name, pairs, keys in sets
    ]
