"""A line of the embedded language model's table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

HEAD = "| what | reached | with the rule fallback | goal | n |\n| --- | --- | --- | --- | --- |"


@dataclass(frozen=True)
class Row:
    """One line of the table: a share in [0, 1] or a figure with its unit, and what it is out of."""

    name: str
    value: float
    n: int
    goal: str = ""
    unit: str = ""
    ruled: float | None = None  # with the engine's rule fallback for replies that it cannot read

    def text(self) -> str:
        """The line as Markdown."""
        shown = f"{self.value:.2f}" if not self.unit else f"{self.value:.1f} {self.unit}"
        ruled = "" if self.ruled is None else f"{self.ruled:.2f}"
        return f"| {self.name} | {shown} | {ruled} | {self.goal} | {self.n or ''} |"


def share(hits: Sequence[bool]) -> float:
    """The share of True; NaN for none."""
    return float(np.mean(hits)) if hits else float("nan")
