"""The steps of a run: finished ones with seconds and counts, and the current one."""

from __future__ import annotations

from collections.abc import Sequence

from components.html import escape, show, tag
from engine.core.values import Step


def draw_steps(expected: Sequence[str], done: Sequence[Step], current: str | None = None) -> None:
    """Draw what is done, with time and counts, then what is still expected; `current` runs, else the first of these."""
    finished = {step.name: step for step in done}
    ahead = [name for name in expected if name not in finished]
    running = current if current in ahead else next(iter(ahead), None)
    names = [*finished, *ahead]
    show(tag("div", "".join(_card(name, finished.get(name), name == running) for name in names), class_="gw-steps"))


def _card(name: str, step: Step | None, current: bool) -> str:
    if step is None:
        kind, note = ("gw-now", "running") if current else ("", "waiting")
    else:
        counts = ", ".join(map(_count, step.counts.items()))
        kind, note = "gw-done", f"{duration(step.seconds)}{' · ' if counts else ''}{counts}"
    return tag("div", tag("b", escape(name)) + escape(note), class_=f"gw-stepcard {kind}".strip())


def _count(named: tuple[str, float]) -> str:
    """A count with its noun, which is stored as a plural.

    >>> _count(("citations", 1)), _count(("kept", 2))
    ('1 citation', '2 kept')
    """
    unit, value = named
    return f"{value:,.0f} {unit.removesuffix('s') if value == 1 else unit}"


def duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> duration(0.0312), duration(2.5), duration(75)
    ('31 ms', '2.5 s', '1 min 15 s')
    """
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"
