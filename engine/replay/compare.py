"""Stored values against recomputed ones, number by number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from engine.analyses.kind import Floor, Outcome
from engine.core.files import package_versions
from engine.core.values import Value

Status = Literal["reproduced", "drifted", "cannot"]
_ABSENT = object()


class Number(Value, frozen=True):
    """One stored value: reproduced within the floor, drifted by `difference`, or not comparable and why.

    `place` is a path into the case, such as "analyses[occlusion:embedded].scores[0][2]".
    """

    place: str
    status: Status
    stored: Any = None
    replayed: Any = None
    difference: float | None = None
    floor: float = 0.0
    why: str = ""


class Replay(Value, frozen=True):
    """Every value of a case after its replay. `versions` are packages that differ: (name, stamped, here)."""

    case: str
    numbers: tuple[Number, ...]
    versions: tuple[tuple[str, str, str], ...] = ()

    def count(self, status: Status) -> int:
        """How many values have that status."""
        return sum(number.status == status for number in self.numbers)

    @property
    def summary(self) -> str:
        """One sentence."""
        total = len(self.numbers)
        parts = [f"{self.count('reproduced'):,} of {total:,} values reproduced"]
        drifted = [n for n in self.numbers if n.status == "drifted"]
        if drifted:
            worst = max(drifted, key=lambda n: n.difference if n.difference is not None else math.inf)
            parts.append(f"{len(drifted):,} drifted, {worst.place} the most")
        if self.count("cannot"):
            parts.append(f"{self.count('cannot'):,} could not be compared")
        return "; ".join(parts) + "."


def compare(place: str, stored: Any, outcome: Outcome) -> list[Number]:
    """Every leaf of a stored part against the recomputed one."""
    if outcome.values is None:
        return [Number(place=place, status="cannot", why=outcome.why or "nothing was computed")]
    found: list[Number] = []
    _walk(place, stored, outcome.values, outcome, outcome.floor, found)
    return found


def _walk(place: str, stored: Any, replayed: Any, outcome: Outcome, floor: Floor, found: list[Number]) -> None:
    if isinstance(stored, dict) and isinstance(replayed, dict):
        for key in [*stored, *(k for k in replayed if k not in stored)]:
            own = outcome.floors.get(key, floor)
            _walk(f"{place}.{key}", stored.get(key, _ABSENT), replayed.get(key, _ABSENT), outcome, own, found)
    elif isinstance(stored, list) and isinstance(replayed, list):
        if len(stored) != len(replayed):
            said = f"it now has {len(replayed)} entries; {len(stored)} were stored"
            found.append(Number(place=place, status="drifted", why=said))
        for index, (one, other) in enumerate(zip(stored, replayed, strict=False)):
            _walk(f"{place}[{index}]", one, other, outcome, _of_entry(floor, index), found)
    elif stored is not _ABSENT:
        found.append(_number(place, stored, replayed, outcome, _of_entry(floor, 0)))
    elif replayed not in (None, "", 0, [], {}):
        found.append(Number(place=place, status="drifted", replayed=replayed, why="it was not stored"))


def _of_entry(floor: Floor, index: int) -> float:
    """The floor of an entry of a list; those after the last that was measured have the last one's."""
    return floor[min(index, len(floor) - 1)] if isinstance(floor, tuple) else floor


def _number(place: str, stored: Any, replayed: Any, outcome: Outcome, floor: float) -> Number:
    if replayed is _ABSENT:
        # What a later version no longer computes is named, not passed over.
        return Number(place=place, status="cannot", stored=stored, why=outcome.why or "it is no longer computed")
    if _is_number(stored) and _is_number(replayed):
        difference = abs(replayed - stored)
        status: Status = "reproduced" if difference <= floor else "drifted"
        return Number(place=place, status=status, stored=stored, replayed=replayed, difference=difference, floor=floor)
    status = "reproduced" if stored == replayed else "drifted"
    why = "" if status == "reproduced" else "the value differs"
    return Number(place=place, status=status, stored=stored, replayed=replayed, why=why)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def differing_versions(stamped: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    """Packages whose version here is not the stamped one."""
    here = package_versions()
    return tuple(
        (name, version, here.get(name, "absent"))
        for name, version in sorted(stamped.items())
        if here.get(name, "absent") != version
    )
