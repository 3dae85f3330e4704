"""The values of an evaluation: units, their results, tables and figures.

Tables and figures are data: a page draws them, a file keeps them, and no plotting library is needed to make them.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from engine.core.values import Case, Json, Value, sha256
from engine.methods.refinement.values import Cost
from engine.models.server import Spent

Better = Literal["", "higher", "lower"]
State = Literal["done", "failed"]


class Unit(Value, frozen=True):
    """The smallest part of a run: one example by one method with one seed."""

    example: str
    method: str
    seed: int

    @property
    def key(self) -> str:
        """A name for files and cases, the same in every run."""
        return sha256(f"{self.example}\0{self.method}\0{self.seed}")[:16]


class Found(Value, frozen=True):
    """The result of a unit. `values` is plain JSON by name, read again by the study's own results.

    A value that is not defined here is None and `missing` says why. `case` holds the whole run; its id is given by
    the runner. `unparsed` counts replies that could not be read.
    """

    values: Json
    missing: dict[str, str] = {}
    case: Case | None = None
    cost: Cost = Cost()
    unparsed: int = 0


OUT_OF_MEMORY = "OutOfMemory"  # the type of a failure caused by too little memory


class Failure(Value, frozen=True):
    """Why a unit has no values: the error's type and what it said."""

    type: str
    message: str


class Row(Value, frozen=True, omit_defaults=True):
    """A line of units.jsonl. A failed unit has `failure` and stays in every denominator.

    `case` is the id of its case file under `cases/`. `served` is what it took of served models.
    """

    unit: Unit
    state: State
    values: Json = {}
    missing: dict[str, str] = {}
    case: str = ""
    cost: Cost = Cost()
    served: Spent = Spent()
    unparsed: int = 0
    failure: Failure | None = None

    def value(self, *path: str) -> Any:
        """The value at a path of names, each inside the one before; None where the row does not have it."""
        found: Any = self.values
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found


class Estimate(Value, frozen=True):
    """The largest cost of a unit or a run: answers written, texts scored by forwards, prompt tokens read.

    `backwards` are gradient passes, `judged` calls of the judge. `tokens` counts what is read and may be written.
    """

    calls: int = 0
    forwards: int = 0
    backwards: int = 0
    judged: int = 0
    tokens: int = 0

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})


class Measure(Value, frozen=True):
    """A figure with its 95% interval (None under ten units) and the number of independent units behind it."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0


Cell = Measure | str | int | float | None


class Column(Value, frozen=True):
    """A column's name, its unit ("share", "nats", "tokens", ...), and which way is better, if one is."""

    name: str
    unit: str = ""
    better: Better = ""

    @property
    def label(self) -> str:
        """Name and unit: "ROUGE-L (F1)"."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @classmethod
    def of(cls, head: str) -> Column:
        """One column as it is printed."""
        return cls.row(head)[0]

    @classmethod
    def row(cls, heads: str) -> tuple[Column, ...]:
        """A table's columns as they are printed: "name (unit) ↑", with bars between them.

        >>> [(c.name, c.unit, c.better) for c in Column.row("method | recall (share) ↑")]
        [('method', '', ''), ('recall', 'share', 'higher')]
        """
        found = (_HEAD.fullmatch(head.strip()) for head in heads.split("|"))
        return tuple(cls(name=head[1], unit=head[2] or "", better=_BETTER[head[3]]) for head in found if head)


_HEAD = re.compile(r"(.+?)(?: \((.+)\))?(?: ([↑↓]))?")
_BETTER: dict[str | None, Better] = {None: "", "↑": "higher", "↓": "lower"}


class StudyTable(Value, frozen=True):
    """A table. `name` is that of its file, `shows` what it redraws ("Attr-RAG, Table I"), `n` its number of `unit`s."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    n: int
    unit: str = "questions"
    shows: str = ""
    notes: tuple[str, ...] = ()


class Axis(Value, frozen=True):
    """The name and unit of an axis."""

    name: str
    unit: str = ""

    @classmethod
    def of(cls, head: str) -> Axis:
        """An axis as it is printed: "name (unit)"."""
        return cls(name=Column.of(head).name, unit=Column.of(head).unit)


class Series(Value, frozen=True):
    """Points of one name in a figure; `low` and `high` are intervals, `cases` the case that each point opens.

    `side` is the value axis that it belongs to. `z` (contour only) has a row for each y and a column for each x.
    """

    name: str
    x: tuple[float | str, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    z: tuple[tuple[float | None, ...], ...] = ()
    n: tuple[int, ...] = ()
    cases: tuple[str, ...] = ()
    side: Literal["left", "right"] = "left"


FigureKind = Literal["lines", "bars", "points", "contour"]


class Figure(Value, frozen=True):
    """A figure as data, for a page or a notebook to draw."""

    name: str
    title: str
    kind: FigureKind
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    right: Axis | None = None
    shows: str = ""
    notes: tuple[str, ...] = ()


class Results(Value, frozen=True):
    """All that a study draws from the rows of a run; `notes` say what was switched off and why."""

    tables: tuple[StudyTable, ...] = ()
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
