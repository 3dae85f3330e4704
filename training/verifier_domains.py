"""Load development sets of other domains: for measuring, choosing and calibrating, never for training.

HealthVer, COVID-Fact and CLIMATE-FEVER state no licence, so no training pair comes from them. Each set is cut into two
parts without a common claim (COVID-Fact: evidence). `fitted` chooses and calibrates; the other part is reported.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from engine.models.alignment import clean
from training.verifier_data import Pair, label_of, read
from training.verifier_held_out import HeldOut, held_out_sets

SIZE = 800  # pairs of each part of a set, at most
TWO_CLASSES = "COVID-Fact"
Record = dict[str, Any]

_DOMAINS: dict[str, tuple[str, str, Callable[[Record], bool]]] = {
    "HealthVer": ("healthver", "claim", lambda r: True),
    "COVID-Fact": ("covidfact", "evidence", lambda r: True),
    "CLIMATE-FEVER": ("climate_fever", "claim", lambda r: bool(r["agreement"] == 1.0)),
}


def other_domains(folder: Path, size: int = SIZE) -> list[HeldOut]:
    """The three sets, at most `size` pairs per part, drawn with a fixed seed; in CLIMATE-FEVER all votes agree."""
    return [_domain(name, folder, size) for name in _DOMAINS]


def _domain(name: str, folder: Path, size: int) -> HeldOut:
    place, key, wanted = _DOMAINS[name]
    rows = [r for r in read(folder, f"{place}/verify.jsonl") if wanted(r)]
    fitted = [zlib.crc32(r[key].encode()) % 2 == 0 for r in rows]
    taken = [i for part in (True, False) for i in _sample([i for i, f in enumerate(fitted) if f == part], size)]
    pairs: list[Pair] = [(clean(rows[i]["claim"]), clean(rows[i]["evidence"]), label_of(rows[i])) for i in taken]
    return HeldOut(name, pairs, [fitted[i] for i in taken], two=name == TWO_CLASSES)


def _sample(places: list[int], size: int) -> list[int]:
    return sorted(Random(1337).sample(places, min(size, len(places))))


def every_set(folder: Path, size: int = SIZE) -> list[HeldOut]:
    """Other domains, then the held-out sets of the training domains, at most `size` pairs per part."""
    return other_domains(folder, size) + [_cut(data, size) for data in held_out_sets(folder)]


def _cut(data: HeldOut, size: int) -> HeldOut:
    taken = [i for part in (True, False) for i in _sample(data.half(fitted=part), size)]
    return replace(data, pairs=[data.pairs[i] for i in taken], fitted=[data.fitted[i] for i in taken])
