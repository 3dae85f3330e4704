"""A study: which tables and figures of a paper it redraws, what one unit of it does, and how the rows become results.

A study is a module with one `STUDY`; `studies.STUDIES` lists them by name. It computes no method itself: it calls the
engine's own, once a unit, and its results are a pure function of the rows that were written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from engine.evaluate.config import Config
from engine.evaluate.example import Example
from engine.evaluate.tools import Tools
from engine.evaluate.values import Estimate, Found, Results, Row, Unit
from engine.progress import Watch


@dataclass(frozen=True)
class Study:
    """One study.

    `methods` are those that make units of their own, in running order; conditions that stand on each other (A and
    what revises it) share a unit. `needs` (names in `example.NEEDS`) an example must bring or it is left out, and
    counted. `uses` says for each further need what is switched off where it is absent. `run` does one unit and raises
    what the engine raises; `results` turns all rows of a run into tables and figures without any model; `cost` is the
    most that one unit takes. `writes_first` says of a unit whether little comes before its first call of the writer, so
    that it can be begun twice, and that answer be written together with those of other units.
    """

    name: str
    title: str
    shows: tuple[str, ...]
    methods: tuple[str, ...]
    run: Callable[[Tools, Unit, Example, Watch], Found]
    results: Callable[[Config, Sequence[Row]], Results]
    cost: Callable[[Tools, Unit, Example], Estimate]
    needs: tuple[str, ...] = ()
    uses: Mapping[str, str] = field(default_factory=dict)
    writes_first: Callable[[Config, Unit, Example], bool] = lambda config, unit, example: False
